"""The writer thread where a store cannot show it: its event loop is gone."""

import asyncio
import sqlite3
import threading
from pathlib import Path
from typing import Any

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
