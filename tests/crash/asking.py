"""The app of the crash tests of calls that wait: the last user message says which calls its model makes.

``ask place:c1 pay:c2 then die`` calls ``place`` and ``pay`` under these ids. After their answers the model says
``after``; with ``then die`` it ends the process instead, with ``then hang`` it says ``half`` and nothing more, with
``then hang once`` only the first time.

``place`` is a page's, ``pay`` and ``kills`` need approval; ``slow`` runs until the method ``release`` is called. What
the model is asked and that a tool ran is noted as in the app beside this one, tools with the id of their call. The
process says ``asked`` when the model was asked to go on after answers.
"""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from collections.abc import AsyncGenerator, Iterator
from typing import Any

import msgspec

from perdure import (
    App,
    ChatModel,
    ClientToolCall,
    Finish,
    ModelRequest,
    Think,
    ToolContext,
    callable,
    client_tool,
    tool,
)
from perdure.host.engine import Engine
from perdure.models.contract import Chunk, ModelEvent
from perdure.protocol.messages import text_of
from perdure.testing import RecordedRequest
from tests.crash.app import FOLDER, note
from tests.crash.points import DyingStore

__all__ = ["app"]

released = asyncio.Event()


def die() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def say(line: str) -> None:
    os.write(sys.stdout.fileno(), f"{line}\n".encode())


@tool(needs_approval=True)
async def pay(context: ToolContext) -> str:
    """Pay."""
    note("tools", context.tool_call_id.encode())
    return "paid"


@tool(needs_approval=True)
async def kills(context: ToolContext) -> None:
    """End the process."""
    note("tools", context.tool_call_id.encode())
    die()


@tool
async def slow() -> str:
    """Wait."""
    await released.wait()
    return "released"


class Asker(ChatModel):
    name = "asker"

    async def stream(self, request: ModelRequest) -> AsyncGenerator[ModelEvent, None]:
        note("requests", msgspec.json.encode(RecordedRequest.of(request)))
        messages = [item.message for item in request.history if item.message["id"]]
        last = max(index for index, message in enumerate(messages) if message["role"] == "user")
        order, _, then = text_of(messages[last]).partition(" then ")
        if last == len(messages) - 1 and order.startswith("ask"):
            for chunk in _calls(order):
                yield chunk
            yield Finish("tool-calls")
            return
        say("asked")
        if then == "die":
            die()
        yield {"type": "text-start", "id": "0"}
        hangs = then == "hang" or (then == "hang once" and _is_first("hung"))
        yield {"type": "text-delta", "id": "0", "delta": "half" if hangs else "after"}
        if hangs:
            await asyncio.Event().wait()
        yield {"type": "text-end", "id": "0"}
        yield Finish("stop")


def _is_first(name: str) -> bool:
    """Whether nobody has asked that before, in this process or an earlier one."""
    path = FOLDER / name
    is_first = not path.exists()
    path.touch()
    return is_first


def _calls(order: str) -> Iterator[Chunk]:
    yield {"type": "text-start", "id": "0"}
    yield {"type": "text-delta", "id": "0", "delta": "asking"}
    yield {"type": "text-end", "id": "0"}
    for given in order.split()[1:]:
        name, _, id = given.partition(":")
        made: dict[str, Any] = {"toolCallId": id, "toolName": name}
        yield {"type": "tool-input-start", **made}
        yield {"type": "tool-input-available", **made, "input": {}}


class Agent(Think):
    model = Asker()

    def get_tools(self):
        return [pay, kills, slow, client_tool("place")]

    @callable
    def release(self) -> None:
        released.set()

    @callable
    async def child(self) -> None:
        """Make the sub-agent."""
        await self.sub_agent(Helper, "x")

    @callable
    async def ask_child(self, order: str) -> str:
        """Ask the sub-agent, with a tool of this caller that never returns."""

        async def hang(call: ClientToolCall) -> None:
            say("hangs")
            await asyncio.Event().wait()

        child = await self.sub_agent(Helper, "x")
        result = await child.chat(order, client_tools=[client_tool("there")], on_client_tool_call=hang)
        return result.status


class Helper(Agent):
    """A sub-agent that does the same."""


app = App(Agent, sub_agents=[Helper], engine=Engine(open_store=DyingStore.opened))
