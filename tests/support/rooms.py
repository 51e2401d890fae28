"""A conversation at a host whose clock the test moves: asked, answered, looked at."""

from __future__ import annotations

import itertools
import json
from typing import Any

from perdure.protocol.messages import is_tool_part
from tests.support.hosting import Hosting, Line
from tests.support.tabs import chat_request, user_message

__all__ = ["WINDOW", "Room"]

WINDOW = 0.05
"""Seconds between the last answer and the turn that goes on."""

_requests = itertools.count(1)


class Room:
    """One agent, and a connection to it that does what a page does."""

    def __init__(self, host: Hosting, name: str = "room", agent: str = "agent") -> None:
        self.host = host
        self.name, self.agent = name, agent
        self.line = host.line(name, agent)

    async def ask(self, text: str = "Hi", request: str | None = None, **body: Any) -> str:
        """Say something and wait until its turn is over; gives the id of the request."""
        request = self.begin(text, request, **body)
        await self.done(request)
        return request

    def begin(self, text: str = "Hi", request: str | None = None, **body: Any) -> str:
        """Say something; gives the id of the request."""
        request = request or f"r{next(_requests)}"
        posted = {"messages": [user_message(text)], "trigger": "submit-message", **body}
        self.line.post(chat_request(request, json.dumps(posted)))
        return request

    async def done(self, request: str) -> dict[str, Any]:
        """The end of a request."""
        return await self.line.seen(lambda frame: frame.get("id") == request and frame.get("done") is True)

    async def settle(self) -> None:
        """Returns once all that was posted before was handled, and what it led to is here."""
        request = f"settle-{next(_requests)}"
        self.line.post(chat_request(request, "", "GET"))
        self.line.frames.remove(await self.done(request))

    def result(self, call: str, output: Any = "given", *, line: Line | None = None, **more: Any) -> None:
        """Give the result of a call, as a page does that wants the conversation to go on."""
        frame = {"type": "cf_agent_tool_result", "toolCallId": call, "output": output, "autoContinue": True, **more}
        (line or self.line).post(frame)

    def decide(self, call: str, approved: bool = True, *, line: Line | None = None, **more: Any) -> None:
        """Approve a call, or deny it."""
        frame = {"type": "cf_agent_tool_approval", "toolCallId": call, "approved": approved, "autoContinue": True}
        (line or self.line).post({**frame, **more})

    async def continued(self, count: int = 1) -> dict[str, Any]:
        """The end of the continuation (of the so-manieth one), once the time is over that it waits."""
        await self.settle()
        await self.host.advance(WINDOW)
        return await self.line.seen(lambda frame: bool(frame.get("continuation") and frame.get("done")), count)

    async def messages(self) -> list[dict[str, Any]]:
        """The conversation as a new connection is shown it. What was posted before is stored then."""
        await self.settle()
        line = self.host.line(self.name, self.agent)
        shown = await line.seen(lambda frame: frame["type"] == "cf_agent_chat_messages")
        line.leave()
        return shown["messages"]

    async def parts(self) -> dict[str, dict[str, Any]]:
        """The tool parts of the conversation by the id of their call."""
        messages = await self.messages()
        return {part["toolCallId"]: part for message in messages for part in message["parts"] if is_tool_part(part)}

    async def states(self) -> dict[str, str]:
        """Their states."""
        return {call: part["state"] for call, part in (await self.parts()).items()}
