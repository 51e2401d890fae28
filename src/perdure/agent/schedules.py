"""What an agent may ask to be done later: the schedule as users see it, and when it is due.

Pure but for the time zone files. Keeping and running schedules is the business of ``timers``.
"""

from __future__ import annotations

import math
from datetime import UTC, datetime, timedelta
from typing import Any, Literal
from zoneinfo import ZoneInfo

import msgspec

from perdure.errors import ConfigurationError

__all__ = ["LATEST_MS", "Kind", "Schedule", "check_cron", "delay_ms", "moment_ms", "next_cron_ms"]

Kind = Literal["delayed", "scheduled", "cron", "interval"]
"""After a delay, at a moment, by a cron expression, or again and again after an interval."""

LATEST_MS = 253_402_300_799_000
"""The end of the year 9999, beyond which dates cannot be told."""

ALIASES = {
    "@yearly": "0 0 1 1 *",
    "@annually": "0 0 1 1 *",
    "@monthly": "0 0 1 * *",
    "@weekly": "0 0 * * 0",
    "@daily": "0 0 * * *",
    "@midnight": "0 0 * * *",
    "@hourly": "0 * * * *",
}


class Schedule(msgspec.Struct, frozen=True, kw_only=True):
    """Something an agent does later."""

    id: str
    """Unique within the agent."""
    kind: Kind
    callback: str
    """Name of the agent's method."""
    payload: Any
    """What the method is given: a JSON value, a copy."""
    due_ms: int
    """When it runs next: Unix time in milliseconds. Of a ``delayed`` or ``scheduled`` one that runs now: when it was
    due."""
    cron: str | None = None
    """The expression, for ``cron``."""
    tz: str | None = None
    """The time zone of the expression."""
    interval: float | None = None
    """Seconds, for ``interval``."""
    interrupted: bool = False
    """For the method that runs: whether this run was begun before and cut off by the end of the server."""

    @property
    def due(self) -> datetime:
        """:attr:`due_ms` as a date, in UTC."""
        return datetime.fromtimestamp(self.due_ms / 1000, UTC)


def delay_ms(seconds: float | timedelta) -> int:
    """A delay in milliseconds.

    Raises:
        ConfigurationError: it is negative, or no number.
    """
    value: Any = seconds.total_seconds() if isinstance(seconds, timedelta) else seconds
    if not isinstance(value, (int, float)) or isinstance(value, bool) or not math.isfinite(value) or value < 0:
        raise ConfigurationError(f"{seconds!r} is no delay: it must be a number of seconds, 0 or more.")
    return round(value * 1000)


def moment_ms(moment: datetime) -> int:
    """A date as Unix time in milliseconds.

    Raises:
        ConfigurationError: it has no time zone.
    """
    if moment.tzinfo is None:
        raise ConfigurationError(
            f"{moment!r} has no time zone, so it is not clear when it is. "
            "Use datetime.now(UTC) + …, datetime(…, tzinfo=ZoneInfo(…)), or .astimezone() for this machine's zone."
        )
    return round(moment.timestamp() * 1000)


def check_cron(expression: str, tz: str, after_ms: int) -> str:
    """The expression without superfluous spaces.

    Raises:
        ConfigurationError: it is none, it never comes, or there is no such time zone.
    """
    next_cron_ms(expression, tz, after_ms)
    return " ".join(expression.split())


def next_cron_ms(expression: str, tz: str, after_ms: int) -> int:
    """When the expression comes next after that moment.

    Raises:
        ConfigurationError: as for :func:`check_cron`.
    """
    from cronsim import CronSim, CronSimError

    after = datetime.fromtimestamp(after_ms / 1000, _zone(tz))
    try:
        for moment in CronSim(ALIASES.get(expression.strip().lower(), expression), after):
            due_ms = round(moment.timestamp() * 1000)
            # In the hour that comes twice in autumn the first of the two may lie behind us.
            if due_ms > after_ms:
                return due_ms
    except CronSimError as error:
        raise ConfigurationError(
            f"{expression!r} is no cron expression: {error}. It has 5 fields (minute, hour, day, month, day of the "
            f"week), 6 with seconds in front, or is one of {', '.join(ALIASES)}."
        ) from error
    raise ConfigurationError(f"The cron expression {expression!r} names a date that never comes.")


def _zone(name: str) -> ZoneInfo | Any:
    if name == "UTC":
        return UTC
    try:
        return ZoneInfo(name)
    except (LookupError, ValueError, OSError) as error:
        raise ConfigurationError(
            f"There is no time zone {name!r} on this machine. Names are like 'Europe/Berlin'; where the system has no "
            "time zones, install the package tzdata."
        ) from error
