"""The contract of a store for timers: rows, operations and queries, as in ``contract``.

A timer waits, or a run of it has begun and is not over. The rows of one agent are that agent's; which agents have any,
and when the first is due, is asked across all of them by whoever wakes agents.
"""

from __future__ import annotations

import msgspec

from perdure.storage.contract import Operation, Query

__all__ = ["AgentDue", "AgentsWithTimers", "DeleteTimer", "LoadTimers", "PutTimer", "TimerRow"]


class TimerRow(msgspec.Struct, frozen=True):
    """One timer as stored."""

    id: str
    """Unique within the agent."""
    kind: str
    """``delayed``, ``scheduled``, ``cron`` or ``interval``."""
    callback: str
    """Name of the agent's method."""
    payload: str
    """JSON text."""
    due_ms: int
    """Unix time in milliseconds of the next run: of the one that has begun for one that runs once, of the one after
    that for one that comes again."""
    created_ms: int
    cron: str | None = None
    """Expression, for ``cron``."""
    tz: str | None = None
    """Time zone of the expression."""
    interval_ms: int | None = None
    """For ``interval``."""
    retry: str | None = None
    """JSON text: how a failing run is retried; ``None`` for the default."""
    begun: int = 0
    """How often the run that is not over was begun; 0 while the timer waits."""


class PutTimer(Operation, frozen=True):
    """A timer, new or in place of the one of that id."""

    row: TimerRow


class DeleteTimer(Operation, frozen=True):
    """Forget a timer, if there is one."""

    id: str


class LoadTimers(Query[list[TimerRow]], frozen=True):
    """The timers of an agent, in the order in which they were made."""

    agent: str


class AgentDue(msgspec.Struct, frozen=True):
    """When an agent has to be woken for its timers."""

    key: str
    due_ms: int


class AgentsWithTimers(Query[list[AgentDue]], frozen=True):
    """The agents that have to be woken before ``until_ms``, each with the time of its first timer.

    Due at ``now_ms`` are also agents with a run that has begun, those with an interval that is further away than its
    own length, as when the clock was set back, and those with something in their queue.
    """

    now_ms: int
    until_ms: int
