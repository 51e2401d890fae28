"""The ``turn`` table: what was accepted, and how it ended."""

from __future__ import annotations

from sqlite3 import Cursor

from perdure.errors import StorageError
from perdure.storage.contract import CLOSED_TURNS_KEPT, CloseTurn, OpenTurn, TurnRow, UpdateTurn

__all__ = [
    "clear_turns",
    "close_turn",
    "closed_turns",
    "last_turn",
    "open_turn",
    "open_turns",
    "update_turn",
    "withdrawn_turns",
]

_OPEN = """
insert into turn (agent, id, status, trigger, request, message_id, opened_ms) values (?, ?, ?, ?, ?, ?, ?)
"""
_UPDATE = "update turn set status = ? where agent = ? and id = ? and closing is null"
_CLOSE = """
update turn set status = ?, error = ?, closed_ms = ?,
    closing = (select coalesce(max(closing), 0) + 1 from turn where agent = ? and closing is not null)
where agent = ? and id = ? and closing is null
"""
_FORGET = f"""
delete from turn where agent = ? and closing <= (
    select max(closing) - {CLOSED_TURNS_KEPT} from turn where agent = ? and closing is not null)
"""
_CLEAR = "delete from turn where agent = ?"
_COLUMNS = "id, status, trigger, request, message_id, error, opened_ms, closed_ms"
_SELECT_OPEN = f"select {_COLUMNS} from turn where agent = ? and closing is null order by number"
_SELECT_WITHDRAWN = f"""
select {_COLUMNS} from turn where agent = ? and closing is not null
    and number > (select min(number) from turn where agent = ? and closing is null) order by number
"""
_SELECT_CLOSED = "select id from turn where agent = ? and closing is not null order by closing"
_SELECT_LAST = f"select {_COLUMNS} from turn where agent = ? and closing is not null order by closing desc limit 1"


def open_turn(cursor: Cursor, agent: int, operation: OpenTurn) -> None:
    """Add a turn.

    Raises:
        sqlite3.IntegrityError: the agent has a turn of that id.
    """
    op = operation
    cursor.execute(_OPEN, (agent, op.id, op.status, op.trigger, op.request, op.message_id, op.at_ms))


def update_turn(cursor: Cursor, agent: int, operation: UpdateTurn) -> None:
    """Move an open turn to another status.

    Raises:
        StorageError: no open turn has that id.
    """
    cursor.execute(_UPDATE, (operation.status, agent, operation.id))
    _require_one(cursor, operation.id)


def close_turn(cursor: Cursor, agent: int, operation: CloseTurn) -> None:
    """End an open turn. It becomes the agent's last turn, whatever the clock says; the oldest one is forgotten.

    Raises:
        StorageError: no open turn has that id.
    """
    op = operation
    cursor.execute(_CLOSE, (op.status, op.error, op.at_ms, agent, agent, op.id))
    _require_one(cursor, op.id)
    cursor.execute(_FORGET, (agent, agent))


def _require_one(cursor: Cursor, turn: str) -> None:
    if cursor.rowcount != 1:
        raise StorageError(f"no open turn {turn!r} is stored")


def clear_turns(cursor: Cursor, agent: int) -> None:
    """Forget all turns. Their chunks go first."""
    cursor.execute(_CLEAR, (agent,))


def open_turns(cursor: Cursor, agent: int) -> list[TurnRow]:
    """The turns that are not closed, in the order in which they were accepted."""
    return [TurnRow(*row) for row in cursor.execute(_SELECT_OPEN, (agent,))]


def withdrawn_turns(cursor: Cursor, agent: int) -> list[TurnRow]:
    """The closed turns that were accepted after the first open one, in that order."""
    return [TurnRow(*row) for row in cursor.execute(_SELECT_WITHDRAWN, (agent, agent))]


def closed_turns(cursor: Cursor, agent: int) -> list[str]:
    """Ids of the closed turns that are kept, in the order in which they closed."""
    return [identifier for (identifier,) in cursor.execute(_SELECT_CLOSED, (agent,))]


def last_turn(cursor: Cursor, agent: int) -> TurnRow | None:
    """The turn that was closed last."""
    row = cursor.execute(_SELECT_LAST, (agent,)).fetchone()
    return None if row is None else TurnRow(*row)
