"""The end of a branch within limits, and messages found by id or by what they follow."""

import random

import pytest

from perdure.storage.contract import (
    Branch,
    FindFollowing,
    FindMessages,
    LoadBranch,
    LoadPath,
    MessagePlace,
)
from perdure.storage.sqlite import SqliteStore
from tests.storage.samples import message, write

pytestmark = pytest.mark.anyio


def positions(branch: Branch) -> list[int]:
    return [row.pos for row in branch.rows]


async def test_a_branch_without_limits_is_the_whole_path(store: SqliteStore) -> None:
    # 0 ─ 1 ─ 2 ─ 3
    #      └─ 4 ─ 5
    await write(store, "a", message(0), message(1, 0), message(2, 1), message(3, 2), message(4, 1), message(5, 4))
    whole = await store.read(LoadBranch("a"))
    assert whole == Branch(await store.read(LoadPath("a")), None)
    assert positions(await store.read(LoadBranch("a", leaf=3))) == [0, 1, 2, 3]
    assert positions(await store.read(LoadBranch("a", leaf=0))) == [0]


async def test_a_branch_ends_where_its_limits_are_reached_and_says_what_comes_before(store: SqliteStore) -> None:
    await write(store, "a", *[message(n, n - 1 if n else None, body="x" * 10) for n in range(10)])
    branch = await store.read(LoadBranch("a", max_rows=3))
    assert positions(branch) == [7, 8, 9]
    assert branch.before == MessagePlace(6, "m6", 5, "user")
    branch = await store.read(LoadBranch("a", max_bytes=39))
    assert positions(branch) == [7, 8, 9]
    assert positions(await store.read(LoadBranch("a", max_bytes=40))) == [6, 7, 8, 9]
    assert positions(await store.read(LoadBranch("a", max_bytes=1_000, max_rows=2))) == [8, 9]
    assert (await store.read(LoadBranch("a", max_rows=10))).before is None


async def test_the_last_message_comes_however_large_it_is(store: SqliteStore) -> None:
    await write(store, "a", message(0), message(1, 0, body="x" * 1000))
    branch = await store.read(LoadBranch("a", max_bytes=1))
    assert positions(branch) == [1]
    assert branch.before == MessagePlace(0, "m0", None, "user")


async def test_limits_count_bytes(store: SqliteStore) -> None:
    await write(store, "a", message(0, body="世世世"), message(1, 0, body="世世世"))
    assert positions(await store.read(LoadBranch("a", max_bytes=17))) == [1]
    assert positions(await store.read(LoadBranch("a", max_bytes=18))) == [0, 1]


async def test_what_is_not_stored_has_no_branch(store: SqliteStore) -> None:
    assert await store.read(LoadBranch("nobody")) == Branch([], None)
    await write(store, "a", message(3))
    assert await store.read(LoadBranch("a", leaf=2)) == Branch([], None)
    assert await store.read(LoadBranch("a", leaf=9)) == Branch([], None)


@pytest.mark.parametrize("seed", range(8))
async def test_any_branch_of_any_tree_is_what_following_the_parents_gives(store: SqliteStore, seed: int) -> None:
    chance = random.Random(seed)
    parents: dict[int, int | None] = {}
    for pos in range(120):
        earlier = list(parents)
        parents[pos] = earlier[-1] if earlier and chance.random() < 0.7 else chance.choice([None, *earlier])
    await write(store, "a", *[message(pos, parent) for pos, parent in parents.items()])
    for _ in range(20):
        leaf, most = chance.randrange(120), chance.randrange(1, 30)
        line: list[int] = []
        at: int | None = leaf
        while at is not None:
            line.insert(0, at)
            at = parents[at]
        branch = await store.read(LoadBranch("a", leaf=leaf, max_rows=most))
        assert positions(branch) == line[-most:]
        assert (branch.before.pos if branch.before else None) == (line[-most - 1] if len(line) > most else None)


async def test_messages_are_found_by_id_on_any_branch_and_of_that_agent_only(store: SqliteStore) -> None:
    await write(store, "a", message(0), message(1, 0), message(2, 0))
    await write(store, "b", message(0, id="other"))
    found = await store.read(FindMessages("a", ["m1", "m2", "other", "nothing"]))
    assert sorted(found, key=lambda place: place.pos) == [
        MessagePlace(1, "m1", 0, "user"),
        MessagePlace(2, "m2", 0, "user"),
    ]
    assert await store.read(FindMessages("a", [])) == []
    assert await store.read(FindMessages("nobody", ["m1"])) == []


async def test_thousands_of_ids_can_be_looked_for_at_once(store: SqliteStore) -> None:
    await write(store, "a", *[message(pos, pos - 1 if pos else None) for pos in range(1200)])
    found = await store.read(FindMessages("a", [f"m{number}" for number in range(40_000)]))
    assert {place.pos for place in found} == set(range(1200))


async def test_what_follows_a_message_begins_its_branches(store: SqliteStore) -> None:
    # 0 ─ 1 ─ 2
    #  ├─ 3 ─ 4
    #  └─ 5
    await write(store, "a", message(0), message(1, 0), message(2, 1), message(3, 0), message(4, 3), message(5, 0))
    assert [place.pos for place in await store.read(FindFollowing("a", [0]))] == [1, 3, 5]
    assert [place.pos for place in await store.read(FindFollowing("a", [1, 3]))] == [2, 4]
    assert await store.read(FindFollowing("a", [5])) == []
    assert await store.read(FindFollowing("a", [])) == []
