"""The files of a store: the folder's lock, the database, and connections to it.

Imports ``errors`` only; what the tables hold is known elsewhere.
"""

from __future__ import annotations

import sqlite3
from contextlib import ExitStack
from pathlib import Path

from perdure.errors import StorageError, StorageInUse
from perdure.storage.sqlite import schema
from perdure.storage.sqlite.failures import explain, is_locked

__all__ = ["DATABASE", "LOCK", "OpenFiles", "connect_reader", "connect_writer"]

DATABASE = "perdure.db"
LOCK = "perdure.lock"

_WRITER_PATIENCE = 5.0
"""Seconds that a write waits for a lock that another program (a shell, a backup) holds on the database."""
_READER_PATIENCE = 0.5
"""The same for a read. Short, as point reads run in the event loop; in WAL mode a reader hardly ever waits."""


class OpenFiles:
    """A folder that this process holds, its database open for writing and at the newest schema."""

    def __init__(self, folder: Path, *, durable: bool = True) -> None:
        """Create the folder if needed, lock it, open and migrate the database, count the opening. Blocks.

        Args:
            folder: The data folder.
            durable: Whether a commit waits for the disk. ``False`` is for data that need not outlive the process.

        Raises:
            StorageInUse: another store has the folder open.
            NewerSchema: the database was written by a newer perdure.
            StorageError: the folder or the database cannot be used.
        """
        schema.require_sqlite(sqlite3.sqlite_version_info)
        folder = folder.absolute()
        self.path = folder / DATABASE
        with ExitStack() as opened:
            opened.callback(_lock(folder).close)
            try:
                self.connection = connect_writer(self.path, durable=durable)
                opened.callback(self.connection.close)
                schema.migrate(self.connection, self.path, schema.migrations())
                (self.epoch,) = self.connection.execute("update store set epoch = epoch + 1 returning epoch").fetchone()
            except sqlite3.Error as error:
                raise explain(error, self.path, "The store cannot be opened") from error
            self._opened = opened.pop_all()

    def close(self) -> None:
        """Close the database, then give the folder free."""
        self._opened.close()


def _lock(folder: Path) -> sqlite3.Connection:
    """Hold the folder until the connection is closed or the process ends, however it ends.

    An SQLite file of its own is the lock: the same on every platform, and not handed on to child processes.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise StorageError(f"The data folder {folder} cannot be created: {error}") from error
    path = folder / LOCK
    try:
        lock = sqlite3.connect(path, timeout=0, isolation_level=None, check_same_thread=False)
    except sqlite3.Error as error:
        raise explain(error, path, "The data folder cannot be locked") from error
    try:
        lock.execute("begin exclusive")
    except sqlite3.Error as error:
        lock.close()
        if is_locked(error):
            raise StorageInUse(str(folder)) from error
        raise explain(error, path, "The data folder cannot be locked") from error
    return lock


def connect_writer(path: Path, *, durable: bool = True) -> sqlite3.Connection:
    """The one connection that writes. The caller begins and ends its transactions.

    Raises:
        sqlite3.Error: the file cannot be opened.
        StorageError: the file system cannot keep a write-ahead log.
    """
    connection = sqlite3.connect(path, timeout=_WRITER_PATIENCE, isolation_level=None, check_same_thread=False)
    try:
        (mode,) = connection.execute("pragma journal_mode = wal").fetchone()
        if mode != "wal":
            raise StorageError(f"{path} is on a file system without shared memory. Use a folder on a local disk.")
        connection.execute(f"pragma synchronous = {'full' if durable else 'off'}")
    except (sqlite3.Error, StorageError):
        connection.close()
        raise
    return connection


def connect_reader(path: Path) -> sqlite3.Connection:
    """A connection that only reads; the writer has opened the file before.

    Raises:
        sqlite3.Error: the file cannot be opened.
    """
    return sqlite3.connect(
        f"{path.as_uri()}?mode=ro", uri=True, timeout=_READER_PATIENCE, isolation_level=None, check_same_thread=False
    )
