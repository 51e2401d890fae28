"""Tool calls of turns that are over."""

from typing import Any

import pytest

from perdure.chat.repair import INTERRUPTED, Repaired, may_need_repair, repair, settle_open_calls
from perdure.protocol import codec
from perdure.protocol.messages import UIMessage
from tests.requirements import requirement


def call(state: str, **more: Any) -> dict[str, Any]:
    return {"type": "tool-add", "toolCallId": "c1", "state": state, **more}


@pytest.mark.parametrize("state", ["input-streaming", "input-available", "approval-requested", "approval-responded"])
def test_an_open_call_becomes_an_error(state: str) -> None:
    part = call(state, input={"a": 1}, title="Add")
    assert settle_open_calls([part]) == ["c1"]
    assert part == call("output-error", input={"a": 1}, title="Add", errorText=INTERRUPTED)


@pytest.mark.parametrize("input", [{}, {"input": None}, {"input": '{"a":'}, {"input": [1]}])
def test_its_input_is_an_object_then(input: dict[str, Any]) -> None:
    part = call("input-streaming", **input)
    settle_open_calls([part], "The line broke.")
    assert part == call("output-error", input={}, errorText="The line broke.")


@pytest.mark.parametrize(
    "part",
    [
        call("output-available", input={}, output=3),
        call("output-error", input="{", errorText="no"),
        call("output-denied", input={}),
        {"type": "text", "text": "a", "state": "streaming"},
        {"type": "step-start"},
        {"type": "data-x", "data": {}},
    ],
)
def test_what_is_settled_or_no_call_stays_as_it_is(part: dict[str, Any]) -> None:
    before = dict(part)
    assert settle_open_calls([part]) == []
    assert part == before


def test_all_open_calls_are_named_in_call_order() -> None:
    dynamic = {"type": "dynamic-tool", "toolName": "x", "toolCallId": "c3", "state": "input-available", "input": {}}
    parts = [call("input-available"), {**call("output-denied"), "toolCallId": "c2"}, dynamic]
    assert settle_open_calls(parts) == ["c1", "c3"]
    assert settle_open_calls(parts) == []


# ── stored messages ─────────────────────────────────────────────────


def answer(*parts: dict[str, Any]) -> UIMessage:
    return {"id": "a", "role": "assistant", "parts": list(parts)}


def repaired(*parts: dict[str, Any]) -> Repaired | None:
    message = answer(*parts)
    text = codec.encode_text(message)
    result = repair(message)
    assert codec.encode_text(message) == text, "the message itself is not changed"
    assert result is None or may_need_repair(text)
    return result


@requirement("engine:55")
def test_a_stored_call_without_an_outcome_is_settled_and_the_others_are_not_touched() -> None:
    done = call("output-available", input={}, output=3)
    failed = call("output-error", input={}, errorText="no")
    denied = call("output-denied", input={}, approval={"id": "p", "approved": False})
    text = {"type": "text", "text": "hm"}
    result = repaired(text, done, {**call("input-available", input={"a": 1}), "toolCallId": "c2"}, failed, denied)
    assert result is not None
    assert (result.settled, result.normalised) == (["c2"], [])
    open_call = {**call("output-error", input={"a": 1}, errorText=INTERRUPTED), "toolCallId": "c2"}
    assert result.message == answer(text, done, open_call, failed, denied)


@requirement("engine:56", "fault:MQ-02")
@pytest.mark.parametrize(
    ("given", "becomes"),
    [
        ("", {"input": {}}),
        (None, {"input": {}}),
        ([], {"input": {}}),
        ("text", {"input": {}, "rawInput": "text"}),
        ('{"a":1}', {"input": {"a": 1}}),
        ("[1]", {"input": {}, "rawInput": "[1]"}),
        (5, {"input": {}}),
    ],
)
def test_the_input_of_a_stored_call_becomes_an_object(given: Any, becomes: dict[str, Any]) -> None:
    result = repaired(call("output-available", input=given, output=3))
    assert result == Repaired(answer(call("output-available", output=3, **becomes)), [], ["c1"])
    assert repair(result.message) is None, "once is enough"


def test_a_call_without_any_input_gets_one() -> None:
    result = repaired(call("output-available", output=3))
    assert result is not None
    assert result.message["parts"][0]["input"] == {}


def test_what_is_sound_is_left_alone() -> None:
    assert repaired(call("output-available", input={}, output=3), {"type": "text", "text": "t"}) is None
    assert repaired() is None
