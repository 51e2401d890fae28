"""Sub-agents that are not in memory: woken by calls and timers, closed and forgotten where they are."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from perdure import Agent, callable
from perdure.protocol.names import Address
from perdure.storage.contract import LoadValue
from perdure.storage.timers import LoadTimers
from perdure.testing import FakeClock
from tests.requirements.marker import requirement
from tests.support.hosting import PATIENCE, Hosting, Line, hosting

pytestmark = pytest.mark.anyio

CHILD = Address("parent", "p").child("child", "a/b")
ran: list[tuple[str, str, Any]] = []


class Parent(Agent):
    @callable
    async def remind(self, seconds: float) -> None:
        await (await self.sub_agent(Child, "a/b")).remind(seconds)

    @callable
    async def count(self) -> int:
        return await (await self.sub_agent(Child, "a/b")).count()

    @callable
    async def drop(self, storage: bool) -> None:
        end = self.delete_sub_agent if storage else self.abort_sub_agent
        await end(Child, "a/b")

    @callable
    async def children(self) -> list[str]:
        return [child.name for child in await self.list_sub_agents()]


class Child(Agent):
    rang: asyncio.Event

    def on_start(self) -> None:
        self.calls = 0

    async def remind(self, seconds: float) -> None:
        self.schedule(seconds, "ring", "hello")

    async def ring(self, payload: Any) -> None:
        ran.append((self.name, self.parent_path[0][1], payload))
        self.rang.set()

    @callable
    async def count(self) -> int:
        self.calls += 1
        return self.calls


def begin() -> None:
    ran.clear()
    Child.rang = asyncio.Event()


@pytest.fixture
async def host() -> AsyncIterator[Hosting]:
    begin()
    async with hosting(Parent, Child) as host:
        yield host


async def pass_idle(host: Hosting) -> None:
    """Let so much time pass that what is idle has left memory."""
    for _ in range(6):
        await host.advance(15)


async def rung(count: int) -> list[tuple[str, str, Any]]:
    """The calls by timers, once there are so many."""
    async with asyncio.timeout(PATIENCE):
        while len(ran) < count:
            Child.rang.clear()
            await Child.rang.wait()
    return ran


async def exists(host: Hosting) -> bool:
    await host.store.settled()
    return await host.read(LoadValue(CHILD.key, "agent", "created")) is not None


@requirement("engine:144")
async def test_a_childs_timer_wakes_the_child_also_after_a_restart(tmp_path: Path) -> None:
    clock = FakeClock()
    begin()
    for seconds in (600, 1200):
        async with hosting(Parent, Child, folder=tmp_path, clock=clock) as host:
            await host.line("p", "parent").call("remind", seconds)
        async with hosting(Parent, Child, folder=tmp_path, clock=clock) as host:
            await host.advance(seconds - 1)
            assert len(ran) == (seconds == 1200)
            await host.advance(1)
            assert await rung(seconds // 600) == [("a/b", "p", "hello")] * (seconds // 600)


@requirement("engine:144")
@pytest.mark.parametrize("in_memory", [True, False])
async def test_the_timers_of_a_deleted_child_are_gone_and_do_not_make_it_anew(host: Hosting, in_memory: bool) -> None:
    parent = host.line("p", "parent")
    await parent.call("remind", 600)
    if not in_memory:
        await pass_idle(host)
    await parent.call("drop", True)
    assert await host.read(LoadTimers(CHILD.key)) == []
    await host.advance(700)
    assert not await exists(host)
    await host.advance(700)
    assert ran == []
    assert not await exists(host)
    assert await parent.call("children") == []


async def test_an_aborted_childs_timer_still_rings(host: Hosting) -> None:
    parent = host.line("p", "parent")
    await parent.call("remind", 600)
    await parent.call("drop", False)
    await host.advance(601)
    assert await rung(1) == [("a/b", "p", "hello")]


async def test_a_child_that_left_memory_is_woken_by_a_call(host: Hosting) -> None:
    parent = host.line("p", "parent")
    assert [await parent.call("count") for _ in range(2)] == [1, 2]
    await pass_idle(host)
    assert await parent.call("count") == 1


async def test_deleting_a_child_that_left_memory_closes_the_connections_that_stayed_open(host: Hosting) -> None:
    parent = host.line("p", "parent")
    line = Line(host.bus, CHILD, {})
    assert await line.call("count") == 1
    await pass_idle(host)
    assert await line.call("count") == 1, "the child should have left memory"
    await pass_idle(host)
    await parent.call("drop", True)
    assert await line.ended() == (1001, "Sub-agent deleted")
    line.post({"type": "rpc", "id": "late", "method": "count", "args": []})
    await host.advance(1)
    assert not await exists(host)
    assert not [frame for frame in line.frames if frame.get("id") == "late"]
    line.leave()


async def test_aborting_a_child_that_is_not_in_memory_leaves_its_connections_open(host: Hosting) -> None:
    parent = host.line("p", "parent")
    line = Line(host.bus, CHILD, {})
    assert await line.call("count") == 1
    await pass_idle(host)
    await parent.call("drop", False)
    assert await line.call("count") == 1
    assert line.closed is None
