"""What of older messages a model is shown."""

import copy
import json
import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from perdure.chat.shorten import OUTPUT, TEXT, may_be_cut, settled_count, shorten
from perdure.protocol import codec
from perdure.protocol.messages import UIMessage
from tests.requirements import requirement


def answer(*parts: dict[str, Any]) -> UIMessage:
    return {"id": "a", "role": "assistant", "parts": list(parts)}


def result(output: Any, **fields: Any) -> dict[str, Any]:
    return {"type": "tool-x", "toolCallId": "c", "state": "output-available", "input": {}, "output": output, **fields}


def cut(part: dict[str, Any]) -> dict[str, Any]:
    """The part as it is shown; the message itself must stay as it is."""
    message = answer(part)
    before = copy.deepcopy(message)
    short = shorten(message)
    assert message == before
    return part if short is None else short["parts"][0]


@pytest.mark.parametrize(
    ("count", "old"),
    [(0, 0), (1, 0), (4, 0), (11, 0), (12, 8), (13, 8), (19, 8), (20, 16), (100, 96), (104, 96), (108, 104)],
)
def test_the_old_part_grows_in_steps_and_leaves_at_least_the_last_four(count: int, old: int) -> None:
    # keep_recent = 4 + ((n - 4) mod 8)
    assert settled_count(count, 8) == old
    if count > 4:
        assert count - old == 4 + (count - 4) % 8


def test_other_steps() -> None:
    assert settled_count(1000, math.inf) == 0
    assert [settled_count(count, 1) for count in (4, 5, 6)] == [0, 1, 2]
    assert [settled_count(10, step) for step in (0, -3, 0.5)] == [6, 6, 6], "what makes no sense counts as 1"
    assert settled_count(10, math.nan) == 6


@requirement("engine:59")
def test_long_outputs_and_texts_are_cut_and_short_ones_left_alone() -> None:
    assert cut(result("x" * 500)) == result("x" * 500)
    assert cut(result("x" * 501)) == result("x" * 500 + "... [truncated 1 chars]")
    text = {"type": "text", "text": "y" * 10_000}
    assert cut(text) == text
    assert cut({"type": "text", "text": "y" * 10_007})["text"] == "y" * 10_000 + "... [truncated 7 chars]"


def test_long_errors_of_tools_are_cut_as_well() -> None:
    part = {"type": "tool-x", "toolCallId": "c", "state": "output-error", "input": {}, "errorText": "e" * 600}
    assert cut(part)["errorText"] == "e" * 500 + "... [truncated 100 chars]"


def test_reasoning_inputs_and_what_the_provider_ran_are_left_alone() -> None:
    for part in (
        {"type": "reasoning", "text": "r" * 20_000},
        {**result("short"), "input": {"text": "i" * 20_000}},
        result("p" * 20_000, providerExecuted=True),
        {"type": "data-x", "data": "d" * 20_000},
    ):
        assert cut(part) == part


@requirement("fault:PS-03")
def test_an_object_keeps_its_shape_and_its_small_fields() -> None:
    output = {"rows": [{"name": "n" * 50, "row": number} for number in range(1000)], "total": 9, "next": None}
    short = cut(result(output))["output"]
    assert short["total"] == 9
    assert short["next"] is None
    assert short["rows"][0] == output["rows"][0]
    assert short["rows"][-1].startswith("[truncated ")
    assert list(short) == ["rows", "total", "next"]


def test_an_object_of_many_fields_says_how_many_are_left_out() -> None:
    short = cut(result({f"field {number}": "x" * 20 for number in range(100)}))["output"]
    assert short["field 0"] == "x" * 20
    assert short["__truncated"] == f"{100 - (len(short) - 1)} more fields"


json_values = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.text(max_size=300),
    lambda children: st.lists(children, max_size=8) | st.dictionaries(st.text(max_size=20), children, max_size=8),
    max_leaves=60,
)


@given(json_values)
def test_any_output_is_bounded_still_json_and_of_its_kind(output: Any) -> None:
    short = cut(result(output))["output"]
    size = len(output if isinstance(output, str) else codec.encode_text(output))
    if size <= OUTPUT:
        assert short == output
        return
    assert type(short) is type(output)
    assert json.loads(codec.encode_text(short)) == short
    # Marks and punctuation come on top of what is left of the content.
    assert len(codec.encode_text(short)) <= 6 * OUTPUT


def test_a_cut_leaves_no_half_character() -> None:
    short = cut(result("🏳️‍🌈" * 400))["output"]
    short.encode()


def test_what_is_nested_without_end_is_cut_off() -> None:
    deep: Any = "x" * 1000
    for _ in range(50):
        deep = [deep]
    assert len(codec.encode_text(cut(result(deep))["output"])) < 200


IMAGE = "data:image/png;base64," + "A" * 100


@pytest.mark.parametrize(
    ("output", "shown"),
    [
        (IMAGE, "[image/png omitted from an older tool result]"),
        (
            {"file": {"deep": [IMAGE]}, "n": 1},
            {"file": {"deep": ["[image/png omitted from an older tool result]"]}, "n": 1},
        ),
        (
            [{"type": "media", "mediaType": "image/jpeg", "data": "AAAA"}],
            [{"type": "text", "text": "[image/jpeg omitted from an older tool result]"}],
        ),
        (
            {"type": "image", "mimeType": "image/gif", "data": "AAAA"},
            {"type": "text", "text": "[image/gif omitted from an older tool result]"},
        ),
        ({"mimeType": "text/plain", "data": "words"}, {"mimeType": "text/plain", "data": "words"}),
        ("data: not a URL", "data: not a URL"),
    ],
)
def test_inline_media_in_old_results_become_a_note(output: Any, shown: Any) -> None:
    assert cut(result(output))["output"] == shown


def test_files_of_people_are_left_in() -> None:
    part = {"type": "file", "mediaType": "image/png", "url": IMAGE * 200}
    assert cut(part) == part


@given(st.lists(st.sampled_from([
    {"type": "text", "text": "t" * 12_000},
    {"type": "text", "text": "short"},
    result("r" * 600),
    result({"a": "r" * 600}),
    result(IMAGE * 6),
    {"type": "reasoning", "text": "r" * 600},
])))  # fmt: skip
def test_the_quick_look_never_overlooks_what_would_be_cut(parts: list[dict[str, Any]]) -> None:
    message = answer(*parts)
    if shorten(message) is not None:
        assert may_be_cut(codec.encode_text(message))
    assert TEXT > OUTPUT
