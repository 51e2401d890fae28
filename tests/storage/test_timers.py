"""Timers, and who has to be woken for them."""

from pathlib import Path

import msgspec
import pytest

from perdure.storage.contract import ClearConversation
from perdure.storage.sqlite import SqliteStore
from perdure.storage.timers import AgentDue, AgentsWithTimers, DeleteTimer, LoadTimers, PutTimer, TimerRow
from tests.storage.samples import AWKWARD, write

pytestmark = pytest.mark.anyio


def once(id: str = "t", due_ms: int = 1_000, *, begun: int = 0) -> TimerRow:
    return TimerRow(id, "delayed", "remind", "null", due_ms, created_ms=1, begun=begun)


def every(interval_ms: int, due_ms: int, id: str = "t") -> TimerRow:
    return TimerRow(id, "interval", "poll", "null", due_ms, created_ms=1, interval_ms=interval_ms)


@pytest.mark.parametrize("text", AWKWARD)
async def test_a_timer_comes_back_as_it_was(store: SqliteStore, text: str) -> None:
    row = TimerRow(f"id {text}", "cron", text, text, 2**53, -5, text, text, 7, text, 3)
    await write(store, "a", PutTimer(row))
    assert await store.read(LoadTimers("a")) == [row]


async def test_a_timer_keeps_its_place_when_it_is_replaced(store: SqliteStore) -> None:
    for id in "zab":
        await write(store, "a", PutTimer(once(id)))
    changed = msgspec.structs.replace(once("z"), due_ms=9, begun=2)
    await write(store, "a", PutTimer(changed))
    assert await store.read(LoadTimers("a")) == [changed, once("a"), once("b")]


async def test_timers_belong_to_their_agent_and_outlive_its_conversation(store: SqliteStore) -> None:
    await write(store, "a", PutTimer(once()))
    await write(store, "b", PutTimer(once()))
    await write(store, "a", DeleteTimer("t"), DeleteTimer("not there"), ClearConversation())
    assert await store.read(LoadTimers("a")) == []
    await write(store, "b", ClearConversation())
    assert await store.read(LoadTimers("b")) == [once()]
    assert await store.read(LoadTimers("unknown")) == []


async def test_agents_are_due_with_their_first_timer_the_most_urgent_first(store: SqliteStore) -> None:
    await write(store, "late", PutTimer(once(due_ms=700)))
    await write(store, "soon", PutTimer(once("x", 900)), PutTimer(once("y", 300)))
    await write(store, "after", PutTimer(once(due_ms=1_000)))
    await write(store, "none", PutTimer(once()), DeleteTimer("t"))
    assert await store.read(AgentsWithTimers(100, 1_000)) == [AgentDue("soon", 300), AgentDue("late", 700)]
    assert await store.read(AgentsWithTimers(100, 1_001)) == [
        AgentDue("soon", 300),
        AgentDue("late", 700),
        AgentDue("after", 1_000),
    ]


async def test_an_agent_with_a_run_that_is_not_over_is_due_now(store: SqliteStore) -> None:
    await write(store, "cut off", PutTimer(once(due_ms=99_000, begun=1)))
    assert await store.read(AgentsWithTimers(100, 1_000)) == [AgentDue("cut off", 100)]


async def test_an_interval_further_away_than_its_length_is_due_now(store: SqliteStore) -> None:
    await write(store, "ahead", PutTimer(every(60_000, due_ms=3_660_001)))
    await write(store, "right", PutTimer(every(60_000, due_ms=3_660_000)))
    assert await store.read(AgentsWithTimers(3_600_000, 3_600_500)) == [AgentDue("ahead", 3_600_000)]


async def test_timers_are_there_after_a_restart(store: SqliteStore, folder: Path) -> None:
    await write(store, "a", PutTimer(once()))
    await store.close()
    again = await SqliteStore.open(folder)
    assert await again.read(LoadTimers("a")) == [once()]
    await again.close()
