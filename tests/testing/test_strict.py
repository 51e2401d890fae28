"""The checks of a strict provider."""

from __future__ import annotations

from typing import Any

import pytest

from perdure.models.contract import HistoryMessage, ModelRequest, ToolSpec
from perdure.testing import RecordedRequest, strict_provider_errors

USER: Any = {"id": "u", "role": "user", "parts": [{"type": "text", "text": "hi"}]}
CALL: Any = {
    "type": "tool-add",
    "toolCallId": "c1",
    "state": "output-available",
    "input": {"a": 1},
    "output": None,
}
TEXT: Any = {"type": "text", "text": "done"}
STEP: Any = {"type": "step-start"}


def asked(*messages: Any, tools: tuple[str, ...] = ()) -> ModelRequest:
    return ModelRequest(
        system="",
        history=[HistoryMessage.of(message) for message in messages],
        tools=[ToolSpec(name, "", {"type": "object"}) for name in tools],
    )


def assistant(*parts: Any) -> Any:
    return {"id": "a", "role": "assistant", "parts": [STEP, *parts]}


@pytest.mark.parametrize(
    "messages",
    [
        [USER],
        [USER, assistant(CALL)],
        [USER, assistant(CALL, TEXT)],
        [USER, assistant(CALL, CALL | {"toolCallId": "c2"}, {"type": "step-start"})],
        [USER, assistant(CALL, {"type": "step-start"}, TEXT), USER],
        [USER, assistant(CALL | {"state": "output-error", "errorText": "boom"})],
        [USER, assistant(CALL | {"state": "output-denied"})],
        [USER, assistant(CALL | {"type": "dynamic-tool", "toolName": "other"})],
    ],
)
def test_a_proper_conversation_is_accepted(messages: list[Any]) -> None:
    assert strict_provider_errors(asked(*messages, tools=("add", "a-b_C"))) == []


@pytest.mark.parametrize(
    ("messages", "error"),
    [
        ([], "there are no messages"),
        ([USER, assistant(TEXT)], "the request ends in an assistant item"),
        ([USER, assistant(CALL, STEP, TEXT)], "the request ends in an assistant item"),
        ([USER, assistant(CALL | {"providerExecuted": True})], "the request ends in an assistant item"),
        ([USER, assistant()], "the request ends in an assistant item"),
        ([USER, assistant(CALL | {"state": "input-available"})], "message 1: call c1 of add has no result"),
        ([USER, assistant(CALL | {"state": "approval-requested"}), USER], "message 1: call c1 of add has no result"),
        (
            [assistant({k: v for k, v in CALL.items() if k != "output"}), USER],
            "message 0: call c1 of add has no result",
        ),
        ([assistant(CALL | {"input": '{"a":'}), USER], "message 0: the input of call c1 of add is not an object"),
        ([assistant(CALL | {"input": None}), USER], "message 0: the input of call c1 of add is not an object"),
        ([assistant(CALL | {"toolCallId": ""}), USER], "message 0: a result of add belongs to no call: it has no id"),
        ([assistant(CALL, CALL), USER], "call id c1 is used 2 times"),
        ([assistant(CALL), USER, assistant(STEP, CALL), USER], "call id c1 is used 2 times"),
        ([assistant(CALL | {"type": "tool-a.b"}), USER], "message 0: tool name 'a.b' of call c1 is not allowed"),
    ],
)
def test_each_mistake_is_named(messages: list[Any], error: str) -> None:
    assert strict_provider_errors(asked(*messages)) == [error]


def test_tool_names_are_checked() -> None:
    assert strict_provider_errors(asked(USER, tools=("имя", "add", "x" * 65, "add"))) == [
        "tool name 'имя' is not allowed",
        f"tool name {'x' * 65!r} is not allowed",
        "tool add is offered 2 times",
    ]


def test_a_recorded_request_can_be_checked_too() -> None:
    assert strict_provider_errors(RecordedRequest.of(asked(USER, assistant(TEXT)))) == [
        "the request ends in an assistant item"
    ]
