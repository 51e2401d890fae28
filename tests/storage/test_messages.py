"""Messages and the active path."""

import random

import pytest

from perdure.errors import StorageError
from perdure.storage.contract import (
    AppendMessage,
    ClearConversation,
    LeaveOutMessage,
    LoadAgent,
    LoadOffPath,
    LoadPath,
    MessageRow,
    MoveMessage,
    UpdateMessage,
)
from perdure.storage.sqlite import SqliteStore
from tests.storage.samples import AWKWARD, message, write

pytestmark = pytest.mark.anyio


async def test_a_message_comes_back_with_every_field(store: SqliteStore) -> None:
    await write(store, "a", message(0), AppendMessage(7, "id", 0, "assistant", '{"x":1}', 123))
    assert await store.read(LoadPath("a")) == [
        MessageRow(pos=0, id="m0", parent=None, role="user", body="{}"),
        MessageRow(pos=7, id="id", parent=0, role="assistant", body='{"x":1}'),
    ]


@pytest.mark.parametrize("text", AWKWARD)
async def test_text_comes_back_byte_for_byte(store: SqliteStore, text: str) -> None:
    await write(store, f"agent {text}", AppendMessage(0, f"id {text}", None, f"role {text}", text, 0))
    assert await store.read(LoadPath(f"agent {text}")) == [MessageRow(0, f"id {text}", None, f"role {text}", text)]


async def test_a_body_of_two_megabytes_comes_back_byte_for_byte(store: SqliteStore) -> None:
    body = "".join(chr(code) for code in range(32, 0xD800)) * 15
    assert len(body.encode()) > 2_000_000
    await write(store, "a", message(0), message(1, 0, body=body))
    assert (await store.read(LoadPath("a")))[1].body == body


async def test_an_update_replaces_the_body_and_keeps_the_place(store: SqliteStore) -> None:
    await write(store, "a", message(0), message(1, 0), message(2, 1))
    await write(store, "a", UpdateMessage(1, "new"))
    assert [(row.pos, row.parent, row.body) for row in await store.read(LoadPath("a"))] == [
        (0, None, "{}"),
        (1, 0, "new"),
        (2, 1, "{}"),
    ]


async def test_an_update_of_a_message_that_is_not_stored_fails(store: SqliteStore) -> None:
    await write(store, "other", message(3))
    with pytest.raises(StorageError, match="no message is stored at position 3"):
        await write(store, "a", UpdateMessage(3, "new"))
    assert (await store.read(LoadPath("other")))[0].body == "{}"


@pytest.mark.parametrize(
    ("operation", "reason"),
    [
        (message(5, id="m0"), "message.agent, message.id"),
        (message(0, id="other"), "message.agent, message.pos"),
        (message(5, 4), "follows position 4, where no message is stored"),
        (message(5, 5), "follows position 5, where no message is stored"),
    ],
    ids=["id taken", "position taken", "no parent", "its own parent"],
)
async def test_a_message_that_does_not_fit_the_tree_is_refused(
    store: SqliteStore, operation: AppendMessage, reason: str
) -> None:
    await write(store, "a", message(0))
    with pytest.raises(StorageError, match=reason):
        await write(store, "a", operation)
    assert [row.id for row in await store.read(LoadPath("a"))] == ["m0"]


async def test_a_later_message_cannot_be_a_parent(store: SqliteStore) -> None:
    await write(store, "a", message(0), message(9, 0))
    with pytest.raises(StorageError, match="parent < pos"):
        await write(store, "a", message(5, 9))


async def test_two_agents_may_use_the_same_ids_and_positions(store: SqliteStore) -> None:
    await write(store, "a", message(0, body="of a"))
    await write(store, "b", message(0, body="of b"))
    assert [row.body for row in await store.read(LoadPath("a"))] == ["of a"]
    assert [row.body for row in await store.read(LoadPath("b"))] == ["of b"]


async def test_the_path_of_an_agent_without_messages_is_empty(store: SqliteStore) -> None:
    assert await store.read(LoadPath("a")) == []
    await write(store, "a", ClearConversation())
    assert await store.read(LoadPath("a")) == []


async def test_the_newest_message_is_the_leaf_of_the_path(store: SqliteStore) -> None:
    # 0 ─ 1 ─ 2 ─ 3        the first answer and what followed
    #      └─ 4 ─ 5        the regenerated one
    await write(store, "a", message(0), message(1, 0), message(2, 1), message(3, 2), message(4, 1), message(5, 4))
    assert [row.pos for row in await store.read(LoadPath("a"))] == [0, 1, 4, 5]
    await write(store, "a", message(6, 3))
    assert [row.pos for row in await store.read(LoadPath("a"))] == [0, 1, 2, 3, 6]


async def test_a_second_root_leaves_the_older_tree_behind(store: SqliteStore) -> None:
    await write(store, "a", message(0), message(1, 0), message(2))
    assert [row.pos for row in await store.read(LoadPath("a"))] == [2]


@pytest.mark.parametrize("seed", range(12))
async def test_the_path_of_any_tree_is_what_following_the_parents_gives(store: SqliteStore, seed: int) -> None:
    chance = random.Random(seed)
    parents: dict[int, int | None] = {}
    pos = -1
    for _ in range(150):
        pos += chance.choice((1, 1, 1, 4))
        earlier = list(parents)
        linear = earlier and chance.random() < 0.7
        parents[pos] = earlier[-1] if linear else chance.choice([None, *earlier])
    await write(store, "a", *[message(pos, parent) for pos, parent in parents.items()])

    expected: list[int] = []
    at: int | None = pos
    while at is not None:
        expected.insert(0, at)
        at = parents[at]
    assert [row.pos for row in await store.read(LoadPath("a"))] == expected


async def test_a_path_of_ten_thousand_messages_is_whole(store: SqliteStore) -> None:
    await write(store, "a", *[message(pos, pos - 1 if pos else None) for pos in range(10_000)])
    assert [row.pos for row in await store.read(LoadPath("a"))] == list(range(10_000))


async def test_the_next_position_follows_the_greatest(store: SqliteStore) -> None:
    assert (await store.read(LoadAgent("a"))).next_pos == 0
    await write(store, "a", message(0), message(7, 0))
    assert (await store.read(LoadAgent("a"))).next_pos == 8


async def test_clearing_forgets_the_messages_of_that_agent_only(store: SqliteStore) -> None:
    await write(store, "a", message(0), message(1, 0))
    await write(store, "b", message(0))
    await write(store, "a", ClearConversation())
    assert await store.read(LoadPath("a")) == []
    assert (await store.read(LoadAgent("a"))).next_pos == 0
    assert len(await store.read(LoadPath("b"))) == 1


async def test_a_cleared_conversation_may_use_its_ids_again_in_the_same_write(store: SqliteStore) -> None:
    await write(store, "a", message(0, body="old"))
    await write(store, "a", ClearConversation(), message(0, body="new"))
    assert [row.body for row in await store.read(LoadPath("a"))] == ["new"]


async def test_a_moved_message_follows_its_new_parent_with_its_text_and_id_kept(store: SqliteStore) -> None:
    await write(store, "a", message(0), message(1, 0, body='{"waits":true}'), message(2, 0))
    await write(store, "a", MoveMessage(pos=1, to=3, parent=2))
    path = await store.read(LoadPath("a"))
    assert [(row.pos, row.id, row.parent) for row in path] == [(0, "m0", None), (2, "m2", 0), (3, "m1", 2)]
    assert path[-1].body == '{"waits":true}'


@pytest.mark.parametrize(
    "move",
    [MoveMessage(pos=7, to=9, parent=0), MoveMessage(pos=1, to=9, parent=7), MoveMessage(pos=1, to=0, parent=None)],
    ids=["no such message", "no such parent", "the place is taken"],
)
async def test_a_message_that_cannot_be_moved_is_refused(store: SqliteStore, move: MoveMessage) -> None:
    await write(store, "a", message(0), message(1, 0))
    with pytest.raises(StorageError):
        await write(store, "a", move)


async def test_the_messages_off_the_active_path_are_those_of_other_branches(store: SqliteStore) -> None:
    await write(store, "a", message(0), message(1, 0), message(2, 1), message(3, 0), message(4, 3))
    assert [row.pos for row in await store.read(LoadPath("a"))] == [0, 3, 4]
    assert [row.pos for row in await store.read(LoadOffPath("a"))] == [1, 2]
    assert (await store.read(LoadAgent("a"))).messages == 5


async def test_a_message_is_left_out_and_taken_in_again(store: SqliteStore) -> None:
    await write(store, "a", message(0), message(1, 0), message(2, 1))
    await write(store, "a", LeaveOutMessage(1), LeaveOutMessage(2))
    await write(store, "a", LeaveOutMessage(1, left_out=False), UpdateMessage(2, "new"), MoveMessage(2, 3, 1))
    rows = await store.read(LoadPath("a"))
    assert [(row.pos, row.left_out) for row in rows] == [(0, False), (1, False), (3, True)]


async def test_a_message_that_is_not_stored_cannot_be_left_out(store: SqliteStore) -> None:
    await write(store, "other", message(3))
    with pytest.raises(StorageError, match="no message is stored at position 3"):
        await write(store, "a", LeaveOutMessage(3))
