"""Numbered migrations."""

import sqlite3
from collections.abc import Iterator
from pathlib import Path

import pytest

from perdure.errors import NewerSchema, StorageError
from perdure.storage.sqlite import schema
from perdure.storage.sqlite.files import connect_writer

FIRST = "create table one (x integer); insert into one values (1);"
SECOND = "create table two (x integer); insert into two select x + 1 from one;"
BROKEN = "create table three (x integer); insert into nowhere values (1);"


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "file.db"


@pytest.fixture
def connection(path: Path) -> Iterator[sqlite3.Connection]:
    connection = connect_writer(path)
    yield connection
    connection.close()


def version(connection: sqlite3.Connection) -> int:
    return connection.execute("pragma user_version").fetchone()[0]


def tables(connection: sqlite3.Connection) -> set[str]:
    return {name for (name,) in connection.execute("select name from sqlite_schema where type = 'table'")}


def test_a_new_file_gets_every_migration_in_order(connection: sqlite3.Connection, path: Path) -> None:
    schema.migrate(connection, path, [FIRST, SECOND])
    assert version(connection) == 2
    assert connection.execute("select x from two").fetchall() == [(2,)]


def test_an_older_file_gets_only_what_it_has_not_seen(connection: sqlite3.Connection, path: Path) -> None:
    schema.migrate(connection, path, [FIRST])
    connection.execute("update one set x = 10")
    schema.migrate(connection, path, [FIRST, SECOND])
    schema.migrate(connection, path, [FIRST, SECOND])
    assert version(connection) == 2
    assert connection.execute("select x from two").fetchall() == [(11,)]


def test_a_migration_that_fails_leaves_nothing_and_those_before_it_stay(
    connection: sqlite3.Connection, path: Path
) -> None:
    with pytest.raises(sqlite3.OperationalError, match="nowhere"):
        schema.migrate(connection, path, [FIRST, BROKEN])
    assert version(connection) == 1
    assert tables(connection) == {"one"}
    schema.migrate(connection, path, [FIRST, SECOND])
    assert version(connection) == 2


def test_a_file_that_has_seen_more_is_refused(connection: sqlite3.Connection, path: Path) -> None:
    schema.migrate(connection, path, [FIRST, SECOND])
    with pytest.raises(NewerSchema, match="schema version 2; this perdure knows versions up to 1"):
        schema.migrate(connection, path, [FIRST])


def test_the_shipped_migrations_make_the_tables_of_the_store(connection: sqlite3.Connection, path: Path) -> None:
    schema.migrate(connection, path, schema.migrations())
    assert version(connection) == len(schema.migrations())
    assert tables(connection) >= {"store", "agent", "kv", "message", "turn", "chunk"}


def test_a_sqlite_library_that_is_too_old_is_refused() -> None:
    schema.require_sqlite((3, 37, 0))
    with pytest.raises(StorageError, match=r"SQLite 3\.36\.1; 3\.37\.0 or newer is needed"):
        schema.require_sqlite((3, 36, 1))


def test_a_file_system_without_write_ahead_log_is_refused() -> None:
    with pytest.raises(StorageError, match="Use a folder on a local disk"):
        connect_writer(Path(":memory:"))
