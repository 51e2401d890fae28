"""The ``message`` table: a tree of messages per agent."""

from __future__ import annotations

from sqlite3 import Cursor
from typing import Any

import msgspec

from perdure.errors import StorageError
from perdure.storage.contract import (
    AppendMessage,
    AttachmentRef,
    FindFollowing,
    FindMessages,
    LeaveOutMessage,
    MessagePlace,
    MessageRow,
    MoveMessage,
    UpdateMessage,
)
from perdure.storage.sqlite.attachments import sweep_attachments

__all__ = [
    "COLUMNS",
    "append_message",
    "clear_messages",
    "find_following",
    "find_messages",
    "leave_out_message",
    "move_message",
    "row_of",
    "update_message",
]

COLUMNS = "pos, id, parent, role, body, attachments, left_out"
"""What :func:`row_of` makes a row of."""

_APPEND = """
insert into message (agent, pos, id, parent, role, at_ms, body, attachments)
select ?, ?, ?, ?, ?, ?, ?, ?
where ? is null or exists (select 1 from message where agent = ? and pos = ?)
"""
_ATTACHED = "select attachments from message where agent = ? and pos = ?"
_UPDATE = "update message set body = ?, attachments = ? where agent = ? and pos = ?"
_MOVE = """
update message set pos = ?, parent = ?
where agent = ? and pos = ? and (? is null or exists (select 1 from message where agent = ? and pos = ?))
"""
_LEAVE_OUT = "update message set left_out = ? where agent = ? and pos = ?"
_CLEAR = "delete from message where agent = ?"
_FIND = """
select pos, id, parent, role from message where agent = (select id from agent where key = ?) and id in (%s)
"""
# Messages lie behind those that they follow: of a branch near the end, little has to be looked at.
_FOLLOWING = """
select pos, id, parent, role from message
where agent = (select id from agent where key = ?) and pos > ? and parent in (%s) order by pos
"""

_MOST_AT_ONCE = 500
"""Values that are looked for with one statement."""

_references = msgspec.json.Decoder(tuple[AttachmentRef, ...])


def append_message(cursor: Cursor, agent: int, operation: AppendMessage) -> None:
    """Add a message to the tree.

    Raises:
        StorageError: the message that it follows is not stored.
        sqlite3.IntegrityError: its id or position is taken, or it follows a later one.
    """
    op = operation
    row = (agent, op.pos, op.id, op.parent, op.role, op.at_ms, op.body, _text_of(op.attachments))
    cursor.execute(_APPEND, (*row, op.parent, agent, op.parent))
    if cursor.rowcount != 1:
        raise StorageError(f"message {op.id!r} follows position {op.parent}, where no message is stored")


def update_message(cursor: Cursor, agent: int, operation: UpdateMessage) -> None:
    """Replace a message's text. Attachments that nothing refers to afterwards are forgotten.

    Raises:
        StorageError: there is no message at that position.
    """
    op = operation
    before = cursor.execute(_ATTACHED, (agent, op.pos)).fetchone()
    if before is None:
        raise StorageError(f"no message is stored at position {op.pos}")
    cursor.execute(_UPDATE, (op.body, _text_of(op.attachments), agent, op.pos))
    sweep_attachments(cursor, agent, {reference.digest for reference in _references_in(before[0])})


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


def leave_out_message(cursor: Cursor, agent: int, operation: LeaveOutMessage) -> None:
    """Say whether models are shown a message.

    Raises:
        StorageError: there is no message at that position.
    """
    cursor.execute(_LEAVE_OUT, (1 if operation.left_out else None, agent, operation.pos))
    if cursor.rowcount != 1:
        raise StorageError(f"no message is stored at position {operation.pos}")


def clear_messages(cursor: Cursor, agent: int) -> None:
    """Forget all messages."""
    cursor.execute(_CLEAR, (agent,))


def find_messages(cursor: Cursor, query: FindMessages) -> list[MessagePlace]:
    """Where these messages stand, those of them that are stored."""
    found: list[MessagePlace] = []
    for start in range(0, len(query.ids), _MOST_AT_ONCE):
        ids = query.ids[start : start + _MOST_AT_ONCE]
        marks = ",".join("?" * len(ids))
        found += [MessagePlace(*row) for row in cursor.execute(_FIND % marks, (query.agent, *ids))]
    return found


def find_following(cursor: Cursor, query: FindFollowing) -> list[MessagePlace]:
    """What follows these messages."""
    found: list[MessagePlace] = []
    for start in range(0, len(query.parents), _MOST_AT_ONCE):
        parents = query.parents[start : start + _MOST_AT_ONCE]
        statement = _FOLLOWING % ",".join("?" * len(parents))
        found += [MessagePlace(*row) for row in cursor.execute(statement, (query.agent, min(parents), *parents))]
    return sorted(found, key=lambda place: place.pos)


def row_of(values: tuple[Any, ...]) -> MessageRow:
    """A row from its columns."""
    attachments, left_out = values[-2:]
    if attachments is None and left_out is None:
        return MessageRow(*values[:-2])
    return MessageRow(*values[:-2], attachments=_references_in(attachments), left_out=left_out is not None)


def _text_of(attachments: tuple[AttachmentRef, ...]) -> str | None:
    return msgspec.json.encode(attachments).decode() if attachments else None


def _references_in(text: str | None) -> tuple[AttachmentRef, ...]:
    """What the column says; nothing when it is damaged, which leaves the message without its data."""
    try:
        return _references.decode(text) if text is not None else ()
    except msgspec.DecodeError:
        return ()
