"""The schedules of one agent: made, found, cancelled, run when they are due (reference: engine §1.5).

In memory for as long as the agent is, and in the store always. A run is marked in the store before its method is
called, and the mark goes when it is over: one that was cut off by the end of the process is found by it and begun
again. The host is told when the next one is due and calls :meth:`Timers.ring` then.
"""

from __future__ import annotations

import asyncio
import heapq
import logging
import math
import random
from collections.abc import Callable, Sequence
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

import anyio
from msgspec.structs import replace

from perdure.agent.callbacks import Callback
from perdure.agent.planning import OWN, comes_again, plan, purpose, shown
from perdure.agent.retry import RNG, Retry, retrying
from perdure.agent.schedules import Kind, Schedule, moment_ms, next_cron_ms
from perdure.agent.services import Services
from perdure.agent.stopping import is_stopping
from perdure.protocol import codec
from perdure.storage.contract import Commit
from perdure.storage.timers import DeleteTimer, PutTimer, TimerRow

if TYPE_CHECKING:
    from perdure.agent.base import Agent

__all__ = ["INTERRUPTIONS", "Timers"]

logger = logging.getLogger(__name__)

INTERRUPTIONS = 10
"""How often a run that the end of the process cut off is begun again before it counts as failed: it may be what ends
the process."""


class Timers:
    """Schedules by id."""

    def __init__(self, agent: Agent, services: Services, rng: random.Random | None = None) -> None:
        """No schedules yet.

        Args:
            agent: Whose methods are called.
            services: The host's side.
            rng: For the delays between attempts.
        """
        self._agent = agent
        self._services = services
        self._rng = rng or RNG
        self._rows: dict[str, TimerRow] = {}
        self._runs: dict[str, _Run] = {}
        self._queue: list[tuple[int, str]] = []
        """When which timer is due; entries that no longer hold are passed over."""
        self._announced: int | None = None
        self._starting = True

    def __len__(self) -> int:
        return len(self._rows)

    def load(self, rows: Sequence[TimerRow]) -> None:
        """Take over what is stored."""
        for row in rows:
            self._keep(row)

    def started(self) -> None:
        """The agent has come into memory: from now on its schedules run. What was cut off is begun again."""
        self._starting = False
        for row in list(self._rows.values()):
            if row.begun > INTERRUPTIONS:
                logger.error("The schedule %s was cut off %d times and is given up", self._name(row), row.begun)
                self._over(row.id)
            elif row.begun and row.id not in self._runs:
                self._begin(row)
        self.ring()

    # ── for the agent's own code ────────────────────────────────────

    def add(
        self,
        callback: str | Callable[..., Any],
        payload: Any,
        *,
        idempotent: bool | None,
        retry: Retry | None,
        when: float | timedelta | datetime | str | None = None,
        every: float | timedelta | None = None,
        tz: str | None = None,
    ) -> Schedule:
        """Keep a new schedule; an idempotent one only when there is none that is the same. Gives the one that is there.

        Raises:
            ConfigurationError: something of it cannot be used.
            TypeError: ``payload`` has no JSON form.
        """
        id, now = self._services.new_id(), self._services.now_ms()
        row = plan(self._agent, id, now, callback, payload, retry, when=when, every=every, tz=tz)
        if comes_again(row) if idempotent is None else idempotent:
            if (existing := self._same(row)) is not None:
                return shown(existing)
        elif self._starting and not comes_again(row):
            logger.warning(
                "on_start() makes the schedule %s anew each time the agent comes into memory; with idempotent=True it "
                "would do so once",
                self._name(row),
            )
        self._services.write([PutTimer(row)])
        self._keep(row)
        self._announce()
        return shown(row)

    def cancel(self, id: str) -> bool:
        """Forget a schedule; a run that has begun goes on. False when there is none."""
        if self._rows.pop(id, None) is None:
            return False
        self._services.write([DeleteTimer(id)])
        self._announce()
        return True

    def get(self, id: str) -> Schedule | None:
        """One schedule."""
        row = self._rows.get(id)
        return None if row is None or row.callback in OWN else shown(row)

    def find(self, kind: Kind | None, before: datetime | None, after: datetime | None) -> list[Schedule]:
        """The schedules of that kind that are due in that time, the one that was made first at the beginning.

        Raises:
            ConfigurationError: a date has no time zone.
        """
        earliest = -math.inf if after is None else moment_ms(after)
        latest = math.inf if before is None else moment_ms(before)
        return [
            shown(row)
            for row in self._rows.values()
            if kind in {None, row.kind} and earliest <= row.due_ms < latest and row.callback not in OWN
        ]

    def _same(self, row: TimerRow) -> TimerRow | None:
        for existing in self._rows.values():
            # One that runs now and is forgotten afterwards is no longer to come.
            if purpose(existing) == purpose(row) and (comes_again(existing) or not existing.begun):
                return existing
        return None

    # ── for the host ────────────────────────────────────────────────

    def ring(self) -> None:
        """It may be time: begin what is due."""
        if self._starting:
            return
        now = self._services.now_ms()
        for row in self._pull_back(now):
            self._keep(row)
        while (due := self._next()) is not None and due <= now:
            _, id = heapq.heappop(self._queue)
            self._due(self._rows[id], now)
        self._services.alarm(due)
        self._announced = due

    def _due(self, row: TimerRow, now: int) -> None:
        run = self._runs.get(row.id)
        if run is None:
            self._begin(row)
            return
        self._keep(replace(row, due_ms=self._following(row, now)))
        if now - run.since_ms < self._agent.hung_schedule_seconds * 1000:
            logger.warning("Skipped a run of the schedule %s: the last one is not over", self._name(row))
        else:
            logger.warning("The schedule %s hangs: its run is cancelled and begun again", self._name(row))
            run.again = True
            run.scope.cancel()

    # ── running ─────────────────────────────────────────────────────

    def _begin(self, row: TimerRow) -> None:
        """Mark the run in the store, then call the method."""
        now = self._services.now_ms()
        self._keep(replace(row, begun=row.begun + 1, due_ms=self._following(row, now)))
        run = self._runs[row.id] = _Run(now)
        marked = self._services.checkpoint([PutTimer(self._rows[row.id])])
        self._services.spawn(self._run(row, run, marked), f"schedule {row.callback}")

    async def _run(self, row: TimerRow, run: _Run, marked: Commit) -> None:
        await marked
        with run.scope:
            await self._call(row)
        del self._runs[row.id]
        if run.again and row.id in self._rows:
            self._begin(replace(self._rows[row.id], begun=0))
        else:
            self._over(row.id)

    async def _call(self, row: TimerRow) -> None:
        retry = Retry() if row.retry is None else codec.decode_as(Retry, row.retry)
        try:
            callback = Callback(self._agent, row.callback, "schedule")
            schedule = shown(row, interrupted=row.begun > 0)
            await retrying(
                lambda: callback.call(schedule.payload, schedule),
                retry,
                sleep=self._services.sleep,
                rng=self._rng,
                name=row.callback,
            )
        except (Exception, asyncio.CancelledError) as error:
            if isinstance(error, asyncio.CancelledError) and is_stopping():
                raise
            # The application's code, or a method that a newer version of it has no more. Other schedules go on.
            logger.exception("The schedule %s failed", self._name(row))

    def _over(self, id: str) -> None:
        """A run is over, whatever came of it: what runs once is forgotten, the rest waits for the next time."""
        row = self._rows.get(id)
        if row is None:
            return
        if comes_again(row):
            self._keep(replace(row, begun=0))
            self._services.checkpoint([PutTimer(self._rows[id])])
        else:
            del self._rows[id]
            self._services.checkpoint([DeleteTimer(id)])
        self._announce()

    # ── when ────────────────────────────────────────────────────────

    def _keep(self, row: TimerRow) -> None:
        self._rows[row.id] = row
        heapq.heappush(self._queue, (row.due_ms, row.id))
        if len(self._queue) > 2 * len(self._rows) + 16:  # mostly entries that no longer hold
            self._queue = sorted((row.due_ms, row.id) for row in self._rows.values())

    def _next(self) -> int | None:
        """When the next one is due."""
        while self._queue:
            due, id = self._queue[0]
            row = self._rows.get(id)
            if row is not None and row.due_ms == due and (comes_again(row) or not row.begun):
                return due
            heapq.heappop(self._queue)
        return None

    def _announce(self) -> None:
        due = self._next()
        if due != self._announced and not self._starting:
            self._announced = due
            self._services.alarm(due)

    def _following(self, row: TimerRow, now: int) -> int:
        """When it is due after a run at ``now``; times that were missed are not made up for."""
        if row.due_ms > now:
            return row.due_ms
        if row.cron is not None:
            return next_cron_ms(row.cron, row.tz or "UTC", now)
        if row.interval_ms is not None:
            missed = (now - row.due_ms) // row.interval_ms
            return row.due_ms + (missed + 1) * row.interval_ms
        return row.due_ms

    def _pull_back(self, now: int) -> list[TimerRow]:
        """Intervals further away than their length, as when the clock was set back."""
        return [
            replace(row, due_ms=now + row.interval_ms)
            for row in self._rows.values()
            if row.interval_ms is not None and row.due_ms - row.interval_ms > now
        ]

    def _name(self, row: TimerRow) -> str:
        return f"{type(self._agent).__name__}.{row.callback} ({row.kind}, {row.id})"


class _Run:
    """A run that is not over."""

    def __init__(self, since_ms: int) -> None:
        self.since_ms = since_ms
        self.scope = anyio.CancelScope()
        self.again = False
        """Whether the next one begins as soon as this one is over."""
