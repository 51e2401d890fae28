"""Branches of the ``message`` tree: from a message up to where the limits or the tree end."""

from __future__ import annotations

from dataclasses import dataclass, field
from sqlite3 import Cursor

from perdure.storage.contract import Branch, LoadBranch, LoadOffPath, LoadPath, MessagePlace, MessageRow
from perdure.storage.sqlite.messages import COLUMNS, row_of

__all__ = ["load_branch", "load_off_path", "load_path"]

_AGENT = "select id from agent where key = ?"
_LEAF = "select max(pos) from message where agent = ?"
_PLACES = "select pos, id, parent, role from message where agent = ? order by pos desc"
_DOWN_FROM = f"select {COLUMNS} from message where agent = ? and pos <= ? order by pos desc"


def load_branch(cursor: Cursor, query: LoadBranch) -> Branch:
    """The end of a branch, as far as it fits.

    Parents lie below their children, so one scan downwards from the leaf meets the whole branch. Where it meets a
    message of another branch it starts anew at the parent: a conversation without branches costs one scan (half of what
    a recursive query takes), and a branch costs one seek however long it is.
    """
    agent = cursor.execute(_AGENT, (query.agent,)).fetchone()
    if agent is None:
        return Branch([], None)
    pos: int | None = query.leaf
    if pos is None:
        (pos,) = cursor.execute(_LEAF, agent).fetchone()
    climb = _Climb(query.max_bytes, query.max_rows)
    while pos is not None:
        next_pos = climb.run(cursor, agent[0], pos)
        pos = next_pos if next_pos != pos else None  # a parent that is not stored, in a file that was tampered with
    climb.rows.reverse()
    return Branch(climb.rows, climb.before)


def load_path(cursor: Cursor, query: LoadPath) -> list[MessageRow]:
    """The active path, oldest first."""
    return load_branch(cursor, LoadBranch(query.agent)).rows


def load_off_path(cursor: Cursor, query: LoadOffPath) -> list[MessagePlace]:
    """Where the messages stand that are not on the active path: what a way up from the leaf passes by."""
    agent = cursor.execute(_AGENT, (query.agent,)).fetchone()
    found: list[MessagePlace] = []
    wanted: int | None = -1
    for number, values in enumerate(cursor.execute(_PLACES, agent or (None,))):
        if number == 0 or values[0] == wanted:
            wanted = values[2]
        else:
            found.append(MessagePlace(*values))
    return found[::-1]


@dataclass
class _Climb:
    """What was met on the way up, the leaf first."""

    max_bytes: int | None
    max_rows: int | None
    rows: list[MessageRow] = field(default_factory=list[MessageRow])
    before: MessagePlace | None = None
    bytes: int = 0

    def run(self, cursor: Cursor, agent: int, pos: int) -> int | None:
        """Follow parents from ``pos`` while they are the next row below; the position to go on from, if any."""
        wanted: int | None = pos
        for values in cursor.execute(_DOWN_FROM, (agent, pos)):
            if values[0] != wanted:
                break
            row = row_of(values)
            if not self._takes(row):
                self.before = MessagePlace(row.pos, row.id, row.parent, row.role)
                return None
            wanted = row.parent
        return wanted

    def _takes(self, row: MessageRow) -> bool:
        self.bytes += _size(row)
        too_many = self.max_rows is not None and len(self.rows) >= self.max_rows
        too_large = self.max_bytes is not None and self.bytes > self.max_bytes
        if self.rows and (too_many or too_large):
            return False
        self.rows.append(row)
        return True


def _size(row: MessageRow) -> int:
    body = row.body
    size = len(body) if body.isascii() else len(body.encode())
    return size + sum(attachment.size for attachment in row.attachments)
