"""Turns and their chunk logs."""

import pytest

from perdure.errors import StorageError
from perdure.storage.contract import (
    CLOSED_TURNS_KEPT,
    AgentRecord,
    AppendChunks,
    ChunkSegment,
    ClearConversation,
    CloseTurn,
    DropChunks,
    LoadAgent,
    LoadChunks,
    OpenAgents,
    OpenTurn,
    Operation,
    TurnRow,
    UpdateTurn,
)
from perdure.storage.sqlite import SqliteStore
from tests.storage.samples import AWKWARD, closing, turn, write

pytestmark = pytest.mark.anyio


async def test_an_agent_that_was_never_written_has_an_empty_record(store: SqliteStore) -> None:
    assert await store.read(LoadAgent("a")) == AgentRecord(0, 0, [], None, [])


@pytest.mark.parametrize("text", AWKWARD)
async def test_an_open_turn_comes_back_with_every_field(store: SqliteStore, text: str) -> None:
    await write(store, "a", OpenTurn(f"id {text}", "running", f"trigger {text}", text, f"message {text}", 1_700))
    row = TurnRow(f"id {text}", "running", f"trigger {text}", text, f"message {text}", None, 1_700, None)
    assert await store.read(LoadAgent("a")) == AgentRecord(0, 0, [row], None, [])


async def test_a_turn_moves_through_its_statuses(store: SqliteStore) -> None:
    await write(store, "a", turn("t"))
    for status in ("running", "awaiting-input", "running"):
        await write(store, "a", UpdateTurn("t", status))
        assert [row.status for row in (await store.read(LoadAgent("a"))).open_turns] == [status]


async def test_a_closed_turn_is_the_last_one_and_no_longer_open(store: SqliteStore) -> None:
    await write(store, "a", turn("t", at_ms=5))
    await write(store, "a", CloseTurn("t", "error", "The model did not answer", 9))
    row = TurnRow("t", "error", "ws-chat", "{}", "t-message", "The model did not answer", 5, 9)
    assert await store.read(LoadAgent("a")) == AgentRecord(0, 0, [], row, ["t"])


async def test_open_turns_come_in_the_order_in_which_they_were_accepted(store: SqliteStore) -> None:
    await write(store, "a", turn("z", at_ms=9))
    await write(store, "b", turn("of another agent"))
    await write(store, "a", turn("y", at_ms=5), turn("x", at_ms=7))
    await write(store, "a", closing("y"))
    await write(store, "a", turn("w", at_ms=1))
    assert [row.id for row in (await store.read(LoadAgent("a"))).open_turns] == ["z", "x", "w"]


async def test_the_last_turn_is_the_one_closed_last_even_if_the_clock_went_back(store: SqliteStore) -> None:
    await write(store, "a", turn("first"), turn("second"), turn("third"))
    for id, at_ms in (("second", 900), ("third", 900), ("first", 100)):
        await write(store, "a", closing(id, at_ms=at_ms))
        last = (await store.read(LoadAgent("a"))).last_turn
        assert last is not None
        assert last.id == id


@pytest.mark.parametrize(
    "operation",
    [UpdateTurn("missing", "running"), closing("missing"), UpdateTurn("done", "running"), closing("done")],
    ids=["update unknown", "close unknown", "update closed", "close closed"],
)
async def test_a_turn_that_is_not_open_cannot_go_on_or_close(store: SqliteStore, operation: Operation) -> None:
    await write(store, "b", turn("missing"))
    await write(store, "a", turn("done"), closing("done"))
    before = await store.read(LoadAgent("a"))
    with pytest.raises(StorageError, match=r"no open turn '(missing|done)' is stored"):
        await write(store, "a", operation)
    assert await store.read(LoadAgent("a")) == before


async def test_an_agent_has_one_turn_of_an_id(store: SqliteStore) -> None:
    await write(store, "a", turn("t"), closing("t"))
    await write(store, "b", turn("t"))
    with pytest.raises(StorageError, match=r"turn\.agent, turn\.id"):
        await write(store, "a", turn("t"))


async def test_the_agents_with_open_turns_are_listed_oldest_turn_first(store: SqliteStore) -> None:
    assert await store.read(OpenAgents()) == []
    await write(store, "c", turn("1"))
    await write(store, "a", turn("1"), turn("2"))
    await write(store, "b", turn("1"), closing("1"))
    await write(store, "d", turn("1"))
    assert await store.read(OpenAgents()) == ["c", "a", "d"]
    await write(store, "c", closing("1"))
    await write(store, "a", closing("1"))
    assert await store.read(OpenAgents()) == ["a", "d"]


@pytest.mark.parametrize("text", AWKWARD)
async def test_a_chunk_segment_comes_back_byte_for_byte(store: SqliteStore, text: str) -> None:
    await write(store, "a", turn(f"t {text}"), AppendChunks(f"t {text}", 0, text))
    assert await store.read(LoadChunks("a", f"t {text}")) == [ChunkSegment(0, text)]


async def test_a_chunk_log_comes_in_the_order_of_its_indexes(store: SqliteStore) -> None:
    await write(store, "a", turn("t"), AppendChunks("t", 12, "c"), AppendChunks("t", 0, "a"))
    await write(store, "a", AppendChunks("t", 9, "b"))
    assert await store.read(LoadChunks("a", "t")) == [
        ChunkSegment(0, "a"),
        ChunkSegment(9, "b"),
        ChunkSegment(12, "c"),
    ]


async def test_each_turn_has_a_chunk_log_of_its_own(store: SqliteStore) -> None:
    for agent in ("a", "b"):
        await write(store, agent, turn("t"), turn("u"), AppendChunks("t", 0, f"{agent} t"))
    await write(store, "a", AppendChunks("u", 0, "a u"))
    await write(store, "a", DropChunks("t"))
    assert await store.read(LoadChunks("a", "t")) == []
    assert await store.read(LoadChunks("a", "u")) == [ChunkSegment(0, "a u")]
    assert await store.read(LoadChunks("b", "t")) == [ChunkSegment(0, "b t")]


async def test_a_chunk_log_outlives_its_turn_until_it_is_dropped(store: SqliteStore) -> None:
    await write(store, "a", turn("t"), AppendChunks("t", 0, "x"), closing("t"))
    assert await store.read(LoadChunks("a", "t")) == [ChunkSegment(0, "x")]
    await write(store, "a", AppendChunks("t", 1, "y"), DropChunks("t"))
    assert await store.read(LoadChunks("a", "t")) == []


async def test_chunks_need_a_turn_and_an_index_that_is_free(store: SqliteStore) -> None:
    with pytest.raises(StorageError, match="no turn 't' is stored"):
        await write(store, "a", AppendChunks("t", 0, "x"))
    await write(store, "a", turn("t"), AppendChunks("t", 0, "x"))
    with pytest.raises(StorageError, match=r"chunk\.turn, chunk\.position"):
        await write(store, "a", AppendChunks("t", 0, "y"))
    assert await store.read(LoadChunks("a", "t")) == [ChunkSegment(0, "x")]


async def test_dropping_chunks_that_are_not_there_does_nothing(store: SqliteStore) -> None:
    await write(store, "a", DropChunks("t"))
    assert await store.read(LoadChunks("a", "t")) == []
    assert await store.read(LoadChunks("never written", "t")) == []


async def test_clearing_forgets_the_turns_and_chunks_of_that_agent_only(store: SqliteStore) -> None:
    for agent in ("a", "b"):
        await write(store, agent, turn("t"), turn("u"), AppendChunks("t", 0, "x"), closing("u"))
    await write(store, "a", ClearConversation())
    assert await store.read(LoadAgent("a")) == AgentRecord(0, 0, [], None, [])
    assert await store.read(OpenAgents()) == ["b"]
    assert await store.read(LoadChunks("b", "t")) == [ChunkSegment(0, "x")]
    await write(store, "a", turn("t"))
    assert await store.read(LoadChunks("a", "t")) == []


async def test_a_turn_after_clearing_starts_with_an_empty_chunk_log(store: SqliteStore) -> None:
    await write(store, "a", turn("t"), AppendChunks("t", 0, "old"))
    await write(store, "a", ClearConversation(), turn("t"))
    assert await store.read(LoadChunks("a", "t")) == []


async def test_the_ids_of_closed_turns_are_kept_in_the_order_in_which_they_closed(store: SqliteStore) -> None:
    await write(store, "a", turn("t"), turn("u"), turn("v"), closing("u"), closing("t"))
    assert (await store.read(LoadAgent("a"))).closed_turns == ["u", "t"]


async def test_only_the_closed_turns_that_ended_last_are_kept(store: SqliteStore) -> None:
    count = CLOSED_TURNS_KEPT + 3
    await write(store, "a", turn("stays open"), *(turn(f"t{n}") for n in range(count)))
    await write(store, "a", *(closing(f"t{n}") for n in range(count)))
    record = await store.read(LoadAgent("a"))
    assert record.closed_turns == [f"t{n}" for n in range(3, count)]
    assert [row.id for row in record.open_turns] == ["stays open"]
    await write(store, "a", turn("t0"))  # a forgotten id is free again


async def test_turns_that_closed_while_an_earlier_one_is_open_were_withdrawn(store: SqliteStore) -> None:
    for number in range(5):
        await write(store, "a", turn(f"t{number}"))
        await write(store, "b", turn(f"t{number}"))
    await write(store, "a", closing("t3"), closing("t0"), closing("t2"))
    record = await store.read(LoadAgent("a"))
    assert [row.id for row in record.open_turns] == ["t1", "t4"]
    assert [row.id for row in record.withdrawn] == ["t2", "t3"]
    assert (await store.read(LoadAgent("b"))).withdrawn == []
    await write(store, "a", closing("t1"), closing("t4"))
    assert (await store.read(LoadAgent("a"))).withdrawn == []
