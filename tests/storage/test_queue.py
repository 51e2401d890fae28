"""The queues of agents, and that agents with something in theirs have to be woken."""

from pathlib import Path

import msgspec
import pytest

from perdure.storage.contract import ClearConversation
from perdure.storage.families import ForgetFamily
from perdure.storage.queue import DeleteQueued, LoadQueue, PutQueued, QueuedRow
from perdure.storage.sqlite import SqliteStore
from perdure.storage.timers import AgentDue, AgentsWithTimers, PutTimer, TimerRow
from tests.storage.samples import AWKWARD, write

pytestmark = pytest.mark.anyio


def item(id: str = "q", *, begun: int = 0) -> QueuedRow:
    return QueuedRow(id, "work", "null", created_ms=1, begun=begun)


@pytest.mark.parametrize("text", AWKWARD)
async def test_an_item_comes_back_as_it_was(store: SqliteStore, text: str) -> None:
    row = QueuedRow(f"id {text}", text, text, -5, text, 3)
    await write(store, "a", PutQueued(row))
    assert await store.read(LoadQueue("a")) == [row]


async def test_an_item_keeps_its_place_when_it_is_replaced_and_not_when_it_comes_again(store: SqliteStore) -> None:
    for id in "zab":
        await write(store, "a", PutQueued(item(id)))
    changed = msgspec.structs.replace(item("z"), payload="1", begun=2)
    await write(store, "a", PutQueued(changed))
    assert await store.read(LoadQueue("a")) == [changed, item("a"), item("b")]
    await write(store, "a", DeleteQueued("z"), PutQueued(item("z")))
    assert await store.read(LoadQueue("a")) == [item("a"), item("b"), item("z")]


async def test_items_belong_to_their_agent_and_outlive_its_conversation(store: SqliteStore) -> None:
    await write(store, "a", PutQueued(item()))
    await write(store, "b", PutQueued(item()))
    await write(store, "a", DeleteQueued("q"), DeleteQueued("not there"), ClearConversation())
    assert await store.read(LoadQueue("a")) == []
    await write(store, "b", ClearConversation())
    assert await store.read(LoadQueue("b")) == [item()]
    await write(store, "b", ForgetFamily())
    assert await store.read(LoadQueue("b")) == []


async def test_an_agent_with_items_is_due_now(store: SqliteStore) -> None:
    await write(store, "queue", PutQueued(item("x")), PutQueued(item("y", begun=1)))
    await write(store, "both", PutQueued(item()), PutTimer(TimerRow("t", "delayed", "x", "null", 50, created_ms=1)))
    await write(store, "over", PutQueued(item()), DeleteQueued("q"))
    assert await store.read(AgentsWithTimers(100, 1_000)) == [AgentDue("both", 50), AgentDue("queue", 100)]


async def test_items_are_there_after_a_restart(store: SqliteStore, folder: Path) -> None:
    await write(store, "a", PutQueued(item()))
    await store.close()
    again = await SqliteStore.open(folder)
    assert await again.read(LoadQueue("a")) == [item()]
    await again.close()
