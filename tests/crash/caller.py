"""An app whose agent asks itself with a client tool that it never finishes to run."""

from __future__ import annotations

import asyncio
import json

from perdure import App, ClientToolCall, Think, callable
from tests.crash.app import Actor, note

__all__ = ["app"]


class Agent(Think):
    model = Actor()

    @callable
    async def ask(self) -> None:
        await self.chat("tool timezone", client_tools=[{"name": "timezone"}], on_client_tool_call=self._hang)

    async def _hang(self, call: ClientToolCall) -> None:
        note("tools", b"timezone")
        self.broadcast(json.dumps({"type": "begun"}))
        await asyncio.Event().wait()

    @callable
    def pending(self) -> int:
        return len(self.pending_approvals())


app = App(Agent)
