"""A clock that stands still until a test moves it. Imports nothing of perdure."""

from __future__ import annotations

import asyncio
import heapq
import itertools

__all__ = ["FakeClock"]


class FakeClock:
    """Time for tests. ``clock.now_ms``, ``clock.monotonic`` and ``clock.sleep`` stand in for the real ones."""

    def __init__(self, start_ms: int = 1_800_000_000_000) -> None:
        self._start_ms = start_ms
        self._elapsed = 0.0
        self._order = itertools.count()
        self._sleepers: list[tuple[float, int, asyncio.Future[None]]] = []
        self._changed = asyncio.Event()

    def now_ms(self) -> int:
        """Milliseconds since 1970."""
        return self._start_ms + round(self._elapsed * 1000)

    def monotonic(self) -> float:
        """Seconds since the clock was made."""
        return self._elapsed

    async def sleep(self, seconds: float) -> None:
        """Returns once the test has moved the clock by ``seconds``."""
        if seconds <= 0:
            await asyncio.sleep(0)
            return
        woken: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        heapq.heappush(self._sleepers, (self._elapsed + seconds, next(self._order), woken))
        self._changed.set()
        await woken

    async def sleeping(self, count: int = 1) -> None:
        """Returns once at least ``count`` tasks sleep."""
        while sum(not woken.done() for _, _, woken in self._sleepers) < count:
            self._changed.clear()
            await self._changed.wait()

    def advance(self, seconds: float) -> None:
        """Moves the clock and wakes, in order of their time, those whose time has come."""
        target = self._elapsed + seconds
        while self._sleepers and self._sleepers[0][0] <= target:
            self._elapsed, _, woken = heapq.heappop(self._sleepers)
            if not woken.done():
                woken.set_result(None)
        self._elapsed = target
