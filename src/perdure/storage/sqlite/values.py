"""The ``kv`` table: named JSON values."""

from __future__ import annotations

from sqlite3 import Cursor

from perdure.storage.contract import DeleteValue, LoadValue, PutValue

__all__ = ["delete_value", "load_value", "put_value"]

_PUT = """
insert into kv (agent, namespace, key, body) values (?, ?, ?, ?)
on conflict (agent, namespace, key) do update set body = excluded.body
"""
_DELETE = "delete from kv where agent = ? and namespace = ? and key = ?"
_SELECT = "select body from kv where agent = (select id from agent where key = ?) and namespace = ? and key = ?"


def put_value(cursor: Cursor, agent: int, operation: PutValue) -> None:
    """Set a value, in place of an earlier one."""
    cursor.execute(_PUT, (agent, operation.namespace, operation.key, operation.body))


def delete_value(cursor: Cursor, agent: int, operation: DeleteValue) -> None:
    """Forget a value, if there is one."""
    cursor.execute(_DELETE, (agent, operation.namespace, operation.key))


def load_value(cursor: Cursor, query: LoadValue) -> str | None:
    """A value; ``None`` when there is none."""
    row = cursor.execute(_SELECT, (query.agent, query.namespace, query.key)).fetchone()
    return None if row is None else row[0]
