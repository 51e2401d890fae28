"""The ``queued`` table: what agents have to do one after the other."""

from __future__ import annotations

from sqlite3 import Cursor

from perdure.storage.queue import DeleteQueued, LoadQueue, PutQueued, QueuedRow

__all__ = ["delete_queued", "load_queue", "put_queued"]

_COLUMNS = "id, callback, payload, created_ms, retry, begun"
_PUT = f"""
insert into queued (agent, {_COLUMNS}) values (?, ?, ?, ?, ?, ?, ?)
on conflict (agent, id) do update set callback = excluded.callback, payload = excluded.payload,
    created_ms = excluded.created_ms, retry = excluded.retry, begun = excluded.begun
"""
_DELETE = "delete from queued where agent = ? and id = ?"
_SELECT = f"select {_COLUMNS} from queued where agent = (select id from agent where key = ?) order by number"


def put_queued(cursor: Cursor, agent: int, operation: PutQueued) -> None:
    """Set an item, in place of an earlier one of its id."""
    row = operation.row
    own = (row.id, row.callback, row.payload, row.created_ms, row.retry, row.begun)
    cursor.execute(_PUT, (agent, *own))


def delete_queued(cursor: Cursor, agent: int, operation: DeleteQueued) -> None:
    """Forget an item, if there is one."""
    cursor.execute(_DELETE, (agent, operation.id))


def load_queue(cursor: Cursor, query: LoadQueue) -> list[QueuedRow]:
    """The items of an agent, in their order."""
    return [QueuedRow(*row) for row in cursor.execute(_SELECT, (query.agent,))]
