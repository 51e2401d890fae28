"""The one alarm of a host: wakes agents when their timers are due, whether they are in memory or not.

Knows when each agent is due next, within a horizon; what lies behind it is looked up in the store as the horizon moves.
Runs no timer itself: it rings, and the agent tells it the next time.
"""

from __future__ import annotations

import heapq
import logging
from collections.abc import Callable

import anyio

from perdure.errors import StorageError
from perdure.host.clock import Clock
from perdure.storage.contract import Store
from perdure.storage.timers import AgentsWithTimers

__all__ = ["Alarm"]

logger = logging.getLogger(__name__)

HORIZON_MS = 3_600_000
"""How far ahead it looks. What is due later takes no memory."""
LONGEST_PAUSE = 10.0
"""Seconds after which it looks at the clock again at the latest: it may have been set."""
SET_BACK_MS = 500
"""A clock that goes back by more than this was set."""
FIRST_RETRY, LAST_RETRY = 1.0, 60.0
"""Seconds before an agent that could not be woken is tried again; doubled each time."""


class Alarm:
    """Rings for agents."""

    def __init__(self, clock: Clock, store: Store, ring: Callable[[str], None]) -> None:
        """An alarm that is not running yet.

        Args:
            clock: What time it is.
            store: Where the timers are.
            ring: Called with the key of an agent that is due. It sets the next time, or the agent is not rung again.
        """
        self._clock = clock
        self._store = store
        self._ring = ring
        self._due: dict[str, int] = {}
        self._queue: list[tuple[int, str]] = []
        """Entries that no longer hold are passed over."""
        self._failures: dict[str, int] = {}
        self._known_until = 0
        self._drift: float | None = None
        self._pause: anyio.CancelScope | None = None

    def set(self, key: str, due_ms: int | None) -> None:
        """Ring for this agent then, and not before; ``None``: not at all."""
        self._failures.pop(key, None)
        self._set(key, due_ms)

    def retry(self, key: str) -> None:
        """This agent could not be woken: ring again after a while, later each time."""
        failures = self._failures[key] = self._failures.get(key, 0) + 1
        pause = min(FIRST_RETRY * 2 ** min(failures - 1, 10), LAST_RETRY)
        self._set(key, self._clock.now_ms() + round(pause * 1000))

    async def run(self) -> None:
        """Ring when it is time, for ever."""
        while True:
            if self._was_set_back() or self._clock.now_ms() > self._known_until - HORIZON_MS // 2:
                await self._look_ahead()
            self._ring_all()
            await self._wait()

    def _set(self, key: str, due_ms: int | None) -> None:
        if due_ms is None or due_ms > self._clock.now_ms() + HORIZON_MS:
            self._due.pop(key, None)  # what lies behind the horizon is looked up, twice before it is due
        elif self._due.get(key) != due_ms:
            self._due[key] = due_ms
            heapq.heappush(self._queue, (due_ms, key))
            if len(self._queue) > 2 * len(self._due) + 64:  # mostly entries that no longer hold
                self._queue = sorted((due, key) for key, due in self._due.items())
            if self._queue[0] == (due_ms, key) and self._pause is not None:
                self._pause.cancel()

    async def _look_ahead(self) -> None:
        now = self._clock.now_ms()
        try:
            found = await self._store.read(AgentsWithTimers(now, now + HORIZON_MS))
        except StorageError as error:
            logger.error("The timers cannot be looked up; trying again in %.0f seconds: %s", LONGEST_PAUSE, error)
            return
        self._known_until = now + HORIZON_MS
        for agent in found:
            # The agent's own word counts more: it may know of a change that is on its way to the store.
            if agent.key not in self._due or agent.due_ms <= now:
                self._set(agent.key, agent.due_ms)

    def _was_set_back(self) -> bool:
        drift = self._clock.now_ms() - self._clock.monotonic() * 1000
        last, self._drift = self._drift, drift
        if last is None or drift > last - SET_BACK_MS:
            return False
        logger.warning("The clock was set back by %.1f seconds", (last - drift) / 1000)
        return True

    def _ring_all(self) -> None:
        now = self._clock.now_ms()
        while self._queue and self._queue[0][0] <= now:
            due_ms, key = heapq.heappop(self._queue)
            if self._due.get(key) == due_ms:
                del self._due[key]
                self._ring(key)

    async def _wait(self) -> None:
        seconds = LONGEST_PAUSE
        if self._queue:
            seconds = min(seconds, (self._queue[0][0] - self._clock.now_ms()) / 1000)
        with anyio.CancelScope() as self._pause:
            await self._clock.sleep(max(seconds, 0))
        self._pause = None
