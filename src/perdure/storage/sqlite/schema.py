"""Brings a file to the newest schema: numbered ``.sql`` files, applied in order, each in a transaction of its own.

The file's ``user_version`` is the number of the last one applied. Imports ``errors`` only.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from importlib.resources import files
from pathlib import Path

from perdure.errors import NewerSchema, StorageError

__all__ = ["OLDEST_SQLITE", "migrate", "migrations", "require_sqlite"]

OLDEST_SQLITE = (3, 37, 0)
"""The first SQLite that knows ``STRICT`` tables."""


def require_sqlite(version: tuple[int, ...]) -> None:
    """Refuse a SQLite library that is too old.

    Raises:
        StorageError: ``version`` is older than :data:`OLDEST_SQLITE`.
    """
    if version < OLDEST_SQLITE:
        found, wanted = (".".join(map(str, numbers)) for numbers in (version, OLDEST_SQLITE))
        raise StorageError(f"This Python has SQLite {found}; {wanted} or newer is needed. Use a newer Python build.")


def migrations() -> list[str]:
    """The SQL of every migration, the oldest first; the first has number 1."""
    folder = files("perdure.storage.sqlite").joinpath("migrations")
    scripts = sorted((entry for entry in folder.iterdir() if entry.name.endswith(".sql")), key=lambda entry: entry.name)
    assert [int(entry.name[:4]) for entry in scripts] == list(range(1, len(scripts) + 1)), "migrations are numbered 1…n"
    return [entry.read_text(encoding="utf-8") for entry in scripts]


def migrate(connection: sqlite3.Connection, path: Path, scripts: Sequence[str]) -> None:
    """Apply the ``scripts`` that the file has not seen.

    Raises:
        NewerSchema: the file has seen more than there are. Nothing of it was changed.
        sqlite3.Error: the file cannot be read or written. It stays at the last migration that went through.
    """
    (found,) = connection.execute("pragma user_version").fetchone()
    if found > len(scripts):
        raise NewerSchema(str(path), found, len(scripts))
    for number, script in enumerate(scripts[found:], start=found + 1):
        try:
            # The script carries its own transaction: executescript() ends one that is open when it starts.
            connection.executescript(f"begin immediate;\n{script}\npragma user_version = {number};\ncommit;")
        except sqlite3.Error:
            if connection.in_transaction:
                connection.execute("rollback")
            raise
