"""The store that tries its users' patience keeps the contract of stores while it does so."""

import asyncio
import random
from collections.abc import AsyncIterator

import pytest

from perdure.errors import Fenced, StorageError
from perdure.storage.contract import AppendMessage, LoadPath, LoadValue, Operation, PutValue
from perdure.storage.sqlite import SqliteStore
from perdure.testing.stores import TryingStore

pytestmark = pytest.mark.anyio


@pytest.fixture(params=[None, 1, 2], ids=["quick", "slow", "slow otherwise"])
async def store(request: pytest.FixtureRequest) -> AsyncIterator[TryingStore]:
    rng = None if request.param is None else random.Random(request.param)
    store = TryingStore(await SqliteStore.temporary(), rng)
    yield store
    await store.close()


def put(value: int, key: str = "k") -> list[Operation]:
    return [PutValue("n", key, str(value))]


async def test_writes_of_one_agent_become_durable_in_order(store: TryingStore) -> None:
    messages = [[AppendMessage(n, f"m{n}", n - 1 if n else None, "user", "{}", 0)] for n in range(30)]
    done: list[int] = []
    for number, operations in enumerate(messages):
        commit = store.write("a", store.epoch, operations)
        commit.add_done_callback(lambda _, number=number: done.append(number))
    await store.write("a", store.epoch, [])
    assert done == list(range(30))
    assert len(await store.read(LoadPath("a"))) == 30


async def test_nothing_becomes_durable_while_it_is_held(store: TryingStore) -> None:
    store.hold()
    commit = store.write("a", store.epoch, put(1))
    await store.settled()
    for _ in range(20):
        await asyncio.sleep(0)
    assert not commit.done()
    assert await store.read(LoadValue("a", "n", "k")) is None
    store.release()
    await commit
    assert await store.read(LoadValue("a", "n", "k")) == "1"


async def test_a_failure_takes_along_what_was_handed_over_before_it_was_known(store: TryingStore) -> None:
    store.fail("a", "no room", after=1)
    commits = [store.write("a", store.epoch, put(value)) for value in range(4)]
    other = store.write("b", store.epoch, put(9))
    outcomes = await asyncio.gather(*commits, other, return_exceptions=True)
    assert [str(outcome) for outcome in outcomes] == ["None", "no room", "no room", "no room", "None"]
    assert await store.read(LoadValue("a", "n", "k")) == "0"
    store.heal("a")
    await store.write("a", store.epoch, put(7))
    assert await store.read(LoadValue("a", "n", "k")) == "7"


async def test_a_fence_refuses_writes_and_lets_reads_through(store: TryingStore) -> None:
    await store.write("a", store.epoch, put(1))
    store.fence()
    with pytest.raises(Fenced):
        await store.write("a", store.epoch, put(2))
    assert await store.read(LoadValue("a", "n", "k")) == "1"
    store.heal()
    await store.write("a", store.epoch, put(2))


async def test_reads_fail_for_whom_they_are_to_fail(store: TryingStore) -> None:
    store.fail_reads("a", "damaged")
    with pytest.raises(StorageError, match="damaged"):
        await store.read(LoadValue("a", "n", "k"))
    assert await store.read(LoadValue("b", "n", "k")) is None


async def test_what_the_wrapped_store_refuses_is_refused(store: TryingStore) -> None:
    with pytest.raises(Fenced):
        await store.write("a", store.epoch + 1, put(1))


async def test_a_commit_that_is_cancelled_takes_nothing_back(store: TryingStore) -> None:
    store.write("a", store.epoch, put(5)).cancel()
    await store.write("a", store.epoch, [])
    assert await store.read(LoadValue("a", "n", "k")) == "5"
