"""Timers that end with their agent."""

import asyncio

import pytest

from perdure.host.timers import Timers

pytestmark = pytest.mark.anyio


async def loop_turns() -> None:
    for _ in range(5):
        await asyncio.sleep(0)


async def test_calls_are_made_once_and_in_the_order_of_their_time() -> None:
    timers, calls, last = Timers(), list[str](), asyncio.Event()
    timers.later(0.002, lambda: (calls.append("second"), last.set()))
    timers.later(0.001, lambda: calls.append("first"))
    await last.wait()
    await loop_turns()
    assert calls == ["first", "second"]


async def test_no_call_is_made_after_its_timer_or_all_of_them_were_cancelled() -> None:
    timers, calls = Timers(), list[str]()
    one = timers.later(0, lambda: calls.append("cancelled"))
    other = timers.later(0, lambda: calls.append("closed"))
    one.cancel()
    timers.close()
    await loop_turns()
    assert calls == []
    one.cancel()
    other.cancel()


async def test_a_call_may_set_and_cancel_timers() -> None:
    timers, done = Timers(), asyncio.Event()

    def first() -> None:
        timer.cancel()
        timers.later(0, done.set)

    timer = timers.later(0, first)
    await done.wait()
    timers.close()
