"""The agents of docs/how-to/schedule.md do what the page says."""

import json

import pytest

from docs_src.schedule import Secretary, Shop
from perdure import callable
from perdure.host.engine import Engine
from perdure.testing import FakeClock
from tests.support import Serve
from tests.support.hosting import hosting

pytestmark = pytest.mark.anyio


async def test_the_secretary_reminds_everybody(serve: Serve) -> None:
    clock = FakeClock()
    server = await serve(Secretary, engine=Engine(clock=clock))
    tab, other = await server.tab(agent="secretary"), await server.tab(agent="secretary")
    await tab.ask("r1", 'call remind_me {"minutes": 20, "text": "Tea"}')
    await tab.done("r1")
    output = (await server.stored(agent="secretary"))[1]["parts"]
    assert any("due" in part.get("output", {}) for part in output)
    await clock.sleeping(2)
    clock.advance(20 * 60)
    reminder = await other.seen(lambda frame: frame["type"] == "reminder")
    assert reminder["text"] == "Tea"


async def test_the_shop_forgets_orders_and_has_one_of_each_schedule_only() -> None:
    class Counter(Shop):
        @callable
        def take(self, *items: str) -> int:
            for item in items:
                self.order(item)
            return len(self.get_schedules())

        @callable
        def close(self) -> int:
            self.forget_orders()
            return len(self.get_schedules())

    class Desk(Secretary):
        @callable
        def kinds(self) -> str:
            return json.dumps(sorted(schedule.kind for schedule in self.get_schedules()))

    async with hosting(Counter, Desk) as host:
        line = host.line(agent="counter")
        assert await line.call("take", "a", "b") == 2
        assert await line.call("close") == 0
        for _ in range(3):
            assert json.loads(await host.line(agent="desk").call("kinds")) == ["cron", "interval"]
            for _ in range(6):
                await host.advance(15)
