"""The clock for tests."""

from __future__ import annotations

import asyncio

import pytest

from perdure.testing import FakeClock

pytestmark = pytest.mark.anyio


async def test_time_passes_only_when_told() -> None:
    clock = FakeClock(start_ms=1000)

    clock.advance(1.5)

    assert (clock.now_ms(), clock.monotonic()) == (2500, 1.5)


async def test_sleepers_wake_in_the_order_of_their_time() -> None:
    clock = FakeClock()
    woken: list[tuple[str, float]] = []

    async def sleeper(name: str, seconds: float) -> None:
        await clock.sleep(seconds)
        woken.append((name, clock.monotonic()))

    tasks = [asyncio.ensure_future(sleeper(name, seconds)) for name, seconds in [("c", 9), ("a", 1), ("b", 2)]]
    await clock.sleeping(3)
    clock.advance(5)
    await asyncio.gather(*tasks[1:])

    assert woken == [("a", 5), ("b", 5)]
    assert not tasks[0].done()
    clock.advance(4)
    await tasks[0]


async def test_a_cancelled_sleeper_is_forgotten() -> None:
    clock = FakeClock()
    task = asyncio.ensure_future(clock.sleep(1))
    await clock.sleeping()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task

    other = asyncio.ensure_future(clock.sleep(2))
    await clock.sleeping()
    clock.advance(2)
    await other


async def test_a_sleep_of_nothing_returns_at_once() -> None:
    await FakeClock().sleep(0)
