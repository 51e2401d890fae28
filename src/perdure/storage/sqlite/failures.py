"""Turns what SQLite reports into a :class:`StorageError` that names the file, the cause and the remedy.

Imports ``errors`` only.
"""

from __future__ import annotations

import sqlite3
from pathlib import Path

from perdure.errors import StorageError

__all__ = ["explain", "is_locked"]

_PRIMARY = 0xFF
"""Mask of the primary result code; the higher bits of a code only refine it."""

_PERMISSIONS = "Check that the folder exists and that this user may write to it."
_DAMAGED = (
    "The file is damaged. Move it away together with its -wal and -shm files, then put a backup in its place "
    "or start with another folder."
)

_REMEDIES = {
    sqlite3.SQLITE_FULL: "The disk is full. Free some space; no restart is needed.",
    sqlite3.SQLITE_IOERR: "Check the disk: its health, its free space and the limits set for this process.",
    sqlite3.SQLITE_CORRUPT: _DAMAGED,
    sqlite3.SQLITE_NOTADB: _DAMAGED,
    sqlite3.SQLITE_BUSY: "Another program holds the file locked. Close it there.",
    sqlite3.SQLITE_LOCKED: "Another program holds the file locked. Close it there.",
    sqlite3.SQLITE_READONLY: _PERMISSIONS,
    sqlite3.SQLITE_PERM: _PERMISSIONS,
    sqlite3.SQLITE_CANTOPEN: _PERMISSIONS,
    sqlite3.SQLITE_CONSTRAINT: "It contradicts what is stored.",
    sqlite3.SQLITE_TOOBIG: "A value is larger than SQLite can hold.",
}


def explain(error: Exception, path: Path, what: str) -> StorageError:
    """The error to raise for ``error``, which becomes its cause.

    Args:
        error: What happened.
        path: The file it happened to.
        what: The consequence as a sentence without its full stop: ``The store cannot be opened``.
    """
    remedy = _REMEDIES.get(_code(error), "")
    failure = StorageError(f"{what}: {error} ({path}). {remedy}".rstrip())
    failure.__cause__ = error
    return failure


def is_locked(error: sqlite3.Error) -> bool:
    """Whether another connection holds the lock that was wanted."""
    return _code(error) == sqlite3.SQLITE_BUSY


def _code(error: Exception) -> int:
    # Errors of the Python layer (a value that cannot be bound) carry no code.
    return getattr(error, "sqlite_errorcode", sqlite3.SQLITE_OK) & _PRIMARY
