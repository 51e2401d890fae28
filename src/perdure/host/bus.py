"""The bus between connections and agents: who carries events to an agent, and frames back to its connections.

A connection may be held by another process than its agent; nothing on either side knows. Here: the contract, and the
bus of a single process, which hands everything over at once.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Protocol

from starlette import types as asgi

from perdure.agent.connection import ConnectionRequest
from perdure.agent.refusal import Refuse
from perdure.protocol.names import Address

__all__ = ["AgentSide", "Bus", "LocalBus", "Sink"]


class Sink(Protocol):
    """A connection, as the bus sees it."""

    def send(self, frame: str) -> None:
        """Queue a frame. Never blocks."""
        ...

    def close(self, code: int, reason: str) -> None:
        """Close the connection, after what is queued."""
        ...


class AgentSide(Protocol):
    """Whoever runs the agents."""

    def connect(self, address: Address, peer: int, request: ConnectionRequest) -> None: ...

    def receive(self, address: Address, peer: int, message: str | bytes) -> None: ...

    def disconnect(self, address: Address, peer: int) -> None: ...

    async def call(self, address: Address, method: str) -> str: ...

    async def answer(self, address: Address, scope: asgi.Scope, receive: asgi.Receive, send: asgi.Send) -> None: ...

    async def admit(self, address: Address, request: ConnectionRequest) -> Refuse | None: ...


class Bus(Protocol):
    """Carries events in the order of each connection, and frames in the order of each agent."""

    def serve(self, agents: AgentSide) -> None:
        """Deliver events to ``agents``."""
        ...

    def attach(self, address: Address, sink: Sink, request: ConnectionRequest) -> int:
        """A connection comes. Gives its id."""
        ...

    def post(self, peer: int, message: str | bytes) -> None:
        """A connection sends a message."""
        ...

    def detach(self, peer: int) -> None:
        """A connection goes. It is sent nothing more."""
        ...

    async def call(self, address: Address, method: str) -> str:
        """Ask an agent; gives its answer as JSON text."""
        ...

    async def answer(self, address: Address, scope: asgi.Scope, receive: asgi.Receive, send: asgi.Send) -> None:
        """Let an agent answer an HTTP request. The scope holds plain values only; the body comes, and the answer goes,
        as a stream."""
        ...

    async def admit(self, address: Address, request: ConnectionRequest) -> Refuse | None:
        """Ask the agents above a sub-agent whether a request from outside may reach it; ``None`` when it may."""
        ...

    def emit(self, peers: Sequence[int], frame: str) -> None:
        """Send a frame to connections; those that are gone are passed over."""
        ...

    def hang_up(self, peers: Sequence[int], code: int, reason: str) -> None:
        """Close connections."""
        ...


class LocalBus:
    """The bus of a single process."""

    def __init__(self) -> None:
        self._agents: AgentSide | None = None
        self._sinks: dict[int, Sink] = {}
        self._addresses: dict[int, Address] = {}
        self._ids = itertools.count(1)

    def serve(self, agents: AgentSide) -> None:
        self._agents = agents

    def attach(self, address: Address, sink: Sink, request: ConnectionRequest) -> int:
        peer = next(self._ids)
        self._sinks[peer] = sink
        self._addresses[peer] = address
        self._side.connect(address, peer, request)
        return peer

    def post(self, peer: int, message: str | bytes) -> None:
        self._side.receive(self._addresses[peer], peer, message)

    def detach(self, peer: int) -> None:
        del self._sinks[peer]
        self._side.disconnect(self._addresses.pop(peer), peer)

    async def call(self, address: Address, method: str) -> str:
        return await self._side.call(address, method)

    async def answer(self, address: Address, scope: asgi.Scope, receive: asgi.Receive, send: asgi.Send) -> None:
        await self._side.answer(address, scope, receive, send)

    async def admit(self, address: Address, request: ConnectionRequest) -> Refuse | None:
        return await self._side.admit(address, request)

    def emit(self, peers: Sequence[int], frame: str) -> None:
        sinks = self._sinks
        for peer in peers:
            sink = sinks.get(peer)
            if sink is not None:
                sink.send(frame)

    def hang_up(self, peers: Sequence[int], code: int, reason: str) -> None:
        for peer in peers:
            if sink := self._sinks.get(peer):
                sink.close(code, reason)

    @property
    def _side(self) -> AgentSide:
        assert self._agents is not None, "nobody serves this bus"
        return self._agents
