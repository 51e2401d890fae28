"""Families in the ``agent`` table: who is below whom is in the keys, which an index holds in order."""

from __future__ import annotations

from sqlite3 import Cursor

from perdure.storage.families import ChildRow, ForgetFamily, LoadChildren

__all__ = ["forget_family", "load_children"]

# What begins with "key/sub/" lies between that and "key/sub0": "0" is the character after "/".
_CHILDREN = """
select agent.key, kv.body from agent join kv on kv.agent = agent.id and kv.namespace = ?2 and kv.key = ?3
where agent.key > ?1 || '/sub/' and agent.key < ?1 || '/sub0'
    and instr(substr(agent.key, length(?1) + 6), '/sub/') = 0
order by agent.id
"""
_FAMILY = """
select member.id from agent as head join agent as member
    on member.id = head.id or (member.key > head.key || '/sub/' and member.key < head.key || '/sub0')
where head.id = ?
"""
_TABLES = """
select entry.name from sqlite_schema as entry join pragma_table_info(entry.name) as field
where entry.type = 'table' and field.name = 'agent'
"""


def load_children(cursor: Cursor, query: LoadChildren) -> list[ChildRow]:
    """The agents right below an agent that have the value."""
    return [ChildRow(*row) for row in cursor.execute(_CHILDREN, (query.agent, query.namespace, query.key))]


def forget_family(cursor: Cursor, agent: int, operation: ForgetFamily) -> None:
    """Delete the rows of an agent and of all below it, in every table that says whose a row is."""
    members = cursor.execute(_FAMILY, (agent,)).fetchall()
    tables = [name for (name,) in cursor.execute(_TABLES).fetchall()]
    cursor.executemany("delete from chunk where turn in (select number from turn where agent = ?)", members)
    for table in tables:
        cursor.executemany(f"delete from {table} where agent = ?", members)
    cursor.executemany("delete from agent where id = ?", members)
