"""The chunks of any model, put right: what clients can build a message of."""

import itertools
from collections.abc import Iterable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from perdure import ModelError, ModelUnreachable
from perdure.agent.wellformed import WellFormed
from perdure.protocol.messages import is_settled
from tests.chat.chunks import build

Chunk = dict[str, Any]


def read(*chunks: Chunk, taken: Iterable[str] = ()) -> list[Chunk]:
    """What a step of these chunks becomes."""
    ids = itertools.count(1)
    step = WellFormed(frozenset(taken).__contains__, lambda: f"new-{next(ids)}")
    return [made for chunk in chunks for made in step.take(chunk)] + step.finish()


def text(delta: str, id: Any = "t") -> Chunk:
    return {"type": "text-delta", "id": id, "delta": delta}


def start(id: Any = "c1", name: Any = "add") -> Chunk:
    return {"type": "tool-input-start", "toolCallId": id, "toolName": name}


def delta(piece: Any, id: Any = "c1") -> Chunk:
    return {"type": "tool-input-delta", "toolCallId": id, "inputTextDelta": piece}


def available(input: Any = None, id: Any = "c1", name: Any = "add", **more: Any) -> Chunk:
    return {"type": "tool-input-available", "toolCallId": id, "toolName": name, "input": input, **more}


START, END = {"type": "text-start", "id": "t"}, {"type": "text-end", "id": "t"}


def test_a_well_formed_step_passes_unchanged() -> None:
    step = [START, text("Hi"), END, start(), delta('{"a":1}'), available({"a": 1})]
    assert read(*step) == step


def test_words_without_a_start_get_one_and_an_end() -> None:
    assert read(text("Hi"), text("!")) == [START, text("Hi"), text("!"), END]
    assert [chunk["type"] for chunk in read({"type": "reasoning-delta", "id": "r", "delta": "Hm"})] == [
        "reasoning-start",
        "reasoning-delta",
        "reasoning-end",
    ]


def test_words_after_an_end_open_a_new_part() -> None:
    assert read(START, text("a"), END, text("b")) == [START, text("a"), END, START, text("b"), END]


def test_a_second_start_ends_the_first_part() -> None:
    assert read(START, text("a"), START, text("b")) == [START, text("a"), END, START, text("b"), END]


def test_text_that_says_nothing_is_left_out() -> None:
    assert read(START, text(""), END) == []
    assert read(START, text(""), text("a"), END, END) == [START, text("a"), END]
    assert read({"type": "text-end", "id": "t"}) == []
    assert read({"type": "reasoning-start", "id": "r"}, {"type": "reasoning-end", "id": "r"}) == []


def test_hidden_reasoning_keeps_its_mark() -> None:
    hidden = [
        {"type": "reasoning-start", "id": "r"},
        {"type": "reasoning-end", "id": "r", "providerMetadata": {"p": {"signature": "s"}}},
    ]
    assert read(*hidden) == hidden


def test_ids_that_are_no_text_become_text() -> None:
    assert [chunk["id"] for chunk in read(text("a", 7), text("b", 7), text("c", None))] == ["7"] * 3 + ["", "", "7", ""]


def test_a_call_under_the_id_of_another_gets_one_of_its_own() -> None:
    made = read(
        *(start("x"), delta("{}", "x"), available({"q": 1}, "x")),
        *(start("x"), delta("{}", "x"), available({"q": 2}, "x")),
    )
    assert [(chunk["toolCallId"], chunk.get("input")) for chunk in made if chunk["type"] == "tool-input-available"] == [
        ("x", {"q": 1}),
        ("new-1", {"q": 2}),
    ]
    assert [chunk["toolCallId"] for chunk in made] == ["x"] * 3 + ["new-1"] * 3


@pytest.mark.parametrize("id", [None, "", "old"])
def test_a_call_without_an_id_of_its_own_gets_one(id: Any) -> None:
    made = read(start(id), available({}, id), taken=["old"])
    assert [chunk["toolCallId"] for chunk in made] == ["new-1", "new-1"]


def test_a_start_that_is_said_again_is_one_start() -> None:
    assert read(start(), start(), delta("{}"), start(), available({})) == [start(), delta("{}"), available({})]


@pytest.mark.parametrize("again", [{}, {"a": 1}, "", None])
def test_an_input_that_is_said_again_is_one_call(again: Any) -> None:
    assert read(start(), available({"a": 1}), available(again)) == [start(), available({"a": 1})]


@pytest.mark.parametrize(("given", "meant"), [("", {}), (None, {}), (" ", {}), ('{"a":1}', {"a": 1})])
def test_an_input_is_an_object(given: Any, meant: Any) -> None:
    assert read(available(given)) == [available(meant)]


@pytest.mark.parametrize("given", ["[1]", "text", '{"a":', [1], 5, True])
def test_an_input_that_is_none_is_an_error_with_what_was_written(given: Any) -> None:
    (made,) = read(available(given))
    assert (made["type"], made["input"]) == ("tool-input-error", given)
    assert made["errorText"] == "The arguments for the tool 'add' are not a JSON object."


def test_a_call_that_was_not_finished_is_an_error() -> None:
    *_, made = read(start(), delta('{"a":'))
    assert (made["type"], made["toolCallId"], made["input"]) == ("tool-input-error", "c1", '{"a":')
    assert made["errorText"] == "The model did not finish the arguments of the tool 'add'."


def test_pieces_of_a_call_that_nobody_began_are_left_out() -> None:
    assert read(delta("{}", "zzz"), delta(""), delta(5)) == []


def test_results_are_taken_for_calls_that_the_provider_runs_and_for_no_others() -> None:
    searched = available({"q": "x"}, providerExecuted=True)
    output = {"type": "tool-output-available", "toolCallId": "c1", "output": "found"}
    assert read(searched, output) == [searched, output]
    assert read(available({}), output, {**output, "toolCallId": "zzz"}) == [available({})]


@pytest.mark.parametrize(
    ("more", "answered"),
    [
        ([], False),
        ([{"type": "tool-output-available", "output": 1, "preliminary": True}], False),
        ([{"type": "tool-output-available", "output": 1}], True),
        ([{"type": "tool-output-error", "errorText": "no"}], True),
        ([{"type": "tool-output-denied"}], True),
    ],
)
def test_a_call_that_the_provider_runs_is_settled_when_the_step_ends(more: list[Chunk], answered: bool) -> None:
    searched = available({"q": "x"}, providerExecuted=True)
    given = [{**chunk, "toolCallId": "c1"} for chunk in more]
    text = "The provider gave no result of the tool 'add'."
    left = [] if answered else [{"type": "tool-output-error", "toolCallId": "c1", "errorText": text}]
    assert read(searched, *given) == [searched, *given, *left]
    assert [part["state"] for part in build(*read(searched, *given)).parts if not is_settled(part)] == []


def test_a_call_of_the_provider_whose_arguments_are_broken_fails_once() -> None:
    kinds = [chunk["type"] for chunk in read({**start(), "providerExecuted": True}, delta("{"))]
    assert kinds == ["tool-input-start", "tool-input-delta", "tool-input-error"]


def test_marks_of_steps_and_messages_and_what_is_unknown_do_not_pass() -> None:
    kinds = ["start", "start-step", "finish-step", "finish", "reset-step", "zzz", 5, None]
    assert read(*({"type": kind} for kind in kinds), {}) == []
    passing = [{"type": kind} for kind in ("file", "source-url", "data-weather", "message-metadata")]
    assert read(*passing) == passing


def test_an_error_in_the_stream_is_an_error() -> None:
    with pytest.raises(ModelError, match="quota"):
        read({"type": "error", "errorText": "quota"})
    with pytest.raises(ModelError, match="without saying why"):
        read({"type": "error"})
    with pytest.raises(ModelUnreachable):
        read({"type": "abort"})


IDS = st.sampled_from(["a", "b", "", None, 3])
KINDS = ["text-start", "text-delta", "text-end", "reasoning-start", "reasoning-delta", "reasoning-end"]
PIECES = st.one_of(
    st.builds(lambda kind, id, words: {"type": kind, "id": id, "delta": words}, st.sampled_from(KINDS), IDS, st.text()),
    st.builds(start, IDS, st.sampled_from(["add", "sub", None])),
    st.builds(delta, st.text(max_size=3), IDS),
    st.builds(available, st.sampled_from([{}, {"a": 1}, {"a": 2}, "", "x", None]), IDS),
    st.builds(lambda id: {"type": "tool-output-available", "toolCallId": id, "output": 1}, IDS),
)


@settings(deadline=None)
@given(st.lists(PIECES, max_size=30))
def test_whatever_a_model_streams_is_well_formed(chunks: list[Chunk]) -> None:
    said = "".join(c["delta"] for c in chunks if c["type"] == "text-delta")
    opened: set[tuple[str, str]] = set()
    started: set[str] = set()
    finished: set[str] = set()
    words: list[str] = []
    for chunk in read(*chunks):
        kind = chunk["type"]
        part = (kind.split("-")[0], chunk.get("id", ""))
        if kind.endswith("-start") and "id" in chunk:
            assert part not in opened
            opened.add(part)
        elif kind in {"text-delta", "reasoning-delta"}:
            assert part in opened
            assert chunk["delta"]
            words += [chunk["delta"]] if kind == "text-delta" else []
        elif kind in {"text-end", "reasoning-end"}:
            opened.remove(part)
        elif kind == "tool-input-start":
            assert chunk["toolCallId"] not in started | finished
            started.add(chunk["toolCallId"])
        elif kind == "tool-input-delta":
            assert chunk["toolCallId"] in started - finished
        else:
            assert kind in {"tool-input-available", "tool-input-error"}
            assert chunk["toolCallId"]
            assert chunk["toolCallId"] not in finished
            finished.add(chunk["toolCallId"])
    assert "".join(words) == said
    assert not opened
    assert started <= finished
