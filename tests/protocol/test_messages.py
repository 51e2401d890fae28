"""Looking at UI messages and their parts."""

from typing import Any

import pytest

from perdure.protocol.messages import SETTLED, UIMessage, is_tool_part, text_of, tool_name


@pytest.mark.parametrize(
    ("part", "tool"),
    [
        ({"type": "tool-add"}, "add"),
        ({"type": "tool-get-weather-now"}, "get-weather-now"),
        ({"type": "tool-"}, ""),
        ({"type": "dynamic-tool", "toolName": "search-web"}, "search-web"),
        ({"type": "dynamic-tool"}, ""),
    ],
)
def test_a_tool_part_says_which_tool_was_called(part: dict[str, Any], tool: str) -> None:
    assert is_tool_part(part)
    assert tool_name(part) == tool


@pytest.mark.parametrize("kind", ["text", "reasoning", "tool", "data-tool-x", "dynamic-tools", "step-start", ""])
def test_other_parts_are_no_tool_parts(kind: str) -> None:
    assert not is_tool_part({"type": kind})
    assert not is_tool_part({})


def test_the_settled_states_are_those_that_nothing_follows() -> None:
    assert {"output-available", "output-error", "output-denied"} == SETTLED


def test_the_text_of_a_message_is_its_text_parts_in_order() -> None:
    message: UIMessage = {
        "id": "a1",
        "role": "assistant",
        "parts": [
            {"type": "step-start"},
            {"type": "reasoning", "text": "thinking"},
            {"type": "text", "text": "Hel"},
            {"type": "tool-add", "toolCallId": "c", "state": "input-available", "input": {}},
            {"type": "text", "text": "lo"},
        ],
    }
    assert text_of(message) == "Hello"


@pytest.mark.parametrize("part", [{"type": "text"}, {"type": "text", "text": None}, {"type": "text", "text": 5}, {}])
def test_a_text_part_without_text_says_nothing(part: dict[str, Any]) -> None:
    assert text_of({"id": "u1", "role": "user", "parts": [part, {"type": "text", "text": "hi"}]}) == "hi"
