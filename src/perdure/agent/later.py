"""What an agent does later, again, or for long: a facade, as ``base`` is, which it is a part of."""

from __future__ import annotations

import contextlib
import inspect
from collections.abc import AsyncGenerator, Awaitable, Callable
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any, TypeVar, cast

from perdure.agent.queueing import QueueItem
from perdure.agent.retry import Retry
from perdure.agent.schedules import Kind, Schedule
from perdure.agent.threads import in_loop

if TYPE_CHECKING:
    from perdure.agent.live import LiveAgent

__all__ = ["Later"]

R = TypeVar("R")


class Later:
    """The part of :class:`~perdure.Agent` that is about time."""

    if TYPE_CHECKING:

        @property
        def _bound(self) -> LiveAgent: ...

    # ── at a time ───────────────────────────────────────────────────

    hung_schedule_seconds: float = 30
    """A run of a repeating schedule that takes longer than this, and is still not over when the next one is due, is
    cancelled and begun again. Before that the next one is skipped."""

    def schedule(
        self,
        when: float | timedelta | datetime | str,
        callback: str | Callable[..., Any],
        payload: Any = None,
        *,
        idempotent: bool | None = None,
        retry: Retry | None = None,
        tz: str | None = None,
    ) -> Schedule:
        """Call a method of this agent later. It outlives restarts, and wakes the agent when it is not in memory.

        The method is given ``payload``; one with a parameter called ``schedule`` is given that too. It is called at
        least once: a run that the end of the server cuts off is begun again, with ``schedule.interrupted`` set.

        Args:
            when: Seconds from now, a date with a time zone, or a cron expression (5 fields, 6 with seconds in front,
                ``@daily`` …).
            callback: The method, or its name.
            payload: A JSON value.
            idempotent: Whether to keep the schedule of the same kind, method, payload and expression that is there
                already. Default: yes for cron expressions, no for the others.
            retry: How a run that raises is tried again. Default: ``Retry()``. The last error is logged.
            tz: Time zone of the cron expression, like ``"Europe/Berlin"``. Default: UTC.

        Raises:
            ConfigurationError: there is no such method, time or time zone, or a date has no time zone.
            TypeError: ``payload`` has no JSON form.
        """
        add = self._bound.timers.add
        return in_loop(lambda: add(callback, payload, idempotent=idempotent, retry=retry, when=when, tz=tz))

    def schedule_every(
        self,
        seconds: float | timedelta,
        callback: str | Callable[..., Any],
        payload: Any = None,
        *,
        retry: Retry | None = None,
    ) -> Schedule:
        """Call a method again and again, the first time after ``seconds``. Asking for what is there already changes
        nothing. Otherwise as :meth:`schedule`."""
        add = self._bound.timers.add
        return in_loop(lambda: add(callback, payload, idempotent=None, retry=retry, every=seconds))

    def cancel_schedule(self, id: str) -> bool:
        """Forget a schedule; a run that has begun goes on. False when there is none of that id."""
        return in_loop(lambda: self._bound.timers.cancel(id))

    def get_schedule(self, id: str) -> Schedule | None:
        """One schedule; ``None`` when there is none of that id."""
        return in_loop(lambda: self._bound.timers.get(id))

    def get_schedules(
        self, *, kind: Kind | None = None, before: datetime | None = None, after: datetime | None = None
    ) -> list[Schedule]:
        """The schedules of that kind which are due from ``after`` on and before ``before``, in the order in which they
        were made."""
        return in_loop(lambda: self._bound.timers.find(kind, before, after))

    # ── one after the other ─────────────────────────────────────────

    async def queue(
        self,
        callback: str | Callable[..., Any],
        payload: Any = None,
        *,
        id: str | None = None,
        retry: Retry | None = None,
    ) -> QueueItem:
        """Call a method of this agent as soon as it can be, after all that was queued before. Returns when that is
        stored.

        Items run one at a time, each to its end, and not as part of the call that queues them. The method is given
        ``payload``; one with a parameter called ``item`` is given that too. It is called at least once: what the end of
        the server cuts off is begun again, with ``item.interrupted`` set.

        Args:
            callback: The method, or its name.
            payload: A JSON value.
            id: Of the item; one of that id which is there is replaced and keeps its place. Default: a fresh one.
            retry: How a run that raises is tried again. Default: ``Retry()``. After the last attempt the error is
                logged, the item forgotten, and the next one begun.

        Raises:
            ConfigurationError: there is no such method, or ``id`` is empty.
            TypeError: ``payload`` has no JSON form.
            StorageError: it could not be stored.
        """
        item, stored = self._bound.queue.add(callback, payload, id, retry)
        await stored
        return item

    def dequeue(self, id: str) -> bool:
        """Forget an item of the queue; one that has begun is carried out. False when there is none of that id."""
        return in_loop(lambda: self._bound.queue.remove(id))

    def dequeue_all(self, callback: str | Callable[..., Any] | None = None) -> int:
        """Forget the items of one method, or all of them. Gives how many there were. Otherwise as :meth:`dequeue`."""
        return in_loop(lambda: self._bound.queue.remove_all(callback))

    def get_queue(self, id: str) -> QueueItem | None:
        """One item of the queue, also the one that runs; ``None`` when there is none of that id."""
        return in_loop(lambda: self._bound.queue.get(id))

    def get_queues(self, callback: str | Callable[..., Any] | None = None) -> list[QueueItem]:
        """The items of one method, or all of them, in their order: the first one runs."""
        return in_loop(lambda: self._bound.queue.find(callback))

    # ── now ─────────────────────────────────────────────────────────

    async def retry(
        self,
        call: Callable[[], Awaitable[R] | R],
        retry: Retry | None = None,
        *,
        should_retry: Callable[[Exception], bool] | None = None,
    ) -> R:
        """Call until it goes well, with pauses in between: ``await self.retry(lambda: fetch(url))``.

        Args:
            call: What to call, without arguments. May be ``async``.
            retry: How often, and with which pauses. Default: ``Retry()``.
            should_retry: Whether an error is worth another attempt. Default: all are.

        Raises:
            Exception: what the last attempt raised.
        """
        return cast(R, await self._bound.retry(call, retry or Retry(), should_retry))

    @contextlib.asynccontextmanager
    async def keep_alive(self) -> AsyncGenerator[None]:
        """While this lasts the agent stays in memory, as it does by itself in turns, calls, schedules and the queue:
        ``async with self.keep_alive(): …``. For tasks of the application's own. Nothing of it outlives a restart."""
        with self._bound.held():
            yield

    async def keep_alive_while(self, call: Callable[[], Awaitable[R] | R]) -> R:
        """Call something, which may be ``async``, in :meth:`keep_alive`. Gives what it gives."""
        async with self.keep_alive():
            result: Any = call()
            return await result if inspect.isawaitable(result) else result
