"""Trying again, and staying in memory meanwhile."""

import asyncio
import weakref
from typing import Any

import pytest

from perdure import Agent, ConfigurationError, Retry, callable
from perdure.testing import Gate
from tests.support import Doing, Serve, do
from tests.support.hosting import Hosting, hosting

pytestmark = pytest.mark.anyio

SOON = {"base_delay_ms": 0.01, "max_delay_ms": 0.01}


class Flaky:
    """Fails so many times."""

    def __init__(self, failures: int) -> None:
        self.made = 0
        self._failures = failures

    def __call__(self) -> str:
        self.made += 1
        if self.made <= self._failures:
            raise OSError(self.made)
        return f"after {self.made}"

    async def awaited(self) -> str:
        return self()


# ── trying again ────────────────────────────────────────────────────


async def test_a_call_is_made_until_it_goes_well(serve: Serve) -> None:
    async def work(agent: Agent) -> None:
        flaky = Flaky(2)
        assert await agent.retry(flaky, Retry(**SOON)) == "after 3"
        flaky = Flaky(3)
        assert await agent.retry(flaky.awaited, Retry(max_attempts=4, **SOON)) == "after 4"
        assert await agent.retry(lambda: 5) == 5

    await do(await (await serve(Doing)).tab(agent="doing"), work)


async def test_the_last_error_comes_out(serve: Serve) -> None:
    async def work(agent: Agent) -> None:
        flaky = Flaky(9)
        with pytest.raises(OSError, match="3"):
            await agent.retry(flaky.awaited, Retry(**SOON))
        assert flaky.made == 3
        with pytest.raises(ConfigurationError):
            await agent.retry(flaky, Retry(max_attempts=0))

    await do(await (await serve(Doing)).tab(agent="doing"), work)


async def test_an_error_that_is_not_worth_it_is_not_tried_again(serve: Serve) -> None:
    async def work(agent: Agent) -> None:
        flaky = Flaky(9)
        with pytest.raises(OSError, match="2"):
            await agent.retry(flaky, Retry(**SOON), should_retry=lambda error: error.args == (1,))
        assert flaky.made == 2

    await do(await (await serve(Doing)).tab(agent="doing"), work)


async def test_a_task_that_is_cancelled_tries_nothing_again(serve: Serve) -> None:
    async def work(agent: Agent) -> None:
        entered: list[asyncio.Event] = []

        async def forever() -> None:
            entered.append(asyncio.Event())
            started.set()
            await entered[-1].wait()

        started = asyncio.Event()
        task = asyncio.create_task(agent.retry(forever, Retry(**SOON)))
        await started.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert len(entered) == 1

    await do(await (await serve(Doing)).tab(agent="doing"), work)


# ── staying in memory ───────────────────────────────────────────────


class Tasked(Agent):
    """Begins work in tasks of its own."""

    woken: list[weakref.ref[Agent]]
    gates: list[Gate]
    tasks: set[asyncio.Task[Any]]
    given: list[Any]

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        cls.woken, cls.gates, cls.tasks, cls.given = [], [Gate(), Gate()], set(), []

    def on_start(self) -> None:
        self.woken.append(weakref.ref(self))

    @callable
    def look(self) -> None: ...

    @callable
    def begin(self, number: int) -> None:
        task = asyncio.create_task(self._work(number) if number == 0 else self._work_in_a_call(number))
        self.tasks.add(task)
        task.add_done_callback(self.tasks.discard)

    async def _work(self, number: int) -> None:
        async with self.keep_alive():
            await self.gates[number].passed()

    async def _work_in_a_call(self, number: int) -> None:
        self.given.append(await self.keep_alive_while(lambda: self._wait(number)))
        self.given.append(await self.keep_alive_while(lambda: "not async"))

    async def _wait(self, number: int) -> str:
        await self.gates[number].passed()
        return f"past {number}"


async def pass_idle(host: Hosting) -> None:
    """Let so much time pass that what is idle has left."""
    for _ in range(8):
        await host.advance(15)


async def test_an_agent_stays_in_memory_while_it_is_kept_alive_by_anybody() -> None:
    kind = type("Tasked", (Tasked,), {})
    async with hosting(kind) as host:
        line = host.line(agent="tasked")
        await line.call("begin", 0)
        await line.call("begin", 1)
        await pass_idle(host)
        kind.gates[0].open()
        await asyncio.wait(kind.tasks, return_when=asyncio.FIRST_COMPLETED)
        await pass_idle(host)
        await line.call("look")
        assert len(kind.woken) == 1, "one of the two still goes on"
        kind.gates[1].open()
        await asyncio.gather(*kind.tasks)
        assert kind.given == ["past 1", "not async"]
        await pass_idle(host)
        await line.call("begin", 0)
        assert len(kind.woken) == 2, "it was idle, and has left"
