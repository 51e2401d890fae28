"""Writes: atomic, in order, on their own within a group, and never lost without a word."""

import asyncio
import logging
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any

import pytest

from perdure.errors import Fenced, StorageError
from perdure.storage.contract import (
    AppendMessage,
    LoadAgent,
    LoadPath,
    LoadValue,
    Operation,
    PutValue,
    Query,
    UpdateMessage,
)
from perdure.storage.sqlite import SqliteStore
from tests.storage.samples import message, turn, write

pytestmark = pytest.mark.anyio

HeldUp = Callable[[], AbstractContextManager[None]]


class Juggle(Operation, frozen=True):
    """An operation that no store knows."""


class CountStars(Query[int], frozen=True):
    """A query that no store knows."""


async def test_a_write_is_readable_once_its_commit_is_done(store: SqliteStore) -> None:
    for value in range(50):
        await write(store, "a", PutValue("n", "k", str(value)))
        assert await store.read(LoadValue("a", "n", "k")) == str(value)


async def test_the_operations_of_a_write_are_applied_in_order(store: SqliteStore) -> None:
    await write(store, "a", message(0), UpdateMessage(0, "second"), UpdateMessage(0, "third"))
    assert [row.body for row in await store.read(LoadPath("a"))] == ["third"]


async def test_a_write_that_fails_leaves_nothing_behind(store: SqliteStore) -> None:
    await write(store, "a", message(0))
    with pytest.raises(StorageError):
        await write(store, "a", message(1, 0), turn("t"), PutValue("n", "k", "1"), UpdateMessage(9, "missing"))
    record = await store.read(LoadAgent("a"))
    assert (record.next_pos, record.open_turns) == (1, [])
    assert await store.read(LoadValue("a", "n", "k")) is None


async def test_the_operations_are_those_of_the_moment_of_the_write(store: SqliteStore) -> None:
    operations: list[Operation] = [PutValue("n", "k", "1")]
    commit = store.write("a", store.epoch, operations)
    operations.clear()
    await commit
    assert await store.read(LoadValue("a", "n", "k")) == "1"


async def test_writes_of_an_agent_become_durable_in_order(store: SqliteStore) -> None:
    done: list[int] = []
    commits = [store.write("a", store.epoch, [message(pos, pos - 1 if pos else None)]) for pos in range(200)]
    for pos, commit in enumerate(commits):
        commit.add_done_callback(lambda _, pos=pos: done.append(pos))
    await asyncio.gather(*commits)
    assert done == list(range(200))
    assert [row.pos for row in await store.read(LoadPath("a"))] == list(range(200))


async def test_a_write_without_operations_is_a_barrier(store: SqliteStore) -> None:
    commits = [store.write("a", store.epoch, [PutValue("n", str(key), "1")]) for key in range(20)]
    await store.write("never written", store.epoch, [])
    assert all(commit.done() for commit in commits)


async def test_writes_that_wait_are_committed_together(store: SqliteStore, held_up: HeldUp) -> None:
    with held_up():
        commits = [store.write(f"agent {number}", store.epoch, [message(0)]) for number in range(100)]
    await asyncio.gather(*commits)
    statistics = store.statistics
    assert statistics.writes == 100
    assert statistics.commits <= 2, "one for what the writer held already, one for all the rest"


async def test_writes_that_do_not_wait_are_committed_alone(store: SqliteStore) -> None:
    for pos in range(5):
        await write(store, "a", message(pos))
    assert (store.statistics.writes, store.statistics.commits) == (5, 5)


async def test_a_bad_write_fails_alone_in_its_group(store: SqliteStore, held_up: HeldUp) -> None:
    await write(store, "bad", message(0))
    with held_up():
        first, bad, last = (
            store.write("first", store.epoch, [message(0)]),
            store.write("bad", store.epoch, [message(1, 0), message(2, 1, id="m0")]),
            store.write("last", store.epoch, [message(0)]),
        )
    await asyncio.gather(first, last)
    with pytest.raises(StorageError, match=r"'bad' was not stored: UNIQUE constraint failed"):
        await bad
    assert store.statistics.commits <= 3, "the bad write shared its group with a good one"
    assert store.statistics.failed == 1
    assert [row.id for row in await store.read(LoadPath("bad"))] == ["m0"]
    assert [len(await store.read(LoadPath(agent))) for agent in ("first", "last")] == [1, 1]


async def test_an_agent_whose_first_write_failed_can_be_written(store: SqliteStore) -> None:
    with pytest.raises(StorageError):
        await write(store, "new", PutValue("n", "k", "1"), UpdateMessage(9, "missing"))
    await write(store, "other", PutValue("n", "k", "other"))
    await write(store, "new", PutValue("n", "k", "new"))
    assert await store.read(LoadValue("other", "n", "k")) == "other"
    assert await store.read(LoadValue("new", "n", "k")) == "new"


async def test_a_failure_takes_along_what_its_agent_handed_over_before_it_was_known(
    store: SqliteStore, held_up: HeldUp
) -> None:
    with held_up():
        commits = [
            store.write("a", store.epoch, [PutValue("n", "before", "1")]),
            store.write("a", store.epoch, [UpdateMessage(9, "missing")]),
            store.write("a", store.epoch, [PutValue("n", "after", "1")]),
            store.write("b", store.epoch, [PutValue("n", "after", "1")]),
        ]
    outcomes = await asyncio.gather(*commits, return_exceptions=True)
    assert [type(outcome) for outcome in outcomes] == [type(None), StorageError, StorageError, type(None)]
    assert "as an earlier one of this agent failed" in str(outcomes[2])
    assert await store.read(LoadValue("a", "n", "before")) == "1"
    assert await store.read(LoadValue("a", "n", "after")) is None


async def test_what_an_agent_writes_once_it_knows_of_a_failure_is_stored(store: SqliteStore) -> None:
    commit = store.write("a", store.epoch, [UpdateMessage(9, "missing")])
    retry: list[asyncio.Future[None]] = []
    commit.add_done_callback(lambda _: retry.append(store.write("a", store.epoch, [PutValue("n", "k", "1")])))
    with pytest.raises(StorageError):
        await commit
    await retry[0]
    assert await store.read(LoadValue("a", "n", "k")) == "1"


@pytest.mark.parametrize("stale", [-1, 0, 99])
async def test_a_write_under_another_epoch_is_fenced(store: SqliteStore, stale: int) -> None:
    with pytest.raises(Fenced, match=f"under epoch {stale} was refused: the store is at 1"):
        await store.write("a", stale, [PutValue("n", "k", "1")])
    assert await store.read(LoadValue("a", "n", "k")) is None


async def test_a_fenced_write_does_not_disturb_the_owner(store: SqliteStore, held_up: HeldUp) -> None:
    with held_up():
        stale = store.write("a", store.epoch - 1, [PutValue("n", "k", "stale")])
        owner = store.write("a", store.epoch, [PutValue("n", "k", "owner")])
    await owner
    assert isinstance(stale.exception(), Fenced)
    assert await store.read(LoadValue("a", "n", "k")) == "owner"


async def test_cancelling_a_commit_does_not_take_the_write_back(store: SqliteStore, held_up: HeldUp) -> None:
    with held_up():
        cancelled = store.write("a", store.epoch, [PutValue("n", "k", "1")])
        other = store.write("b", store.epoch, [PutValue("n", "k", "1")])
        cancelled.cancel()
    await other
    await store.write("a", store.epoch, [])
    assert await store.read(LoadValue("a", "n", "k")) == "1"


def unchecked(value: object) -> Any:
    """A value that a type checker would refuse."""
    return value


@dataclass
class Bad:
    """A write that cannot be applied."""

    operation: Operation
    reason: str
    agent: str = "a"


@pytest.mark.parametrize(
    "bad",
    [
        Bad(PutValue("n", "k", "lone \ud800 surrogate"), "surrogates not allowed"),
        Bad(PutValue("n", "k", unchecked(b"bytes")), "cannot store BLOB value in TEXT column"),
        Bad(PutValue("n", "k", unchecked({})), "type 'dict' is not supported"),
        Bad(PutValue("n", "k", unchecked(None)), "NOT NULL constraint failed"),
        Bad(AppendMessage(2**80, "m", None, "user", "{}", 0), "too large"),
        Bad(Juggle(), "this store knows no operation Juggle"),
        Bad(unchecked("not an operation"), "this store knows no operation str"),
        Bad(PutValue("n", "k", "1"), "surrogates not allowed", agent="lone \ud800 surrogate"),
    ],
    ids=lambda bad: bad.reason,
)
async def test_whatever_is_wrong_with_a_write_the_next_one_is_stored(store: SqliteStore, bad: Bad) -> None:
    with pytest.raises(StorageError, match=bad.reason):
        await write(store, bad.agent, bad.operation)
    await write(store, "a", PutValue("n", "k", "good"))
    assert await store.read(LoadValue("a", "n", "k")) == "good"


async def test_a_failed_write_is_logged_even_if_nobody_looks_at_its_commit(
    store: SqliteStore, caplog: pytest.LogCaptureFixture
) -> None:
    commit = store.write("chat/anna", store.epoch, [UpdateMessage(9, "missing")])
    await asyncio.wait([commit])
    (record,) = [record for record in caplog.records if record.name == "perdure.storage"]
    assert record.levelno == logging.ERROR
    assert "'chat/anna' was not stored: no message is stored at position 9" in record.getMessage()
    assert isinstance(commit.exception(), StorageError)


async def test_a_query_that_the_store_does_not_know_is_refused(store: SqliteStore) -> None:
    with pytest.raises(StorageError, match="knows no query CountStars"):
        await store.read(CountStars())


@pytest.mark.parametrize("query", [LoadAgent("\ud800"), LoadPath("\ud800")], ids=["inline", "in a thread"])
async def test_a_query_that_cannot_be_asked_is_refused_and_the_next_one_answered(
    store: SqliteStore, query: Query[object]
) -> None:
    with pytest.raises(StorageError, match=f"{type(query).__name__} could not be answered: .*surrogates not allowed"):
        await store.read(query)
    assert (await store.read(LoadAgent("a"))).next_pos == 0
    assert await store.read(LoadPath("a")) == []
