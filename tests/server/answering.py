"""What the tests of tool calls that wait share: how they get there, and what they wait for and look at."""

from __future__ import annotations

from typing import Any

from tests.agent.calls import tool_parts
from tests.support import Frame, Serving, Tab, offer

__all__ = [
    "INTERRUPTED",
    "ask_for_calls",
    "continuations",
    "continued",
    "is_idle",
    "is_update",
    "outputs",
    "states",
    "updates",
]

INTERRUPTED = "The tool call was interrupted before a result was recorded."


async def ask_for_calls(server: Serving, *names: str, **body: Any) -> Tab:
    """A tab whose request ``r1`` has ended with open calls of the page's tools."""
    tab = await server.tab()
    await tab.ask("r1", "Go", clientTools=offer(*names), **body)
    await tab.done("r1")
    return tab


async def continued(tab: Tab, count: int = 1) -> str:
    """Returns when so many continuations are over; gives the id of the last."""
    ended: list[str] = []

    def is_last(frame: Frame) -> bool:
        if frame.get("continuation") and frame.get("done"):
            ended.append(frame["id"])
        return len(ended) == count

    return (await tab.seen(is_last))["id"]


def continuations(tab: Tab) -> list[str]:
    """The ids of the continuations that a tab was sent frames of, in order."""
    return list(dict.fromkeys(frame["id"] for frame in tab.frames if frame.get("continuation")))


def is_update(frame: Frame) -> bool:
    return frame["type"] == "cf_agent_message_updated"


def updates(tab: Tab, since: int = 0) -> list[Frame]:
    """The messages of all updates that a tab was sent."""
    return [frame["message"] for frame in tab.frames[since:] if is_update(frame)]


async def is_idle(tab: Tab) -> bool:
    """Whether nothing runs or waits."""
    return (await tab.probe("idle?")).get("reason") == "idle"


async def states(server: Serving, message: int = 1) -> list[str]:
    """The states of the stored calls."""
    return [part["state"] for part in tool_parts((await server.stored())[message])]


async def outputs(server: Serving) -> list[Any]:
    """The stored results of the calls of the first answer; their errors, if that is what they have."""
    return [part.get("output", part.get("errorText")) for part in tool_parts((await server.stored())[1])]
