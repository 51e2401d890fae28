"""A store for each test."""

from collections.abc import AsyncIterator

import pytest

from perdure.storage.sqlite import SqliteStore
from tests.session.chats import Chat


@pytest.fixture
async def store() -> AsyncIterator[SqliteStore]:
    store = await SqliteStore.temporary()
    yield store
    await store.close()


@pytest.fixture
async def chat(store: SqliteStore) -> Chat:
    return await Chat.open(store)
