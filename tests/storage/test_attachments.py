"""Attachments beside the messages: kept once, as long as a message refers to them."""

import hashlib
import sqlite3
from typing import Any

import pytest

from perdure.errors import StorageError
from perdure.storage.contract import (
    AttachmentRef,
    ClearConversation,
    LoadAttachments,
    LoadBranch,
    LoadPath,
    MoveMessage,
    Operation,
    PutAttachment,
    UpdateMessage,
)
from perdure.storage.sqlite import SqliteStore
from tests.storage.samples import message, write

pytestmark = pytest.mark.anyio

DATA = {hashlib.sha256(data).hexdigest(): data for data in (b"one" * 1000, b"two\x00\xff" * 1000, b"")}
ONE, TWO, EMPTY = DATA
ALL = list(DATA)


def put(digest: str) -> PutAttachment:
    return PutAttachment(digest, DATA[digest])


def refers(pos: int, *digests: str, parent: int | None = None) -> Operation:
    row = message(pos, parent)
    references = tuple(AttachmentRef(offset, digest, 10 + offset) for offset, digest in enumerate(digests))
    return type(row)(row.pos, row.id, row.parent, row.role, row.body, row.at_ms, references)


def kept(store: SqliteStore) -> list[Any]:
    connection = sqlite3.connect(store.path)
    try:
        return connection.execute("select agent, digest from attachment order by agent, digest").fetchall()
    finally:
        connection.close()


async def test_data_comes_back_byte_for_byte_and_references_with_the_message(store: SqliteStore) -> None:
    await write(store, "a", put(ONE), put(TWO), put(EMPTY), refers(0, ONE, TWO, ONE, EMPTY))
    assert await store.read(LoadAttachments("a", [*ALL, "unknown"])) == DATA
    (row,) = await store.read(LoadPath("a"))
    assert row.attachments == tuple(AttachmentRef(n, digest, 10 + n) for n, digest in enumerate([ONE, TWO, ONE, EMPTY]))


async def test_the_same_data_is_kept_once_for_each_agent(store: SqliteStore) -> None:
    await write(store, "a", put(ONE), refers(0, ONE))
    await write(store, "a", put(ONE), refers(1, ONE))
    await write(store, "b", put(ONE), refers(0, ONE))
    assert kept(store) == [(1, ONE), (2, ONE)]
    assert await store.read(LoadAttachments("never written", ALL)) == {}


async def test_an_update_forgets_what_nothing_refers_to_any_more(store: SqliteStore) -> None:
    await write(store, "a", put(ONE), put(TWO), refers(0, ONE, TWO), refers(1, ONE))
    await write(store, "b", put(TWO), refers(0, TWO))
    await write(store, "a", UpdateMessage(0, "{}"))
    assert kept(store) == [(1, ONE), (2, TWO)]
    await write(store, "a", UpdateMessage(1, "{}"))
    assert kept(store) == [(2, TWO)]


async def test_an_update_may_bring_data_and_keep_some(store: SqliteStore) -> None:
    await write(store, "a", put(ONE), refers(0, ONE))
    await write(store, "a", put(ONE), put(TWO), UpdateMessage(0, "{}", (AttachmentRef(0, TWO, 4),)))
    assert kept(store) == [(1, TWO)]
    (row,) = await store.read(LoadPath("a"))
    assert row.attachments == (AttachmentRef(0, TWO, 4),)


async def test_a_message_that_moves_keeps_its_attachments(store: SqliteStore) -> None:
    await write(store, "a", put(ONE), refers(0, ONE), MoveMessage(0, 3, None))
    assert (await store.read(LoadPath("a")))[0].attachments
    await write(store, "a", UpdateMessage(3, "{}"))
    assert kept(store) == []


async def test_clearing_forgets_the_attachments_of_that_agent_only(store: SqliteStore) -> None:
    await write(store, "a", put(ONE), refers(0, ONE))
    await write(store, "b", put(ONE), refers(0, ONE))
    await write(store, "a", ClearConversation())
    assert kept(store) == [(2, ONE)]


async def test_a_write_that_fails_keeps_none_of_its_attachments(store: SqliteStore) -> None:
    with pytest.raises(StorageError):
        await write(store, "a", put(ONE), refers(0, ONE), message(5, 4))
    assert kept(store) == []


async def test_attachments_count_for_the_size_of_a_branch(store: SqliteStore) -> None:
    await write(store, "a", put(ONE), message(0), refers(1, ONE, ONE, parent=0), message(2, 1))
    # "{}" is 2 bytes; the two attachments stand for 10 and 11 characters.
    assert len((await store.read(LoadBranch("a", max_bytes=26))).rows) == 2
    assert len((await store.read(LoadBranch("a", max_bytes=27))).rows) == 3


async def test_references_that_are_damaged_leave_the_message_without_its_data(store: SqliteStore) -> None:
    await write(store, "a", put(ONE), refers(0, ONE))
    connection = sqlite3.connect(store.path, isolation_level=None)
    connection.execute("update message set attachments = 'damaged'")
    connection.close()
    assert (await store.read(LoadPath("a")))[0].attachments == ()
    await write(store, "a", UpdateMessage(0, "{}"))
