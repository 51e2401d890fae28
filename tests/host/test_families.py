"""Families at the bus: what still arrives from the connections of a sub-agent that was deleted."""

import json
from collections.abc import AsyncIterator
from typing import Any

import pytest

from perdure import Agent, ConnectionRequest
from perdure.host.bus import LocalBus
from perdure.host.host import Host
from perdure.host.placement import AlwaysMine
from perdure.protocol.names import Address
from perdure.storage.contract import LoadValue
from perdure.storage.families import LoadChildren
from perdure.storage.sqlite import SqliteStore

pytestmark = pytest.mark.anyio

PARENT = Address("parent", "p")
CHILD = PARENT.child("child", "c")
REQUEST = ConnectionRequest(path="/", query={}, headers={})
SET_STATE = json.dumps({"type": "cf_agent_state", "state": {"late": True}})


class Parent(Agent):
    def on_message(self, connection: Any, text: Any) -> Any:
        return self.delete_sub_agent(Child, "c")

    def on_state_changed(self, state: Any, source: Any) -> Any:
        return self.sub_agent(Child, "c")


class Child(Agent):
    pass


class Line:
    """A connection that notes what it is told."""

    def __init__(self) -> None:
        self.frames: list[str] = []
        self.closed: tuple[int, str] | None = None

    def send(self, frame: str) -> None:
        self.frames.append(frame)

    def close(self, code: int, reason: str) -> None:
        self.closed = (code, reason)


@pytest.fixture
async def store() -> AsyncIterator[SqliteStore]:
    store = await SqliteStore.temporary()
    yield store
    await store.close()


@pytest.fixture
async def bus(store: SqliteStore) -> AsyncIterator[LocalBus]:
    bus = LocalBus()
    host = Host({"parent": Parent, "child": Child}, store, bus, AlwaysMine(store.epoch))
    yield bus
    await host.close()


async def exists(store: SqliteStore) -> bool:
    await store.write(CHILD.key, store.epoch, [])
    return await store.read(LoadValue(CHILD.key, "agent", "created")) is not None


async def test_late_frames_of_a_deleted_childs_connections_are_swallowed_and_do_not_make_it_anew(
    bus: LocalBus, store: SqliteStore
) -> None:
    line = Line()
    above = bus.attach(PARENT, Line(), REQUEST)
    peer = bus.attach(CHILD, line, REQUEST)
    while not await exists(store):
        pass
    bus.post(above, "delete it")
    while line.closed is None:
        bus.post(peer, SET_STATE)
        await store.read(LoadChildren(PARENT.key, "agent", "created"))
    bus.post(peer, SET_STATE)
    while await exists(store):
        bus.post(peer, SET_STATE)
    said = len(line.frames)
    for _ in range(5):
        bus.post(peer, SET_STATE)
        assert not await exists(store)
    bus.detach(peer)
    assert not await exists(store)
    assert await store.read(LoadChildren(PARENT.key, "agent", "created")) == []
    assert line.closed == (1001, "Sub-agent deleted")
    assert len(line.frames) == said

    bus.post(above, json.dumps({"type": "cf_agent_state", "state": 1}))  # the parent makes it anew
    while not await exists(store):
        pass
    assert await store.read(LoadValue(CHILD.key, "agent", "state")) is None
