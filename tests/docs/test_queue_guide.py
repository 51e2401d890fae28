"""The agents of docs/how-to/queue.md do what the page says."""

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from docs_src import queue
from docs_src.queue import Inbox, Shop, Weather
from perdure import callable
from perdure.testing import Gate
from tests.support import Serve
from tests.support.fixtures import log, serve
from tests.support.hosting import hosting

__all__ = ["log", "serve"]

pytestmark = pytest.mark.anyio


async def test_the_inbox_answers_each_letter_once(serve: Serve) -> None:
    server = await serve(Inbox)
    tab = await server.tab(agent="inbox")
    await tab.opened()
    for number in (1, 2):
        letter = {"id": f"l{number}", "text": f"number {number}"}
        response = await server.request("POST", "/agents/inbox/room", json=letter)
        assert response.status_code == 202
        await tab.seen(lambda frame, number=number: f"number {number}" in json.dumps(frame))
    await tab.seen(lambda frame: len(frame.get("messages", ())) == 4)
    questions = [message["parts"][0]["text"] for message in (await server.stored(agent="inbox"))[::2]]
    assert questions == ["A letter has come: number 1", "A letter has come: number 2"]


async def test_the_shop_ships_in_order_and_closes(tmp_path: Path) -> None:
    gate, shipped = Gate(), []

    class Counter(Shop):
        @callable
        async def take(self, *books: str) -> None:
            for book in books:
                await self.order(book)

        async def ship(self, book: str, item: Any) -> None:
            shipped.append(book)
            await gate.passed()
            await super().ship(book, item)

        @callable
        def shut(self) -> list[Any]:
            return self.close()

    async with hosting(Counter) as host:
        line = host.line(agent="counter")
        await line.call("take", "a", "b", "c")
        await gate.reached()
        assert await line.call("shut") == ["a", "b", "c"]
        gate.open()
        assert await line.call("shut") == []
        assert shipped == ["a"]


async def test_the_weather_is_asked_for_again_and_watched_by_an_agent_that_stays(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    gate, failures = Gate(), [OSError("no line")]

    async def fetch(city: str) -> str:
        if failures:
            raise failures.pop()
        await gate.passed()
        return "sunny"

    monkeypatch.setattr(queue, "fetch", fetch)

    class Station(Weather):
        forecast = callable(Weather.forecast)
        look_out = callable(Weather.look_out)

    async with hosting(Station) as host:
        line = host.line(agent="station")
        asking = asyncio.create_task(line.call("forecast", "Oslo"))
        await host.clock.sleeping(3)  # alarm, sweep, and the pause before the second attempt
        await host.advance(0.4)
        await line.call("look_out", "Oslo")
        for _ in range(8):
            await host.advance(15)
        gate.open()
        assert await asking == "sunny"
        assert (await line.seen(lambda frame: frame.get("type") == "weather"))["city"] == "Oslo"
