"""Answers calls at a server that may be killed at any moment, and keeps what the tab was shown of it."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Iterable
from typing import Any

import httpx2
from websockets.exceptions import ConnectionClosed

from perdure.protocol.messages import SETTLED, is_tool_part
from tests.crash.process import Process
from tests.support.tabs import PATIENCE, Frame, Tab

__all__ = ["Answerer", "open_calls", "parts_of", "unsettled"]

OPEN = frozenset({"input-available", "approval-requested"})
"""The states in which a person or a page is asked."""


def parts_of(messages: Iterable[Frame]) -> dict[str, Frame]:
    """The tool parts of a conversation by the id of their call."""
    return {part["toolCallId"]: part for message in messages for part in message["parts"] if is_tool_part(part)}


class Answerer:
    """A tab that answers calls."""

    def __init__(self, server: Process, tab: Tab) -> None:
        self.tab = tab
        self._server = server

    async def asks(self, *calls: str) -> bool:
        """Wait until all these calls are shown. False when the process has died before."""
        return await self._comes(lambda: all(self.shown(call) is not None for call in calls))

    async def ends(self, request: str) -> bool:
        """Wait for the end of a request. False when the process has died before."""
        return await self._comes(lambda: any(frame["done"] for frame in self.tab.of(request)))

    async def stored(self) -> bool:
        """Wait until all that was shown is stored. False when the process has died before."""
        try:
            await self._server.stored()
        except httpx2.TransportError:
            return False
        return True

    async def answers(self, *calls: str) -> bool:
        """Answer calls, each when the answer before is shown. False when the process has died before they all were."""
        for call in calls:
            try:
                await self.tab.send(self._answer(call))
            except ConnectionClosed:
                return False
            if not await self._comes(lambda call=call: call in self.confirmed):
                return False
        return True

    async def goes_on(self) -> bool:
        """Wait for the end of a continuation. False when the process has died before."""
        return await self._comes(lambda: any(frame.get("continuation") and frame["done"] for frame in self.tab.frames))

    @property
    def confirmed(self) -> set[str]:
        """The calls whose answers the tab was shown by the server."""
        states: dict[str, set[str]] = {}
        for frame in self.tab.frames:
            if frame["type"] == "cf_agent_message_updated":
                for call, part in parts_of([frame["message"]]).items():
                    states.setdefault(call, set()).add(part["state"])
        return {call for call, seen in states.items() if seen - OPEN}

    def shown(self, call: str) -> str | None:
        """How the tab was first shown that somebody is asked."""
        for frame in self.tab.frames:
            for message in frame.get("messages", []):
                if (part := parts_of([message]).get(call)) is not None:
                    return part["state"]
            if frame.get("body", "").startswith("{") and (chunk := json.loads(frame["body"])).get("toolCallId") == call:
                if chunk["type"] == "tool-approval-request":
                    return "approval-requested"
                if chunk["type"] == "tool-input-available" and chunk["toolName"] == "place":
                    return "input-available"
        return None

    def _answer(self, call: str) -> dict[str, Any]:
        if self.shown(call) == "approval-requested":
            return {"type": "cf_agent_tool_approval", "toolCallId": call, "approved": True, "autoContinue": True}
        return {"type": "cf_agent_tool_result", "toolCallId": call, "output": f"of {call}", "autoContinue": True}

    async def _comes(self, wanted: Callable[[], bool]) -> bool:
        """Wait until it is so, or the process has died."""
        async with asyncio.timeout(PATIENCE):
            while not wanted():
                if self.tab.closed is not None:
                    return False
                await self.tab.changed()
        return True


def open_calls(messages: Iterable[Frame]) -> list[str]:
    """The calls that somebody is asked to answer."""
    return [call for call, part in parts_of(messages).items() if part["state"] in OPEN]


def unsettled(messages: Iterable[Frame]) -> list[str]:
    """The calls that have no result."""
    return [call for call, part in parts_of(messages).items() if part["state"] not in SETTLED]
