"""The ``message`` table: a tree of messages per agent, and its active path."""

from __future__ import annotations

from sqlite3 import Cursor

from perdure.errors import StorageError
from perdure.storage.contract import AppendMessage, LoadOffPath, LoadPath, MessageRow, MoveMessage, UpdateMessage

__all__ = ["append_message", "clear_messages", "load_off_path", "load_path", "move_message", "update_message"]

_APPEND = """
insert into message (agent, pos, id, parent, role, at_ms, body)
select ?, ?, ?, ?, ?, ?, ?
where ? is null or exists (select 1 from message where agent = ? and pos = ?)
"""
_UPDATE = "update message set body = ? where agent = ? and pos = ?"
_MOVE = """
update message set pos = ?, parent = ?
where agent = ? and pos = ? and (? is null or exists (select 1 from message where agent = ? and pos = ?))
"""
_ALL = "select pos, id, parent, role, body from message where agent = (select id from agent where key = ?) order by pos"
_CLEAR = "delete from message where agent = ?"
_LEAF = "select agent.id, max(pos) from agent join message on message.agent = agent.id where key = ?"
_DOWN_FROM = "select pos, id, parent, role, body from message where agent = ? and pos <= ? order by pos desc"


def append_message(cursor: Cursor, agent: int, operation: AppendMessage) -> None:
    """Add a message to the tree.

    Raises:
        StorageError: the message that it follows is not stored.
        sqlite3.IntegrityError: its id or position is taken, or it follows a later one.
    """
    op = operation
    row = (agent, op.pos, op.id, op.parent, op.role, op.at_ms, op.body)
    cursor.execute(_APPEND, (*row, op.parent, agent, op.parent))
    if cursor.rowcount != 1:
        raise StorageError(f"message {op.id!r} follows position {op.parent}, where no message is stored")


def update_message(cursor: Cursor, agent: int, operation: UpdateMessage) -> None:
    """Replace a message's text.

    Raises:
        StorageError: there is no message at that position.
    """
    cursor.execute(_UPDATE, (operation.body, agent, operation.pos))
    if cursor.rowcount != 1:
        raise StorageError(f"no message is stored at position {operation.pos}")


def move_message(cursor: Cursor, agent: int, operation: MoveMessage) -> None:
    """Give a message another place in the tree.

    Raises:
        StorageError: there is no message at that position, or none that it is to follow.
        sqlite3.IntegrityError: the new position is taken, or comes before the message that it is to follow.
    """
    op = operation
    cursor.execute(_MOVE, (op.to, op.parent, agent, op.pos, op.parent, agent, op.parent))
    if cursor.rowcount != 1:
        raise StorageError(f"no message at position {op.pos} can be moved behind position {op.parent}")


def clear_messages(cursor: Cursor, agent: int) -> None:
    """Forget all messages."""
    cursor.execute(_CLEAR, (agent,))


def load_path(cursor: Cursor, query: LoadPath) -> list[MessageRow]:
    """The active path, oldest first.

    Parents lie below their children, so one scan downwards from the leaf meets the whole path. Where it meets a message
    of another branch it starts anew at the parent: a conversation without branches costs one scan (half of what a
    recursive query takes), and a branch costs one seek however long it is.
    """
    agent, pos = cursor.execute(_LEAF, (query.agent,)).fetchone()
    path: list[MessageRow] = []
    while pos is not None:
        next_pos = _climb(cursor, agent, pos, path)
        pos = next_pos if next_pos != pos else None  # a parent that is not stored, in a file that was tampered with
    path.reverse()
    return path


def load_off_path(cursor: Cursor, query: LoadOffPath) -> list[MessageRow]:
    """The messages that are not on the active path, oldest first."""
    path = {row.pos for row in load_path(cursor, LoadPath(query.agent))}
    return [MessageRow(*row) for row in cursor.execute(_ALL, (query.agent,)) if row[0] not in path]


def _climb(cursor: Cursor, agent: int, pos: int, path: list[MessageRow]) -> int | None:
    """Follow parents from ``pos`` while they are the next row below; the position to go on from, if there is one."""
    wanted: int | None = pos
    for row in cursor.execute(_DOWN_FROM, (agent, pos)):
        if row[0] != wanted:
            break
        path.append(MessageRow(*row))
        wanted = row[2]
    return wanted
