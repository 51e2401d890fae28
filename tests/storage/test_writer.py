"""The writer thread where a store cannot show it: its event loop is gone, or SQLite refuses to commit."""

import asyncio
import sqlite3
import threading
from pathlib import Path
from typing import Any

import pytest

from perdure.errors import StorageError
from perdure.storage.contract import Operation, PutValue, UpdateMessage
from perdure.storage.sqlite.files import OpenFiles
from perdure.storage.sqlite.writer import Write, Writer


class Watched(asyncio.SelectorEventLoop):
    """An event loop that lets a test wait until the writer has called on it."""

    def __init__(self) -> None:
        super().__init__()
        self.called = threading.Event()

    def call_soon_threadsafe(self, *args: Any, **kwargs: Any) -> asyncio.Handle:
        self.called.set()
        return super().call_soon_threadsafe(*args, **kwargs)


def test_the_writer_goes_on_when_the_event_loop_is_gone(folder: Path) -> None:
    files = OpenFiles(folder)
    loop = Watched()
    writer = Writer(files.connection, files.path, files.epoch, loop)
    loop.close()

    def submit(operation: Operation) -> None:
        loop.called.clear()
        writer.submit(Write("a", files.epoch, [operation], loop.create_future()))
        assert loop.called.wait(10)

    submit(PutValue("n", "first", "1"))
    submit(UpdateMessage(9, "missing"))
    submit(PutValue("n", "after a failure that nobody heard of", "1"))
    writer.stop()
    assert (writer.statistics.writes, writer.statistics.failed) == (2, 1)
    files.close()

    connection = sqlite3.connect(files.path)
    assert len(connection.execute("select key from kv").fetchall()) == 2
    connection.close()


@pytest.mark.anyio
async def test_a_commit_that_is_refused_fails_its_writes_and_the_next_group_is_stored(folder: Path) -> None:
    files = OpenFiles(folder)
    writer = Writer(files.connection, files.path, files.epoch, asyncio.get_running_loop())

    async def write(key: str) -> None:
        commit = asyncio.get_running_loop().create_future()
        writer.submit(Write("a", files.epoch, [PutValue("n", key, "1")], commit))
        await commit

    def refuse_to_commit(action: int, name: str | None, *_: object) -> int:
        refused = (action, name) == (sqlite3.SQLITE_TRANSACTION, "COMMIT")
        return sqlite3.SQLITE_DENY if refused else sqlite3.SQLITE_OK

    files.connection.set_authorizer(refuse_to_commit)
    with pytest.raises(StorageError, match="'a' was not stored: not authorized"):
        await write("refused")
    files.connection.set_authorizer(None)
    await write("stored")
    assert files.connection.execute("select key from kv").fetchall() == [("stored",)]
    writer.stop()
    files.close()
