"""Answers queries over read-only connections: one for the event loop, a few more for threads.

Readers see what is committed, and a write never holds them up. Knows no table; imports the contract and ``errors``.
"""

from __future__ import annotations

import sqlite3
from concurrent.futures import Executor, ThreadPoolExecutor
from pathlib import Path
from typing import Any, TypeVar

from perdure.errors import StorageError
from perdure.storage.contract import Query
from perdure.storage.sqlite.dispatch import ANSWERS
from perdure.storage.sqlite.failures import explain
from perdure.storage.sqlite.files import connect_reader

__all__ = ["Reader"]

R = TypeVar("R")

_THREADS = 4

_UNREADABLE = (sqlite3.Error, ValueError)
"""What a read can raise; ValueError when a key is no valid Unicode."""


class Reader:
    """Reads one database."""

    def __init__(self, path: Path) -> None:
        """Open a database that the writer has opened before.

        Raises:
            sqlite3.Error: the file cannot be opened.
        """
        self._path = path
        self._inline = connect_reader(path)
        self._idle: list[sqlite3.Connection] = []
        """Connections that no thread uses now; there are never more than threads."""
        self._pool = ThreadPoolExecutor(_THREADS, thread_name_prefix="perdure-reader")

    @property
    def pool(self) -> Executor:
        """Where :meth:`answer_in_thread` is to run."""
        return self._pool

    def answer(self, query: Query[R]) -> R:
        """Answer at once, in the event loop's thread.

        Raises:
            StorageError: the database cannot be read, or there is no such query.
        """
        try:
            return _answer(self._inline, query)
        except _UNREADABLE as error:
            raise self._explain(error, query) from error

    def answer_in_thread(self, query: Query[R]) -> R:
        """Answer in a thread of the pool. Raises as :meth:`answer` does."""
        try:
            connection = self._borrow()
            try:
                return _answer(connection, query)
            finally:
                self._idle.append(connection)
        except _UNREADABLE as error:
            raise self._explain(error, query) from error

    def close(self) -> None:
        """Finish what was asked, then close the connections. Blocks."""
        self._pool.shutdown()
        for connection in (self._inline, *self._idle):
            connection.close()

    def _borrow(self) -> sqlite3.Connection:
        try:
            return self._idle.pop()
        except IndexError:
            return connect_reader(self._path)

    def _explain(self, error: Exception, query: Query[Any]) -> StorageError:
        return explain(error, self._path, f"{type(query).__name__} could not be answered")


def _answer(connection: sqlite3.Connection, query: Query[Any]) -> Any:
    answer = ANSWERS.get(type(query))
    if answer is None:
        raise StorageError(f"This store knows no query {type(query).__name__}")
    cursor = connection.cursor()
    cursor.execute("begin")
    try:
        return answer(cursor, query)
    finally:
        cursor.close()  # also ends a select that was not read to its end: it would hold on to the log
        connection.rollback()
