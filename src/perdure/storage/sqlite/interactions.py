"""The ``interaction`` table: tool calls that wait, or waited, for a person or a page."""

from __future__ import annotations

from sqlite3 import Cursor

from perdure.storage.interactions import InteractionRow, LoadInteractions, PutInteraction

__all__ = ["clear_interactions", "load_interactions", "put_interaction"]

_PUT = """
insert into interaction (agent, call, turn, state, body) values (?, ?, ?, ?, ?)
on conflict (agent, call) do update set turn = excluded.turn, state = excluded.state, body = excluded.body
"""
_CLEAR = "delete from interaction where agent = ?"
_SELECT = """
with owner (number) as (select id from agent where key = ?)
select call, turn, state, body from interaction, owner where agent = owner.number and turn in (
    select turn from interaction where agent = owner.number and state <> 'settled'
    union select id from turn where agent = owner.number and closing is null
) order by interaction.number
"""


def put_interaction(cursor: Cursor, agent: int, operation: PutInteraction) -> None:
    """Set an interaction, in place of an earlier one of its call."""
    row = operation.row
    cursor.execute(_PUT, (agent, row.call, row.turn, row.state, row.body))


def clear_interactions(cursor: Cursor, agent: int) -> None:
    """Forget all interactions."""
    cursor.execute(_CLEAR, (agent,))


def load_interactions(cursor: Cursor, query: LoadInteractions) -> list[InteractionRow]:
    """The interactions of the turns that are not over for good, in the order in which they were asked."""
    return [InteractionRow(*row) for row in cursor.execute(_SELECT, (query.agent,))]
