"""The ``attachment`` table: large data of messages, once per agent and content."""

from __future__ import annotations

from collections.abc import Iterable
from sqlite3 import Cursor

from perdure.storage.contract import LoadAttachments, PutAttachment

__all__ = ["clear_attachments", "load_attachments", "put_attachment", "sweep_attachments"]

_PUT = "insert into attachment (agent, digest, data) values (?, ?, ?) on conflict do nothing"
_SWEEP = """
delete from attachment where agent = ? and digest = ? and not exists
    (select 1 from message where agent = ? and attachments is not null and instr(attachments, ?))
"""
_CLEAR = "delete from attachment where agent = ?"
_SELECT = "select data from attachment where agent = (select id from agent where key = ?) and digest = ?"


def put_attachment(cursor: Cursor, agent: int, operation: PutAttachment) -> None:
    """Keep data, unless the agent has it already."""
    cursor.execute(_PUT, (agent, operation.digest, operation.data))


def sweep_attachments(cursor: Cursor, agent: int, digests: Iterable[str]) -> None:
    """Forget those of these attachments that no message refers to any more."""
    for digest in digests:
        cursor.execute(_SWEEP, (agent, digest, agent, digest))


def clear_attachments(cursor: Cursor, agent: int) -> None:
    """Forget all attachments."""
    cursor.execute(_CLEAR, (agent,))


def load_attachments(cursor: Cursor, query: LoadAttachments) -> dict[str, bytes]:
    """Data by digest."""
    found: dict[str, bytes] = {}
    for digest in query.digests:
        row = cursor.execute(_SELECT, (query.agent, digest)).fetchone()
        if row is not None:
            found[digest] = row[0]
    return found
