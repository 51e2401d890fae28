"""What tests of approvals and client tools share: the frames that answer a call, and what is looked at afterwards."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from typing import Any

from perdure import tool
from perdure.testing import RecordedRequest, strict_provider_errors
from tests.support import Frame, Serving, Tab
from tests.support.tabs import PATIENCE

__all__ = [
    "approval",
    "check_prompts",
    "continued",
    "nothing_comes",
    "part_of",
    "remover",
    "result",
    "seen_state",
    "stored_part",
]


def approval(call: str, approved: bool = True, *, go_on: bool = True, **more: Any) -> Frame:
    """What the hook sends when a person has decided."""
    frame = {"type": "cf_agent_tool_approval", "toolCallId": call, "approved": approved, "autoContinue": go_on}
    return {**frame, **more}


def result(call: str, output: Any = None, *, go_on: bool = True, **more: Any) -> Frame:
    """What the hook sends when the page has a result."""
    frame = {"type": "cf_agent_tool_result", "toolCallId": call, "toolName": "", "output": output}
    return {**frame, "autoContinue": go_on, **more}


def remover(ran: list[Any], needs_approval: Any = True, name: str = "remove") -> Any:
    """A tool that needs approval and writes down what it is run with."""

    @tool(name=name, needs_approval=needs_approval)
    async def remove(path: str) -> dict[str, Any]:
        """Remove a file."""
        ran.append(path)
        return {"removed": path}

    return remove


def part_of(messages: Iterable[dict[str, Any]], call: str) -> dict[str, Any]:
    """The part of a call, of which there is one."""
    (part,) = [part for message in messages for part in message["parts"] if part.get("toolCallId") == call]
    return part


async def stored_part(server: Serving, call: str = "c1", **at: str) -> dict[str, Any]:
    """The part of a call as it is stored."""
    return part_of(await server.stored(**at), call)


async def seen_state(tab: Tab, call: str, state: str) -> dict[str, Any]:
    """The part of a call, once the tab is shown it in that state by a ``message_updated``."""

    def shows(frame: Frame) -> bool:
        if frame["type"] != "cf_agent_message_updated":
            return False
        return any(p.get("toolCallId") == call and p["state"] == state for p in frame["message"]["parts"])

    return part_of([(await tab.seen(shows))["message"]], call)


async def continued(tab: Tab, count: int = 1) -> Frame:
    """The terminal frame of the continuation that is the so-manieth."""

    def ends(frame: Frame) -> bool:
        return frame.get("done") is True and frame.get("continuation") is True

    return await _nth(tab, ends, count)


async def _nth(tab: Tab, wanted: Callable[[Frame], bool], count: int) -> Frame:
    async with asyncio.timeout(PATIENCE):
        index = -1
        for _ in range(count):
            found = await tab.next(wanted, since=index + 1)
            index = tab.frames.index(found, index + 1)
    return tab.frames[index]


async def nothing_comes(tab: Tab) -> None:
    """What was sent so far starts no turn."""
    answer = await tab.probe("nothing-comes")
    assert (answer["type"], answer["reason"]) == ("cf_agent_stream_resume_none", "idle"), answer


def check_prompts(requests: Iterable[RecordedRequest]) -> None:
    """What the model was shown would pass the strictest provider."""
    for request in requests:
        assert strict_provider_errors(request) == []
