"""Families: listing an agent's children, and forgetting an agent with all below it."""

import sqlite3
from pathlib import Path

import pytest

from perdure.storage.contract import AppendChunks, LoadValue, Operation, PutValue
from perdure.storage.families import ChildRow, ForgetFamily, LoadChildren
from perdure.storage.sqlite import SqliteStore
from tests.storage.samples import message, turn, write

pytestmark = pytest.mark.anyio

BELOW = ["p/a/sub/c/x", "p/a/sub/c/x/sub/d/y", "p/a/sub/c/x/sub/d/y/sub/c/z"]
NEAR = [
    "p/a",
    "p/A/sub/c/x",
    "p/a%/sub/c/x",
    "p/a-/sub/c/x",
    "p/a0",
    "p/ab/sub/c/x",
    "p/a/sub/c/x-",
    "p/a/sub/c/x0",
    "p/_",
]
EVERYTHING: list[Operation] = [
    PutValue("agent", "created", "1"),
    message(0),
    turn("t"),
    AppendChunks(turn="t", index=0, bodies="[]"),
]


async def fill(store: SqliteStore, *keys: str) -> None:
    for key in keys:
        await write(store, key, *EVERYTHING)


def rows(folder: Path) -> dict[str, int]:
    """How many rows each table has."""
    with sqlite3.connect(folder / "perdure.db") as file:
        tables = [name for (name,) in file.execute("select name from sqlite_schema where type = 'table'")]
        counts = {table: file.execute(f"select count(*) from {table}").fetchone()[0] for table in tables}
    file.close()
    return counts


async def test_the_children_of_an_agent_are_those_right_below_it_in_the_order_of_their_first_write(
    store: SqliteStore,
) -> None:
    await fill(store, "p/a/sub/c/z", *BELOW, *NEAR, "p/a/sub/b/x")
    await write(store, "p/a/sub/c/unnamed", PutValue("agent", "state", "1"))
    found = await store.read(LoadChildren("p/a", "agent", "created"))
    children = ["p/a/sub/c/z", "p/a/sub/c/x", "p/a/sub/c/x-", "p/a/sub/c/x0", "p/a/sub/b/x"]
    assert found == [ChildRow(key, "1") for key in children]
    assert await store.read(LoadChildren("p/_", "agent", "created")) == []


async def test_forgetting_an_agent_leaves_no_row_of_it_or_of_those_below_it(store: SqliteStore, folder: Path) -> None:
    empty = rows(folder)
    await fill(store, *BELOW)
    assert all(
        count > empty[table] for table, count in rows(folder).items() if table in {"kv", "message", "turn", "chunk"}
    )
    await write(store, "p/a/sub/c/x", ForgetFamily())
    assert rows(folder) == empty


async def test_forgetting_an_agent_leaves_its_neighbours_alone(store: SqliteStore, folder: Path) -> None:
    await fill(store, *NEAR)
    before = rows(folder)
    await fill(store, *BELOW)
    await write(store, "p/a/sub/c/x", ForgetFamily())
    assert rows(folder) == before
    assert await store.read(LoadValue("p/a/sub/c/x0", "agent", "created")) == "1"


async def test_an_agent_that_was_forgotten_can_be_written_anew(store: SqliteStore) -> None:
    await fill(store, *BELOW)
    await write(store, "p/a/sub/c/x", ForgetFamily())
    await fill(store, "p/a/sub/c/x/sub/d/y", "other")
    assert await store.read(LoadValue("p/a/sub/c/x/sub/d/y", "agent", "created")) == "1"
    assert await store.read(LoadChildren("p/a", "agent", "created")) == []


async def test_forgetting_an_agent_that_was_never_written_changes_nothing(store: SqliteStore, folder: Path) -> None:
    empty = rows(folder)
    await write(store, "p/a", ForgetFamily())
    assert rows(folder) == empty
