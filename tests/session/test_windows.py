"""How much of a conversation is sent, held and shown to a model, and how the rest is read."""

import asyncio
import json
import sqlite3
from collections.abc import Sequence
from typing import Any

import pytest

from perdure.errors import BadRequest
from perdure.session.archive import Archive
from perdure.session.transcript import Transcript
from perdure.storage.contract import (
    FindMessages,
    LoadAgent,
    LoadAttachments,
    LoadBranch,
    Query,
)
from perdure.storage.sqlite import SqliteStore
from tests.requirements import requirement
from tests.session.chats import AGENT, Chat, answer_of, file_of, ids, text_of, write_line

pytestmark = pytest.mark.anyio

SIZE = len(text_of("m000")) + 1


def line(count: int) -> list[str]:
    return [text_of(f"m{number:03}") for number in range(count)]


class Watched:
    """A store that notes what it is asked."""

    def __init__(self, store: SqliteStore) -> None:
        self._store = store
        self.queries: list[Query[Any]] = []

    async def read(self, query: Query[Any]) -> Any:
        self.queries.append(query)
        return await self._store.read(query)


async def opened(store: SqliteStore, *, window: int, memory: float) -> tuple[Transcript, Watched]:
    watched = Watched(store)
    archive = Archive(watched, AGENT, lambda: asyncio.sleep(0))  # pyright: ignore[reportArgumentType]
    record = await store.read(LoadAgent(AGENT))
    return await Transcript.open(archive, record, window=window, memory=memory), watched


# ── opening ─────────────────────────────────────────────────────────


@requirement("engine:28")
async def test_a_long_conversation_opens_as_its_recent_end(store: SqliteStore) -> None:
    await write_line(store, line(100))
    transcript, _ = await opened(store, window=5 * SIZE, memory=20 * SIZE)
    assert ids(transcript.texts()) == [f"m{number:03}" for number in range(95, 100)]
    assert [node.id for node in transcript.known.values() if node.loaded] == [f"m{n:03}" for n in range(80, 100)]
    assert transcript.is_windowed
    transcript, _ = await opened(store, window=5 * SIZE, memory=100 * SIZE)
    assert not transcript.is_windowed


async def test_the_newest_message_is_there_however_large_it_is(store: SqliteStore) -> None:
    await write_line(store, [*line(3), text_of("large", "x" * 10_000)])
    transcript, _ = await opened(store, window=100, memory=200)
    assert ids(transcript.texts()) == ["large"]
    assert [entry.message["id"] for entry in await transcript.history("large")] == ["large"]


async def test_sizes_are_bytes_and_not_characters(store: SqliteStore) -> None:
    texts = [json.dumps({"id": f"m{n}", "role": "user", "parts": []}, ensure_ascii=False) + " " * 0 for n in range(3)]
    wide = [text.replace("[]", '[{"type":"text","text":"' + "世" * 100 + '"}]') for text in texts]
    await write_line(store, wide)
    transcript, _ = await opened(store, window=2 * len(wide[0].encode()) + 1, memory=10_000)
    assert len(transcript.texts()) == 1
    transcript, _ = await opened(store, window=2 * len(wide[0].encode()) + 2, memory=10_000)
    assert len(transcript.texts()) == 2


async def test_without_a_limit_everything_is_held(store: SqliteStore) -> None:
    await write_line(store, line(100))
    transcript, _ = await opened(store, window=5 * SIZE, memory=float("inf"))
    assert not transcript.is_windowed
    assert len(await transcript.history("m099")) == 100


async def test_a_large_question_is_sent_with_its_answer(chat: Chat) -> None:
    small = await chat.reopened(window=1_000)
    small.append("u0", None)
    small.append("u1", "u0", text="x" * 5_000)
    assert small.path == ["u1"]
    small.answer("a1", "u1")
    assert small.path == ["u1", "a1"], "a picture does not vanish because somebody answered"
    assert (await small.reopened(window=1_000)).path == ["u1", "a1"]
    small.append("u2", "a1")
    assert small.path == ["a1", "u2"]


# ── growing ─────────────────────────────────────────────────────────


async def test_clients_are_sent_a_window_that_moves_with_the_conversation(chat: Chat) -> None:
    moving = await chat.reopened(window=3 * SIZE, memory=1_000_000)
    for number in range(10):
        moving.append(f"m{number:03}", moving.transcript.leaf)
        assert moving.path == [f"m{n:03}" for n in range(max(0, number - 2), number + 1)]


async def test_nothing_leaves_memory_until_no_turn_is_open_and_then_a_quarter_does(chat: Chat) -> None:
    growing = await chat.reopened(window=3 * SIZE, memory=8 * SIZE)
    for number in range(20):
        growing.append(f"m{number:03}", growing.transcript.leaf)
    assert len(growing.transcript.known) == 20
    growing.transcript.shrink()
    assert [node.id for node in growing.transcript.known.values() if node.loaded] == [f"m{n:03}" for n in range(14, 20)]
    assert growing.transcript.is_windowed
    growing.transcript.shrink()
    assert sum(node.loaded for node in growing.transcript.known.values()) == 6


async def test_what_left_memory_is_still_known_to_be_stored(chat: Chat) -> None:
    small = await chat.reopened(window=2 * SIZE, memory=4 * SIZE)
    for number in range(10):
        small.append(f"m{number:03}", small.transcript.leaf)
    small.transcript.shrink()
    assert small.transcript.unknown(["m000", "m009", "new"]) == ["m000", "new"]
    await small.transcript.recall(["m000", "new"])
    assert "m000" in small.transcript.known
    assert "new" not in small.transcript.known
    assert small.transcript.unknown(["m000", "m009", "new"]) == []


# ── branches ────────────────────────────────────────────────────────


async def test_an_edit_of_an_older_message_brings_what_was_before_it_back(store: SqliteStore) -> None:
    await write_line(store, line(100))
    chat = await Chat.open(store, window=5 * SIZE, memory=10 * SIZE)
    await chat.transcript.reach(["m050", "edit"], "m049")
    chat.append("edit", "m049")
    assert chat.path == ["m046", "m047", "m048", "m049", "edit"]
    assert len(await chat.history("edit")) >= 10
    chat.transcript.shrink()
    again = await chat.reopened(window=5 * SIZE, memory=10 * SIZE)
    assert again.path == chat.path


async def test_cutting_the_path_short_fills_the_window_from_the_store(store: SqliteStore) -> None:
    await write_line(store, line(100))
    chat = await Chat.open(store, window=5 * SIZE, memory=10 * SIZE)
    assert chat.transcript.lacks("m091"), "of the ten messages in memory only two would be left"
    await chat.transcript.reach([], "m091")
    assert not chat.transcript.lacks("m091")
    chat.answer("a", "m091")
    assert chat.path == ["m088", "m089", "m090", "m091", "a"]


async def test_leaving_off_the_last_answer_reads_nothing(store: SqliteStore) -> None:
    await write_line(store, line(100))
    transcript, watched = await opened(store, window=5 * SIZE, memory=10 * SIZE)
    watched.queries.clear()
    assert not transcript.lacks("m098")
    await transcript.reach(["m098"], "m098")
    assert watched.queries == []


async def test_a_conversation_that_is_all_in_memory_is_never_read(store: SqliteStore) -> None:
    await write_line(store, line(10))
    transcript, watched = await opened(store, window=2 * SIZE, memory=100 * SIZE)
    watched.queries.clear()
    await transcript.reach(["m000", "new"], "m003")
    assert [entry.message["id"] for entry in await transcript.history("m009")] == [f"m{n:03}" for n in range(10)]
    assert watched.queries == []


async def test_the_ids_of_other_branches_are_remembered(store: SqliteStore) -> None:
    chat = await Chat.open(store)
    chat.say("u1", "a1", "u2", "a2")
    chat.answer("a3", "u1")
    chat.transcript.shrink()
    await chat.settled()
    woken, watched = await opened(store, window=10 * SIZE, memory=100 * SIZE)
    watched.queries.clear()
    for transcript in (chat.transcript, woken):
        assert [node.id for node in transcript.known.values() if node.loaded] == ["u1", "a3"]
        assert transcript.unknown(["new"]) == []
        assert {"a1", "u2", "a2"} <= transcript.known.keys()
    assert watched.queries == []


async def test_of_very_many_messages_beside_the_path_none_is_remembered(store: SqliteStore) -> None:
    await write_line(store, line(1200))
    chat = await Chat.open(store)
    chat.append("edit", "m000")
    chat.transcript.shrink()
    await chat.settled()
    woken, _ = await opened(store, window=10 * SIZE, memory=100 * SIZE)
    for transcript in (chat.transcript, woken):
        assert set(transcript.known) == {"m000", "edit"}
        assert transcript.unknown(["m005"]) == ["m005"]


async def test_many_unknown_ids_are_looked_for_with_one_query(store: SqliteStore) -> None:
    await write_line(store, line(2000))
    transcript, watched = await opened(store, window=5 * SIZE, memory=10 * SIZE)
    watched.queries.clear()
    await transcript.reach([*(f"m{n:03}" for n in range(1500)), "new"])
    assert [type(query) for query in watched.queries] == [FindMessages]
    assert "new" not in transcript.known
    assert {"m000", "m1499"} <= transcript.known.keys()


async def test_a_clear_while_something_is_read_leaves_nothing_behind(store: SqliteStore) -> None:
    await write_line(store, line(100))
    transcript, _ = await opened(store, window=5 * SIZE, memory=10 * SIZE)
    reading = [asyncio.ensure_future(transcript.recall(["m010"])), asyncio.ensure_future(transcript.load("m093"))]
    await asyncio.sleep(0)
    transcript.clear()
    await asyncio.gather(*reading)
    assert transcript.known == {}
    assert transcript.texts() == []


# ── reading ─────────────────────────────────────────────────────────


async def test_older_messages_are_read_page_by_page(store: SqliteStore) -> None:
    await write_line(store, line(25))
    transcript, _ = await opened(store, window=SIZE, memory=2 * SIZE)
    found: list[str] = []
    before: str | None = None
    while page := await transcript.page(before, 10):
        found[:0] = [message["id"] for message in page]
        before = page[0]["id"]
    assert found == [f"m{number:03}" for number in range(25)]
    assert len(await transcript.page()) == 25
    assert await transcript.page("m003", 0) == []


@requirement("engine:24")
async def test_a_page_is_a_copy_and_sees_what_was_just_written(chat: Chat) -> None:
    chat.say("u1", "a1")
    (first, _) = await chat.transcript.page()
    first["parts"].clear()
    assert [message["id"] for message in await chat.transcript.page()] == ["u1", "a1"]
    assert (await chat.transcript.page())[0]["parts"]
    assert chat.transcript.messages()[0]["parts"]


async def test_a_page_before_a_message_that_never_was_is_refused(chat: Chat) -> None:
    chat.say("u1")
    with pytest.raises(BadRequest, match="There is no message 'nowhere'"):
        await chat.transcript.page("nowhere")


# ── attachments ─────────────────────────────────────────────────────


def with_file(identifier: str, content: bytes) -> str:
    return json.dumps({"id": identifier, "role": "user", "parts": [file_of(content)]})


async def test_attachments_beyond_the_window_are_not_held_and_still_shown_to_the_model(store: SqliteStore) -> None:
    chat = await Chat.open(store, window=150_000, memory=1_000_000)
    texts = [with_file(f"u{number}", bytes([number]) * 40_000) for number in range(5)]
    for number, text in enumerate(texts):
        chat.write(chat.transcript.append(f"u{number}", "user", text, chat.transcript.leaf, 1))
    chat.transcript.shrink()

    def held(chat: Chat) -> list[bool]:
        return [node.message is not None for node in chat.transcript.known.values()]

    assert held(chat) == [False, False, False, True, True]
    assert chat.transcript.texts() == texts[3:]
    woken = await chat.reopened(window=150_000, memory=1_000_000)
    assert held(woken) == held(chat)
    for one in (chat, woken):
        assert [entry.text for entry in await one.transcript.history("u4")] == texts
        assert [json.loads(text) for text in texts] == await one.transcript.page()
        assert held(one) == [False, False, False, True, True], "what the model was shown is not kept"


async def test_a_file_that_is_sent_ten_times_is_kept_once(store: SqliteStore) -> None:
    chat = await Chat.open(store)
    for number in range(10):
        text = with_file(f"u{number}", b"same" * 20_000)
        chat.write(chat.transcript.append(f"u{number}", "user", text, chat.transcript.leaf, 1))
    await chat.settled()
    rows = (await store.read(LoadBranch(AGENT))).rows
    assert all(len(row.body) < 300 for row in rows)
    (digest,) = {reference.digest for row in rows for reference in row.attachments}
    assert await store.read(LoadAttachments(AGENT, [digest])) == {digest: b"same" * 20_000}


async def test_cutting_back_to_a_message_whose_attachment_is_not_held_brings_it_back(store: SqliteStore) -> None:
    chat = await Chat.open(store, window=60_000, memory=1_000_000)
    text = with_file("u1", b"p" * 40_000)
    chat.write(chat.transcript.append("u1", "user", text, None, 1))
    chat.answer("a1", "u1", {"type": "text", "text": "x" * 50_000})
    chat.append("u2", "a1")
    chat.transcript.shrink()
    assert chat.path == ["a1", "u2"]
    assert chat.transcript.lacks("u1")
    await chat.transcript.reach(["u1"], "u1")
    chat.answer("a2", "u1")
    assert chat.transcript.texts()[0] == text
    assert chat.path == ["u1", "a2"]


async def test_a_missing_attachment_leaves_a_file_without_content(
    store: SqliteStore, caplog: pytest.LogCaptureFixture
) -> None:
    chat = await Chat.open(store)
    chat.write(chat.transcript.append("u1", "user", with_file("u1", b"p" * 40_000), None, 1))
    await chat.settled()
    (reference,) = (await store.read(LoadBranch(AGENT))).rows[0].attachments
    with_sqlite(store, "delete from attachment")
    woken = await chat.reopened()
    assert woken.transcript.messages()[0]["parts"][0]["url"] == "data:image/png;base64,"
    assert reference.digest in caplog.text


def with_sqlite(store: SqliteStore, *statements: str, values: Sequence[Any] = ()) -> None:
    """Tamper with the file."""

    connection = sqlite3.connect(store.path, isolation_level=None)
    for statement in statements:
        connection.execute(statement, values)
    connection.close()


# ── damage ──────────────────────────────────────────────────────────

DAMAGED = [
    "",
    "not JSON",
    '{"id":"m1","role":"user","parts":[{"type":"text","text":"cut sh',
    "null",
    "[]",
    '{"role":"user","parts":[]}',
    '{"id":"m1","role":"oracle","parts":[]}',
    '{"id":"m1","role":"user","parts":{}}',
    '{"id":"m1","role":"user","parts":[null]}',
    '{"id":"m1","role":"user"}',
    '{"id":"m3","role":"user","parts":[]}',
]


@requirement("fault:PS-05")
@pytest.mark.parametrize("body", DAMAGED)
@pytest.mark.parametrize("which", [0, 1, 2])
async def test_a_damaged_message_is_left_out_and_the_conversation_goes_on(
    store: SqliteStore, body: str, which: int, caplog: pytest.LogCaptureFixture
) -> None:
    await write_line(store, [text_of(f"m{number}") for number in range(3)])
    with_sqlite(store, "update message set body = ? where pos = ?", values=(body, which))
    chat = await Chat.open(store)
    good = [f"m{number}" for number in range(3) if number != which]
    assert chat.path == good
    assert f"position {which}" in caplog.text
    assert await chat.history(good[-1]) == good
    await chat.transcript.reach(["new", f"m{which}"], chat.transcript.leaf)
    assert f"m{which}" in chat.transcript.known, "its id is taken"
    chat.append("new", chat.transcript.leaf)
    again = await chat.reopened()
    assert again.path[-1] == "new"
    assert set(again.path) >= {good[0], "new"}
    assert (await store.read(LoadAgent(AGENT))).messages == 4, "nothing was deleted"


async def test_an_answer_that_follows_a_damaged_message_can_be_edited_away(store: SqliteStore) -> None:
    await write_line(store, [text_of("m0"), text_of("m1"), json.dumps(answer_of("a2")), text_of("m3")])
    with_sqlite(store, "update message set body = '' where pos = 1")
    chat = await Chat.open(store)
    assert chat.path == ["m0", "a2", "m3"]
    assert chat.transcript.known["a2"].parent == "m0"
    chat.append("edit", "m0")
    assert chat.path == ["m0", "edit"]
    assert (await chat.reopened()).path == ["m0", "edit"]
