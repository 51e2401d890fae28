"""Interactions, and which of them an agent has to know when it is woken."""

import pytest

from perdure.storage.contract import ClearConversation, CloseTurn, OpenTurn
from perdure.storage.interactions import InteractionRow, LoadInteractions, PutInteraction
from perdure.storage.sqlite import SqliteStore
from tests.storage.samples import AWKWARD, write

pytestmark = pytest.mark.anyio


def row(call: str = "c1", turn: str = "t1", state: str = "waiting", body: str = "{}") -> InteractionRow:
    return InteractionRow(call, turn, state, body)


@pytest.mark.parametrize("text", AWKWARD)
async def test_an_interaction_comes_back_as_it_was(store: SqliteStore, text: str) -> None:
    kept = row(f"call {text}", f"turn {text}", "approved", text)
    await write(store, "a", PutInteraction(kept))
    assert await store.read(LoadInteractions("a")) == [kept]


async def test_an_interaction_keeps_its_place_when_it_changes(store: SqliteStore) -> None:
    await write(store, "a", *[PutInteraction(row(call)) for call in ("z", "a", "b")])
    changed = row("z", state="approved", body='{"decision":"approved"}')
    await write(store, "a", PutInteraction(changed))
    assert await store.read(LoadInteractions("a")) == [changed, row("a"), row("b")]


async def test_the_settled_ones_of_a_turn_are_loaded_as_long_as_one_is_not(store: SqliteStore) -> None:
    await write(store, "a", PutInteraction(row("c1", state="settled")), PutInteraction(row("c2")))
    await write(store, "a", PutInteraction(row("old", "t0", "settled")))
    assert [each.call for each in await store.read(LoadInteractions("a"))] == ["c1", "c2"]
    await write(store, "a", PutInteraction(row("c2", state="settled")))
    assert await store.read(LoadInteractions("a")) == []


async def test_those_of_an_open_turn_are_loaded_though_all_are_settled(store: SqliteStore) -> None:
    await write(store, "a", OpenTurn("t1", "running", "ws-chat", "{}", "m1", 1), PutInteraction(row(state="settled")))
    assert await store.read(LoadInteractions("a")) == [row(state="settled")]
    await write(store, "a", CloseTurn("t1", "completed", None, 2))
    assert await store.read(LoadInteractions("a")) == []


async def test_interactions_belong_to_their_agent_and_go_with_its_conversation(store: SqliteStore) -> None:
    await write(store, "a", PutInteraction(row()))
    await write(store, "b", PutInteraction(row()))
    await write(store, "a", ClearConversation())
    assert await store.read(LoadInteractions("a")) == []
    assert await store.read(LoadInteractions("b")) == [row()]
    assert await store.read(LoadInteractions("unknown")) == []
