"""The ``timer`` table: what agents have to do later."""

from __future__ import annotations

from sqlite3 import Cursor

from perdure.storage.timers import AgentDue, AgentsWithTimers, DeleteTimer, LoadTimers, PutTimer, TimerRow

__all__ = ["agents_with_timers", "delete_timer", "load_timers", "put_timer"]

_COLUMNS = "id, kind, callback, payload, due_ms, created_ms, cron, tz, interval_ms, retry, begun"
_PUT = f"""
insert into timer (agent, {_COLUMNS}) values (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
on conflict (agent, id) do update set kind = excluded.kind, callback = excluded.callback, payload = excluded.payload,
    due_ms = excluded.due_ms, created_ms = excluded.created_ms, cron = excluded.cron, tz = excluded.tz,
    interval_ms = excluded.interval_ms, retry = excluded.retry, begun = excluded.begun
"""
_DELETE = "delete from timer where agent = ? and id = ?"
_SELECT = f"select {_COLUMNS} from timer where agent = (select id from agent where key = ?) order by number"
_DUE = """
select key, min(due) from (
    select agent, due_ms as due from timer where due_ms < ?
    union all select agent, ? from timer where begun > 0
    union all select agent, ? from timer where interval_ms is not null and due_ms - interval_ms > ?
    union all select agent, ? from queued
) join agent on agent.id = agent group by agent order by 2
"""


def put_timer(cursor: Cursor, agent: int, operation: PutTimer) -> None:
    """Set a timer, in place of an earlier one of its id."""
    row = operation.row
    own = (row.id, row.kind, row.callback, row.payload, row.due_ms, row.created_ms)
    cursor.execute(_PUT, (agent, *own, row.cron, row.tz, row.interval_ms, row.retry, row.begun))


def delete_timer(cursor: Cursor, agent: int, operation: DeleteTimer) -> None:
    """Forget a timer, if there is one."""
    cursor.execute(_DELETE, (agent, operation.id))


def load_timers(cursor: Cursor, query: LoadTimers) -> list[TimerRow]:
    """The timers of an agent, in the order in which they were made."""
    return [TimerRow(*row) for row in cursor.execute(_SELECT, (query.agent,))]


def agents_with_timers(cursor: Cursor, query: AgentsWithTimers) -> list[AgentDue]:
    """Who has to be woken, the most urgent first."""
    now = query.now_ms
    return [AgentDue(*row) for row in cursor.execute(_DUE, (query.until_ms, now, now, now, now))]
