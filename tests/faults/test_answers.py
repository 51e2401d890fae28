"""Answers to tool calls in odd places and at odd moments: none is lost, and no call stays open without its record."""

from typing import Any

import pytest

from perdure import Think, callable, client_tool, tool
from perdure.chat.answers import NOT_RUN
from perdure.chat.repair import INTERRUPTED
from perdure.protocol import codec
from perdure.protocol.messages import is_tool_part
from perdure.storage.contract import LoadPath
from perdure.testing import ScriptedModel, call, say
from tests.support import agent
from tests.support.hosting import Hosting, hosting
from tests.support.rooms import Room

pytestmark = pytest.mark.anyio

PLACE = client_tool("place")


class Till:
    """A tool that needs approval, and what it was paid."""

    def __init__(self) -> None:
        self.paid: list[int] = []

        @tool(needs_approval=True)
        async def pay(amount: int) -> str:
            """Pay."""
            self.paid.append(amount)
            return f"paid {amount}"

        self.tool = pay


@pytest.fixture
def till() -> Till:
    return Till()


def pays(amount: int = 1, id: str = "c1") -> Any:
    return call("pay", {"amount": amount}, id=id)


async def stored_parts(host: Hosting, key: str = "agent/room") -> dict[str, dict[str, Any]]:
    """The tool parts of the whole stored path, not only of what clients are sent."""
    messages = [codec.decode(row.body) for row in await host.read(LoadPath(key))]
    return {part["toolCallId"]: part for message in messages for part in message["parts"] if is_tool_part(part)}


@callable
async def note(self: Think, size: int) -> None:
    """Add a message of this size without a turn."""
    await self.add_messages({"role": "user", "parts": [{"type": "text", "text": "x" * size}]})


# ── the message is not in memory ────────────────────────────────────


async def test_a_call_that_was_windowed_out_of_memory_is_answered_in_its_message(till: Till) -> None:
    model = ScriptedModel([[pays()], [say("done")]])
    kind = agent(model, till.tool, hydration_byte_budget=1500, note=note)
    async with hosting(kind) as host:
        room = Room(host)
        await room.ask()
        for _ in range(3):
            await room.line.call("note", 1000)
        room.decide("c1")
        await room.settle()
        assert (await stored_parts(host))["c1"]["state"] == "approval-responded"
        await room.continued()
        part = (await stored_parts(host))["c1"]
        assert (part["state"], part["output"]) == ("output-available", "paid 1")
    assert till.paid == [1]


async def test_a_call_that_was_windowed_out_of_memory_is_given_up_in_its_message(till: Till) -> None:
    model = ScriptedModel([[pays()], [say("done")]])
    kind = agent(model, till.tool, hydration_byte_budget=1500, note=note)
    async with hosting(kind) as host:
        room = Room(host)
        await room.ask()
        for _ in range(3):
            await room.line.call("note", 1000)
        await room.ask("Never mind.")
        part = (await stored_parts(host))["c1"]
        assert (part["state"], part["errorText"]) == ("output-error", INTERRUPTED)
    assert till.paid == []
