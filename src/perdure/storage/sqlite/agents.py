"""The ``agent`` table: an agent's key is stored once, every other row carries its number."""

from __future__ import annotations

from sqlite3 import Cursor

from perdure.storage.contract import AgentRecord, LoadAgent, OpenAgents
from perdure.storage.sqlite.turns import closed_turns, last_turn, open_turns, withdrawn_turns

__all__ = ["AgentNumbers", "load_agent", "open_agents"]

_FIND = "select id from agent where key = ?"
_ADD = "insert into agent (key) values (?)"
_WAKE = """
select id, (select max(pos) from message where agent = agent.id), (select count(*) from message where agent = agent.id)
from agent where key = ?
"""
_WITH_OPEN_TURNS = """
select key from turn join agent on agent.id = turn.agent where closing is null
group by turn.agent order by min(turn.number)
"""


class AgentNumbers:
    """Agent keys to numbers, remembered. For the writer alone."""

    def __init__(self, capacity: int = 50_000) -> None:
        self._capacity = capacity
        self._numbers: dict[str, int] = {}

    def resolve(self, cursor: Cursor, key: str) -> int:
        """The number of an agent, which gets its row if it has none."""
        number = self._numbers.get(key)
        if number is None:
            number = self._numbers[key] = _find_or_add(cursor, key)
        return number

    def forget(self) -> None:
        """Drop what is remembered: a rollback may have undone new rows."""
        self._numbers.clear()

    def trim(self) -> None:
        """Drop what is remembered once it is more than ``capacity``."""
        if len(self._numbers) > self._capacity:
            self._numbers.clear()


def _find_or_add(cursor: Cursor, key: str) -> int:
    row = cursor.execute(_FIND, (key,)).fetchone()
    if row is not None:
        return row[0]
    cursor.execute(_ADD, (key,))
    assert cursor.lastrowid is not None
    return cursor.lastrowid


def load_agent(cursor: Cursor, query: LoadAgent) -> AgentRecord:
    """What is needed to wake an agent; an empty record for one that was never written."""
    row = cursor.execute(_WAKE, (query.agent,)).fetchone()
    if row is None:
        return AgentRecord(next_pos=0, messages=0, open_turns=[], last_turn=None, closed_turns=[])
    agent, greatest, messages = row
    opened = open_turns(cursor, agent)
    return AgentRecord(
        next_pos=0 if greatest is None else greatest + 1,
        messages=messages,
        open_turns=opened,
        last_turn=last_turn(cursor, agent),
        closed_turns=closed_turns(cursor, agent),
        withdrawn=withdrawn_turns(cursor, agent) if opened else [],
    )


def open_agents(cursor: Cursor, query: OpenAgents) -> list[str]:
    """Keys of the agents with open turns, the one whose turn was accepted first leading."""
    return [key for (key,) in cursor.execute(_WITH_OPEN_TURNS)]
