"""Calls of an agent's methods from a tab, and what tests look at in a conversation."""

import itertools
from collections.abc import Iterable
from typing import Any

from tests.support import Frame, Tab

__all__ = ["call_of", "error_of", "parts_of", "result_of", "said", "tool_parts"]

_ids = itertools.count(1)


async def call_of(tab: Tab, method: str, *args: Any) -> Frame:
    """The last reply to a call."""
    call = f"call-{next(_ids)}"
    await tab.send({"type": "rpc", "id": call, "method": method, "args": list(args)})
    return await tab.seen(lambda f: f["type"] == "rpc" and f["id"] == call and f.get("done") is not False)


async def result_of(tab: Tab, method: str, *args: Any) -> Any:
    """What a call gives."""
    reply = await call_of(tab, method, *args)
    assert reply["success"], reply
    return reply.get("result")


async def error_of(tab: Tab, method: str, *args: Any) -> str:
    """Why a call fails."""
    reply = await call_of(tab, method, *args)
    assert not reply["success"], reply
    return reply["error"]


def said(messages: Iterable[dict[str, Any]]) -> list[str]:
    """The text of each message."""
    return ["".join(part.get("text", "") for part in m["parts"] if part["type"] == "text") for m in messages]


def parts_of(message: dict[str, Any]) -> list[dict[str, Any]]:
    """The parts of a message, but for the marks of its steps."""
    return [part for part in message["parts"] if part["type"] != "step-start"]


def tool_parts(message: dict[str, Any]) -> list[dict[str, Any]]:
    """The tool calls of a message."""
    return [part for part in message["parts"] if part["type"].startswith("tool-")]
