"""Named values."""

import pytest

from perdure.storage.contract import ClearConversation, DeleteValue, LoadValue, PutValue
from perdure.storage.sqlite import SqliteStore
from tests.storage.samples import AWKWARD, write

pytestmark = pytest.mark.anyio


@pytest.mark.parametrize("text", AWKWARD)
async def test_a_value_comes_back_byte_for_byte(store: SqliteStore, text: str) -> None:
    await write(store, "a", PutValue(f"ns {text}", f"key {text}", text))
    assert await store.read(LoadValue("a", f"ns {text}", f"key {text}")) == text


async def test_a_value_of_two_megabytes_comes_back_byte_for_byte(store: SqliteStore) -> None:
    body = "🦊" * 500_000
    await write(store, "a", PutValue("state", "value", body))
    assert await store.read(LoadValue("a", "state", "value")) == body


async def test_a_value_replaces_the_earlier_one(store: SqliteStore) -> None:
    await write(store, "a", PutValue("state", "value", "1"))
    await write(store, "a", PutValue("state", "value", "2"))
    assert await store.read(LoadValue("a", "state", "value")) == "2"


async def test_values_are_told_apart_by_agent_namespace_and_key(store: SqliteStore) -> None:
    names = [("a", "n", "k"), ("b", "n", "k"), ("a", "m", "k"), ("a", "n", "l")]
    for agent, namespace, key in names:
        await write(store, agent, PutValue(namespace, key, f"{agent}{namespace}{key}"))
    await write(store, "a", DeleteValue("n", "k"))
    assert [await store.read(LoadValue(*name)) for name in names] == [None, "bnk", "amk", "anl"]


async def test_a_value_that_is_not_there_is_none(store: SqliteStore) -> None:
    assert await store.read(LoadValue("a", "state", "value")) is None
    await write(store, "a", DeleteValue("state", "value"))
    assert await store.read(LoadValue("a", "state", "value")) is None


async def test_values_outlive_the_conversation(store: SqliteStore) -> None:
    await write(store, "a", PutValue("state", "value", "1"))
    await write(store, "a", ClearConversation())
    assert await store.read(LoadValue("a", "state", "value")) == "1"
