"""A store on real files, and the means to make its writer wait."""

import sqlite3
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

import pytest

from perdure.storage.sqlite import SqliteStore


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "data"


@pytest.fixture
async def store(folder: Path) -> AsyncIterator[SqliteStore]:
    store = await SqliteStore.open(folder)
    yield store
    await store.close()


@pytest.fixture
def held_up(folder: Path) -> Callable[[], AbstractContextManager[None]]:
    """``with held_up():`` the writer cannot begin a transaction; what is handed over meanwhile piles up."""

    @contextmanager
    def hold() -> Iterator[None]:
        other = sqlite3.connect(folder / "perdure.db", isolation_level=None)
        other.execute("begin immediate")
        try:
            yield
        finally:
            other.rollback()
            other.close()

    return hold
