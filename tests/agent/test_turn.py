"""A turn as data."""

import json
from typing import Any

import pytest

from perdure.agent.turn import Turn

pytestmark = pytest.mark.anyio


def turn(**more: Any) -> Turn:
    fields: dict[str, Any] = {
        "parent": "u1",
        "own_messages": ["u1"],
        "origin_ids": ["u0", "u1"],
        "generation": 0,
        **more,
    }
    return Turn(id="R1", trigger="ws-chat", message_id="a1", **fields)


async def test_a_turn_writes_down_what_it_was_to_do() -> None:
    text = turn(body={"user": 5, "deep": {"a": [None, 2**70, "\ud800"]}}).to_json()
    assert json.loads(text) == {
        "parent": "u1",
        "own": ["u1"],
        "origin": ["u0", "u1"],
        "body": {"user": 5, "deep": {"a": [None, 2**70, "\ufffd"]}},
    }


async def test_a_turn_builds_its_message_under_the_id_that_it_was_given() -> None:
    assert turn().builder.message() == {"id": "a1", "role": "assistant", "parts": []}


async def test_turns_share_nothing() -> None:
    one, other = turn(), turn()
    one.scope.cancel()
    one.builder.apply({"type": "text-start", "id": "0"})
    assert not other.scope.cancel_called
    assert not other.builder.has_content
    assert one.body is not other.body
