"""A bus that hands nothing over by reference, as one between processes would: for perdure's own tests.

All that crosses it becomes bytes and is made anew on the other side, a moment later. Imports ``host``.
"""

from __future__ import annotations

import asyncio
import itertools
from collections import deque
from collections.abc import Callable, Sequence
from typing import Any

import msgspec
from starlette import types as asgi

from perdure.agent.connection import ConnectionRequest
from perdure.agent.refusal import Refuse
from perdure.host.bus import AgentSide, Sink
from perdure.protocol.names import Address

__all__ = ["SerialisingBus"]


class _Connected(msgspec.Struct, tag=True):
    address: Address
    peer: int
    request: ConnectionRequest


class _Received(msgspec.Struct, tag=True):
    address: Address
    peer: int
    message: bytes
    text: bool


class _Disconnected(msgspec.Struct, tag=True):
    address: Address
    peer: int


class _Called(msgspec.Struct, tag=True):
    address: Address
    method: str


class _Asked(msgspec.Struct, tag=True):
    address: Address
    request: ConnectionRequest


class _Emitted(msgspec.Struct, tag=True):
    peers: list[int]
    frame: str


class _HungUp(msgspec.Struct, tag=True):
    peers: list[int]
    code: int
    reason: str


_Crossing = _Connected | _Received | _Disconnected | _Called | _Asked | _Emitted | _HungUp
_decoder = msgspec.msgpack.Decoder(_Crossing)
_encoder = msgspec.msgpack.Encoder()


class SerialisingBus:
    """A bus whose two sides share nothing but bytes."""

    def __init__(self) -> None:
        self._agents: AgentSide | None = None
        self._sinks: dict[int, Sink] = {}
        self._addresses: dict[int, bytes] = {}
        self._ids = itertools.count(1)
        self._under_way: deque[bytes] = deque()
        self.crossed = 0
        """Bytes that have crossed."""

    def serve(self, agents: AgentSide) -> None:
        self._agents = agents

    def attach(self, address: Address, sink: Sink, request: ConnectionRequest) -> int:
        peer = next(self._ids)
        self._sinks[peer] = sink
        self._addresses[peer] = _encoder.encode(address)
        self._cross(_Connected(address, peer, request))
        return peer

    def post(self, peer: int, message: str | bytes) -> None:
        text = isinstance(message, str)
        self._cross(_Received(self._address(peer), peer, message.encode() if text else message, text))

    def detach(self, peer: int) -> None:
        del self._sinks[peer]
        self._cross(_Disconnected(self._address(peer), peer))
        del self._addresses[peer]

    async def call(self, address: Address, method: str) -> str:
        called = _decoder.decode(_encoder.encode(_Called(address, method)))
        assert isinstance(called, _Called)
        answer = await self._side.call(called.address, called.method)
        return answer.encode().decode()

    async def admit(self, address: Address, request: ConnectionRequest) -> Refuse | None:
        asked = _decoder.decode(_encoder.encode(_Asked(address, request)))
        assert isinstance(asked, _Asked)
        answer = await self._side.admit(asked.address, asked.request)
        return msgspec.msgpack.decode(_encoder.encode(answer), type=Refuse | None)

    async def answer(self, address: Address, scope: asgi.Scope, receive: asgi.Receive, send: asgi.Send) -> None:
        async def receive_over() -> asgi.Message:
            return _copy(await receive())

        async def send_over(message: asgi.Message) -> None:
            await send(_copy(message))

        await self._side.answer(_decoded(_encoder.encode(address)), _copy(scope), receive_over, send_over)

    def emit(self, peers: Sequence[int], frame: str) -> None:
        self._cross(_Emitted(list(peers), frame))

    def hang_up(self, peers: Sequence[int], code: int, reason: str) -> None:
        self._cross(_HungUp(list(peers), code, reason))

    @property
    def _side(self) -> AgentSide:
        assert self._agents is not None, "nobody serves this bus"
        return self._agents

    def _address(self, peer: int) -> Address:
        return _decoded(self._addresses[peer])

    def _cross(self, what: _Crossing) -> None:
        # One queue for both directions keeps the order of each.
        crossing = _encoder.encode(what)
        self.crossed += len(crossing)
        self._under_way.append(crossing)
        asyncio.get_running_loop().call_soon(self._deliver)

    def _deliver(self) -> None:
        what: Any = _decoder.decode(self._under_way.popleft())
        match what:
            case _Connected(address, peer, request):
                self._side.connect(address, peer, request)
            case _Received(address, peer, message, text):
                self._side.receive(address, peer, message.decode() if text else message)
            case _Disconnected(address, peer):
                self._side.disconnect(address, peer)
            case _Emitted(peers, frame):
                self._to_sinks(peers, lambda sink: sink.send(frame))
            case _HungUp(peers, code, reason):
                self._to_sinks(peers, lambda sink: sink.close(code, reason))
            case _:
                raise AssertionError(f"{what!r} has no business here")

    def _to_sinks(self, peers: Sequence[int], do: Callable[[Sink], None]) -> None:
        for peer in peers:
            if sink := self._sinks.get(peer):
                do(sink)


def _decoded(address: bytes) -> Address:
    return msgspec.msgpack.decode(address, type=Address)


def _copy(message: Any) -> Any:
    """What an ASGI message is on the other side: lists where there were tuples, and nothing that is no plain value."""
    return msgspec.msgpack.decode(_encoder.encode(message))
