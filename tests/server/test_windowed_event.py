"""What the application is told of a conversation that is too large to be held as a whole."""

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from perdure import Event, Limits
from perdure.storage.contract import AppendMessage
from perdure.storage.sqlite import SqliteStore
from perdure.testing import ScriptedModel, say
from tests.requirements import requirement
from tests.support import Serve, Tab, agent, user_message

pytestmark = pytest.mark.anyio

SIZE = len(json.dumps(user_message("question", "u000"))) + 1


class Told:
    """The windowed events, and a way to wait for them."""

    def __init__(self) -> None:
        self.of: list[dict[str, Any]] = []
        self._changed = asyncio.Event()

    def __call__(self, event: Event) -> None:
        if event.type == "chat:hydration:windowed":
            self.of.append(dict(event.payload))
            self._changed.set()

    async def times(self, count: int) -> list[bool]:
        """What was said, once it was said so often."""
        async with asyncio.timeout(10):
            while len(self.of) < count:
                self._changed.clear()
                await self._changed.wait()
        return [payload["windowed"] for payload in self.of]


async def seed(folder: Path, count: int) -> None:
    """Store so many messages as an earlier server did."""
    store = await SqliteStore.open(folder)
    operations = [
        AppendMessage(pos, f"m{pos:03}", pos - 1 if pos else None, role, json.dumps(message), pos)
        for pos in range(count)
        for role in (("user", "assistant")[pos % 2],)
        for message in ({**user_message("question", f"m{pos:03}"), "role": role},)
    ]
    await store.write("agent/room", store.epoch, operations)
    await store.close()


async def chat(tab: Tab, *requests: str) -> None:
    for request in requests:
        await tab.ask(request, user_message("question", f"u-{request}"))
        assert (await tab.done(request))["outcome"] == "completed"


@requirement("engine:62")
async def test_a_conversation_that_is_too_large_to_load_is_told_once_and_goes_on(serve: Serve, tmp_path: Path) -> None:
    await seed(tmp_path, 40)
    told, model = Told(), ScriptedModel([say("answer") for _ in range(4)])
    server = await serve(agent(model, hydration_byte_budget=10 * SIZE), limits=Limits(window=4 * SIZE), on_event=told)
    tab = await server.tab()
    await tab.opened()
    assert await told.times(1) == [True]
    assert told.of[0]["storedMessages"] == 40
    assert 0 < told.of[0]["messages"] <= 10
    assert 0 < told.of[0]["bytes"] <= 10 * SIZE

    await chat(tab, "r1", "r2", "r3")
    late = await server.tab()
    await late.opened()
    assert await told.times(1) == [True], "nothing has changed"

    await tab.clear()
    assert await told.times(2) == [True, False]
    await chat(tab, "r4")
    assert await told.times(2) == [True, False]
    model.assert_done()


@requirement("engine:62")
async def test_a_conversation_that_outgrows_memory_is_told_when_it_does(serve: Serve) -> None:
    told, model = Told(), ScriptedModel([say("answer") for _ in range(12)])
    server = await serve(agent(model, hydration_byte_budget=10 * SIZE), on_event=told)
    tab = await server.tab()
    await chat(tab, "r1", "r2")
    assert told.of == [], "all of it is in memory"
    await chat(tab, *(f"r{number}" for number in range(3, 13)))
    await tab.settle()
    assert await told.times(1) == [True]
