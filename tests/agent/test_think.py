"""The class that users subclass."""

from collections.abc import AsyncIterator

import pytest

from perdure import ConfigurationError, Think
from perdure.agent.live import LiveAgent
from perdure.protocol.names import Address
from perdure.storage.sqlite import SqliteStore
from tests.agent.services import RecordingServices

pytestmark = pytest.mark.anyio


@pytest.fixture
async def store() -> AsyncIterator[SqliteStore]:
    store = await SqliteStore.temporary()
    yield store
    await store.close()


async def made(kind: type[Think], name: str, store: SqliteStore) -> Think:
    """An agent as a host makes it."""
    address = Address("assistant", name)
    live = await LiveAgent.wake(kind, address, store, RecordingServices(store, address.key))
    assert isinstance(live.agent, Think)
    return live.agent


async def test_an_agent_knows_its_name_and_its_messages(store: SqliteStore) -> None:
    agent = await made(Think, "alice%20b", store)
    assert (agent.name, agent.messages, agent.active_turn) == ("alice%20b", [], None)
    await agent.add_messages({"id": "u1", "role": "user", "parts": []})
    assert agent.messages == [{"id": "u1", "role": "user", "parts": []}]


async def test_an_agent_that_was_made_by_calling_its_class_belongs_to_no_conversation() -> None:
    class Assistant(Think):
        pass

    for name in ("name", "messages", "state", "connections"):
        with pytest.raises(ConfigurationError, match="This Assistant is not live"):
            getattr(Assistant(), name)


async def test_agents_share_nothing(store: SqliteStore) -> None:
    agents = [await made(Think, name, store) for name in ("one", "other")]
    for agent in agents:
        await agent.add_messages({"id": agent.name, "role": "user", "parts": []})
    assert [(agent.name, [message["id"] for message in agent.messages]) for agent in agents] == [
        ("one", ["one"]),
        ("other", ["other"]),
    ]
