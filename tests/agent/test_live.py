"""A live agent, as its host drives it."""

import pytest

from perdure import Think
from perdure.agent.connection import ConnectionRequest
from perdure.agent.live import LiveAgent
from perdure.protocol.names import Address
from perdure.storage.sqlite import SqliteStore
from tests.agent.services import RecordingServices

REQUEST = ConnectionRequest("/agents/my-agent/room", {}, {})

pytestmark = pytest.mark.anyio


async def test_a_connection_is_told_the_conversation_and_then_who_answers() -> None:
    store = await SqliteStore.temporary()
    services = RecordingServices(store)
    agent = await LiveAgent.wake(Think, Address("my-agent", "alice%20b"), store, services)
    agent.connected(1, REQUEST)
    assert services.frames(1) == [
        {"type": "cf_agent_chat_messages", "connect": True, "messages": []},
        {"type": "cf_agent_identity", "name": "alice%20b", "agent": "my-agent"},
        {"type": "cf_agent_mcp_servers", "mcp": {"servers": {}, "tools": [], "prompts": [], "resources": []}},
    ]
    agent.connected(2, REQUEST)
    agent.received(1, '{"type":"cf_agent_chat_clear"}')
    assert [frame["type"] for frame in services.frames(2)][-1] == "cf_agent_chat_clear"
    agent.disconnected(2)
    agent.received(1, '{"type":"cf_agent_chat_clear"}')
    assert len(services.frames(2)) == 4
    await store.close()


async def test_the_object_of_the_users_class_knows_its_name() -> None:
    seen: list[Think] = []

    class Assistant(Think):
        def __init__(self) -> None:
            seen.append(self)

    store = await SqliteStore.temporary()
    await LiveAgent.wake(Assistant, Address("assistant", "room"), store, RecordingServices(store))
    (agent,) = seen
    assert (agent.name, agent.messages) == ("room", [])
    await store.close()
