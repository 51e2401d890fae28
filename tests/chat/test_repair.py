"""Tool calls of turns that are over."""

from typing import Any

import pytest

from perdure.chat.repair import INTERRUPTED, settle_open_calls


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
