"""The ``chunk`` table: the chunk logs of turns, in segments."""

from __future__ import annotations

from sqlite3 import Cursor

from perdure.errors import StorageError
from perdure.storage.contract import AppendChunks, ChunkSegment, DropChunks, LoadChunks

__all__ = ["append_chunks", "clear_chunks", "drop_chunks", "load_chunks"]

_APPEND = """
insert into chunk (turn, position, bodies) select number, ?, ? from turn where agent = ? and id = ?
"""
_DROP = "delete from chunk where turn = (select number from turn where agent = ? and id = ?)"
_CLEAR = "delete from chunk where turn in (select number from turn where agent = ?)"
_SELECT = """
select position, bodies from chunk where turn =
    (select number from turn where agent = (select id from agent where key = ?) and id = ?)
order by position
"""


def append_chunks(cursor: Cursor, agent: int, operation: AppendChunks) -> None:
    """Add a segment to a turn's log.

    Raises:
        StorageError: no such turn is stored.
        sqlite3.IntegrityError: the log has a segment of that index.
    """
    cursor.execute(_APPEND, (operation.index, operation.bodies, agent, operation.turn))
    if cursor.rowcount != 1:
        raise StorageError(f"no turn {operation.turn!r} is stored")


def drop_chunks(cursor: Cursor, agent: int, operation: DropChunks) -> None:
    """Forget a turn's log, if there is one."""
    cursor.execute(_DROP, (agent, operation.turn))


def clear_chunks(cursor: Cursor, agent: int) -> None:
    """Forget the logs of all turns."""
    cursor.execute(_CLEAR, (agent,))


def load_chunks(cursor: Cursor, query: LoadChunks) -> list[ChunkSegment]:
    """A turn's log, in order; empty for a turn that is not stored."""
    return [ChunkSegment(*row) for row in cursor.execute(_SELECT, (query.agent, query.turn))]
