"""The bus that serialises hands over equal things, never the same ones, in order."""

import asyncio
from typing import Any

import pytest

from perdure import ConnectionRequest
from perdure.protocol.names import Address
from perdure.testing.buses import SerialisingBus

pytestmark = pytest.mark.anyio

ADDRESS = Address("room", "a%20b")
REQUEST = ConnectionRequest("/agents/room/a%20b", {"_pk": "é"}, {"host": "x"})


class Side:
    """Writes down what the bus brings; both an agent side and a connection."""

    def __init__(self) -> None:
        self.seen: list[tuple[Any, ...]] = []

    def connect(self, address: Address, peer: int, request: ConnectionRequest) -> None:
        assert address is not ADDRESS
        assert request is not REQUEST
        self.seen.append(("connect", address, peer, request))

    def receive(self, address: Address, peer: int, message: str | bytes) -> None:
        self.seen.append(("receive", address, peer, message))

    def disconnect(self, address: Address, peer: int) -> None:
        self.seen.append(("disconnect", address, peer))

    async def call(self, address: Address, method: str) -> str:
        assert address is not ADDRESS
        return f"{method} of {address.key}"

    def send(self, frame: str) -> None:
        self.seen.append(("send", frame))

    def close(self, code: int, reason: str) -> None:
        self.seen.append(("close", code, reason))


async def crossed() -> None:
    for _ in range(10):
        await asyncio.sleep(0)


async def test_events_cross_in_order_and_a_moment_later() -> None:
    bus, agents, sink = SerialisingBus(), Side(), Side()
    bus.serve(agents)
    peer = bus.attach(ADDRESS, sink, REQUEST)
    bus.post(peer, "texte ☃")
    bus.post(peer, b"\x00\xff")
    bus.detach(peer)
    assert agents.seen == []
    await crossed()
    assert agents.seen == [
        ("connect", ADDRESS, peer, REQUEST),
        ("receive", ADDRESS, peer, "texte ☃"),
        ("receive", ADDRESS, peer, b"\x00\xff"),
        ("disconnect", ADDRESS, peer),
    ]


async def test_frames_cross_in_order_and_pass_over_those_who_are_gone() -> None:
    bus, first, second = SerialisingBus(), Side(), Side()
    bus.serve(Side())
    peers = [bus.attach(ADDRESS, sink, REQUEST) for sink in (first, second)]
    bus.emit([*peers, 99], "one ☃")
    bus.hang_up(peers, 1011, "why")
    await crossed()
    bus.detach(peers[1])
    bus.emit(peers, "two")
    await crossed()
    assert first.seen == [("send", "one ☃"), ("close", 1011, "why"), ("send", "two")]
    assert second.seen == first.seen[:2]


async def test_calls_are_answered() -> None:
    bus = SerialisingBus()
    bus.serve(Side())
    assert await bus.call(ADDRESS, "get-messages") == "get-messages of room/a%20b"
