"""Makes timers out of what agents ask for, and shows them again. Checks everything at once; keeps nothing."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any, cast

from perdure.agent.callbacks import callback_name
from perdure.agent.retry import Retry
from perdure.agent.schedules import LATEST_MS, Kind, Schedule, check_cron, delay_ms, moment_ms, next_cron_ms
from perdure.errors import ConfigurationError
from perdure.protocol import codec
from perdure.storage.timers import TimerRow

if TYPE_CHECKING:
    from perdure.agent.base import Agent

__all__ = ["OWN", "comes_again", "plan", "purpose", "shown"]

OWN = frozenset({"_expire_approval"})
"""Methods of perdure's own that timers call. Users are not shown these."""


def plan(
    agent: Agent,
    id: str,
    now_ms: int,
    callback: str | Callable[..., Any],
    payload: Any,
    retry: Retry | None,
    *,
    when: float | timedelta | datetime | str | None = None,
    every: float | timedelta | None = None,
    tz: str | None = None,
) -> TimerRow:
    """The timer that calls ``callback`` at ``when``, or again and again after ``every``.

    Raises:
        ConfigurationError: something of it cannot be used.
        TypeError: ``payload`` has no JSON form.
    """
    if tz is not None and not isinstance(when, str):
        raise ConfigurationError("tz is the time zone of a cron expression; a delay has none, and a date has its own.")
    cron = check_cron(when, tz or "UTC", now_ms) if isinstance(when, str) else None
    interval_ms = None if every is None else _interval_ms(every)
    due_ms = _due_ms(when, interval_ms, cron, tz, now_ms)
    if due_ms > LATEST_MS:
        raise ConfigurationError(f"{when or every!r} is later than the year 9999.")
    return TimerRow(
        id=id,
        kind=_kind(when, every),
        callback=callback_name(agent, callback, payload, "schedule"),
        payload=codec.encode_text(payload),
        due_ms=due_ms,
        created_ms=now_ms,
        cron=cron,
        tz=tz or "UTC" if cron is not None else None,
        interval_ms=interval_ms,
        retry=None if retry is None else codec.encode_text(retry),
    )


def shown(row: TimerRow, *, interrupted: bool = False) -> Schedule:
    """A timer as users see it."""
    return Schedule(
        id=row.id,
        kind=cast(Kind, row.kind),
        callback=row.callback,
        payload=codec.decode(row.payload),
        due_ms=row.due_ms,
        cron=row.cron,
        tz=row.tz,
        interval=None if row.interval_ms is None else row.interval_ms / 1000,
        interrupted=interrupted,
    )


def purpose(row: TimerRow) -> tuple[object, ...]:
    """What makes two timers the same to an idempotent request."""
    return row.kind, row.callback, row.payload, row.cron, row.tz, row.interval_ms


def comes_again(row: TimerRow) -> bool:
    """Whether it is due again after a run."""
    return row.cron is not None or row.interval_ms is not None


def _kind(when: object, every: object) -> Kind:
    if every is not None:
        return "interval"
    if isinstance(when, str):
        return "cron"
    return "scheduled" if isinstance(when, datetime) else "delayed"


def _interval_ms(every: float | timedelta) -> int:
    interval_ms = delay_ms(every)
    if interval_ms < 1:
        raise ConfigurationError(f"{every!r} is no interval: it must be at least 0.001 seconds.")
    return interval_ms


def _due_ms(when: Any, interval_ms: int | None, cron: str | None, tz: str | None, now_ms: int) -> int:
    if interval_ms is not None:
        return now_ms + interval_ms
    if cron is not None:
        return next_cron_ms(cron, tz or "UTC", now_ms)
    return moment_ms(when) if isinstance(when, datetime) else now_ms + delay_ms(when)
