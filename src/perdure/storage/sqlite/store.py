"""The embedded store as its users see it: :class:`SqliteStore`, one per process and data folder."""

from __future__ import annotations

import asyncio
import logging
import sqlite3
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TypeVar

from perdure.errors import StorageError
from perdure.storage.contract import Commit, Operation, Query, Store
from perdure.storage.sqlite.dispatch import UNBOUNDED
from perdure.storage.sqlite.failures import explain
from perdure.storage.sqlite.files import OpenFiles
from perdure.storage.sqlite.reader import Reader
from perdure.storage.sqlite.writer import Statistics, Write, Writer

__all__ = ["SqliteStore"]

R = TypeVar("R")

_log = logging.getLogger("perdure.storage")


class SqliteStore(Store):
    """All agents of a process in one SQLite file.

    Belongs to the event loop in which it was opened: use it from there only. Made by :meth:`open` or :meth:`temporary`.
    """

    def __init__(self, files: OpenFiles, loop: asyncio.AbstractEventLoop) -> None:
        self._files = files
        self._loop = loop
        self._reader = Reader(files.path)
        self._writer = Writer(files.connection, files.path, files.epoch, loop)
        self._scratch: TemporaryDirectory[str] | None = None
        self._closing: asyncio.Future[None] | None = None

    @classmethod
    async def open(cls, folder: Path | str) -> SqliteStore:
        """Open the store in ``folder``, which is created if needed.

        The folder then belongs to this process until :meth:`close`, or until the process ends. A database of an older
        schema is brought to the newest one.

        Raises:
            StorageInUse: another store has the folder open.
            NewerSchema: the data was written by a newer perdure.
            StorageError: the folder cannot be used, or the database is damaged.
        """
        return await cls._open(Path(folder), durable=True)

    @classmethod
    async def temporary(cls) -> SqliteStore:
        """Open an empty store that is gone after :meth:`close`: for tests and for trying things out.

        The same code on a file in the system's temporary folder; only, a commit does not wait for the disk.

        Raises:
            StorageError: the temporary folder cannot be used.
        """
        scratch = TemporaryDirectory(prefix="perdure-")
        try:
            store = await cls._open(Path(scratch.name), durable=False)
        except BaseException:
            scratch.cleanup()
            raise
        store._scratch = scratch
        return store

    @classmethod
    async def _open(cls, folder: Path, *, durable: bool) -> SqliteStore:
        loop = asyncio.get_running_loop()
        opening = loop.run_in_executor(None, lambda: OpenFiles(folder, durable=durable))
        try:
            files = await asyncio.shield(opening)
        except asyncio.CancelledError:
            opening.add_done_callback(_close_unclaimed)
            raise
        try:
            return cls(files, loop)
        except sqlite3.Error as error:
            files.close()
            raise explain(error, files.path, "The store cannot be opened") from error

    @property
    def epoch(self) -> int:
        """How often the store was opened, this time included."""
        return self._files.epoch

    @property
    def path(self) -> Path:
        """The database file."""
        return self._files.path

    @property
    def statistics(self) -> Statistics:
        """Commits and writes since the store was opened."""
        return self._writer.statistics

    def write(self, agent: str, epoch: int, operations: Sequence[Operation]) -> Commit:
        """Hand over a write. Returns at once; never blocks the event loop.

        The commit fails with a :class:`~perdure.errors.StorageError` when nothing of the write was stored, with
        :class:`~perdure.errors.Fenced` when ``epoch`` is not the store's. Cancelling it does not take the write back.

        Args:
            agent: The agent's key.
            epoch: The epoch under which the caller owns the agent: :attr:`epoch`.
            operations: What changes, applied in order, all or nothing. None at all is a barrier: its commit is done
                when every earlier one is.
        """
        commit = self._loop.create_future()
        if self._closing is None:
            self._writer.submit(Write(agent, epoch, tuple(operations), commit))
        else:
            failure = StorageError(f"A write for {agent!r} was not stored: the store ({self.path}) is closed")
            _log.error("%s", failure, extra={"agent": agent})
            commit.set_exception(failure)
        return commit

    async def read(self, query: Query[R]) -> R:
        """Answer a query from what is durable, as of one moment.

        Raises:
            StorageError: the store cannot be read, or is closed.
        """
        if self._closing is not None:
            raise StorageError(f"{type(query).__name__} could not be answered: the store ({self.path}) is closed")
        if type(query) in UNBOUNDED:
            return await self._loop.run_in_executor(self._reader.pool, self._reader.answer_in_thread, query)
        return self._reader.answer(query)

    async def close(self) -> None:
        """Finish the writes and reads that were handed over, then let go of the files. May be called again."""
        if self._closing is None:
            self._closing = self._loop.run_in_executor(None, self._let_go)
        await asyncio.shield(self._closing)

    def _let_go(self) -> None:
        self._writer.stop()
        self._reader.close()  # before the writer's connection: the last to close folds the log into the database
        self._files.close()
        if self._scratch is not None:
            self._scratch.cleanup()


def _close_unclaimed(opening: asyncio.Future[OpenFiles]) -> None:
    """Let go of files that were opened for a caller who was cancelled meanwhile."""
    if not opening.cancelled() and opening.exception() is None:
        opening.result().close()
