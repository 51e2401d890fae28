"""A host without a server: agents on a clock that the test moves, and lines to them that need no socket."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import json
from collections.abc import AsyncGenerator, Callable
from pathlib import Path
from typing import Any

from perdure import Agent, ConnectionRequest
from perdure.host.bus import LocalBus
from perdure.host.host import Host
from perdure.host.placement import AlwaysMine
from perdure.protocol.names import Address, kebab
from perdure.storage.contract import Query, Store
from perdure.storage.sqlite import SqliteStore
from perdure.testing import FakeClock
from perdure.testing.stores import TryingStore

__all__ = ["Hosting", "Line", "hosting"]

PATIENCE = 20
"""Seconds after which something that a test waits for does not come."""

_ids = itertools.count(1)


class Line:
    """One connection. Everything that it is sent is kept in ``frames``."""

    def __init__(self, bus: LocalBus, address: Address, query: dict[str, str]) -> None:
        self.frames: list[dict[str, Any]] = []
        self.closed: tuple[int, str] | None = None
        self._changed = asyncio.Event()
        self._bus = bus
        self.peer = bus.attach(address, self, ConnectionRequest(f"/agents/{address.key}", query, {"host": "x"}))

    def send(self, frame: str) -> None:
        self.frames.append(json.loads(frame))
        self._changed.set()

    def close(self, code: int, reason: str) -> None:
        self.closed = (code, reason)
        self._changed.set()

    def post(self, frame: dict[str, Any] | str) -> None:
        """Send a frame to the agent."""
        self._bus.post(self.peer, frame if isinstance(frame, str) else json.dumps(frame))

    def leave(self) -> None:
        """End the connection."""
        self._bus.detach(self.peer)

    async def call(self, method: str, *args: Any) -> Any:
        """Call a method of the agent; gives its result."""
        reply = await self.reply(method, *args)
        assert reply["success"], reply
        return reply.get("result")

    async def reply(self, method: str, *args: Any) -> dict[str, Any]:
        """Call a method of the agent; gives the reply."""
        id = f"call-{next(_ids)}"
        self.post({"type": "rpc", "id": id, "method": method, "args": list(args)})
        return await self.seen(lambda frame: frame.get("id") == id)

    async def seen(self, wanted: Callable[[dict[str, Any]], bool], count: int = 1) -> dict[str, Any]:
        """The frame of all so far, or to come, that is wanted (with ``count``: the one that is the so-manieth)."""
        async with asyncio.timeout(PATIENCE):
            while True:
                found = [frame for frame in self.frames if wanted(frame)]
                if len(found) >= count:
                    return found[count - 1]
                assert self.closed is None, f"the connection was closed: {self.closed}"
                self._changed.clear()
                await self._changed.wait()

    async def ended(self) -> tuple[int, str]:
        """Close code and reason, once it was closed."""
        async with asyncio.timeout(PATIENCE):
            while self.closed is None:
                self._changed.clear()
                await self._changed.wait()
        return self.closed


class Hosting:
    """A host that runs."""

    def __init__(self, host: Host, bus: LocalBus, store: TryingStore, clock: FakeClock, sleepers: int) -> None:
        self.bus = bus
        self.store = store
        self.clock = clock
        self._host = host
        self._sleepers = sleepers

    def line(self, name: str = "room", agent: str = "worker", **query: str) -> Line:
        """Open a connection to an agent."""
        return Line(self.bus, Address(agent, name), query)

    async def advance(self, seconds: float) -> None:
        """Move the clock; returns when the host has done what there was to do."""
        await self.store.settled()
        await self.clock.sleeping(self._sleepers)
        self.clock.advance(seconds)
        await self.clock.sleeping(self._sleepers)

    @property
    def in_memory(self) -> int:
        """How many agents are in memory."""
        return self._host.in_memory

    async def rest(self, seconds: float = 90) -> None:
        """Let so much time pass, with enough looks in it that what is idle has left."""
        for _ in range(6):
            await self.advance(seconds / 6)

    async def read(self, query: Query[Any]) -> Any:
        """Look into the store."""
        return await self.store.read(query)

    async def stop(self) -> None:
        """End the host as it ends when its process is told to."""
        await self._host.close()
        await self.store.close()


@contextlib.asynccontextmanager
async def hosting(
    *agents: type[Agent],
    folder: Path | None = None,
    clock: FakeClock | None = None,
    idle_seconds: float | None = 60.0,
) -> AsyncGenerator[Hosting]:
    """Run a host for these agent classes, on a store in ``folder`` or on one that is gone afterwards."""
    inner: Store = await (SqliteStore.temporary() if folder is None else SqliteStore.open(folder))
    store, bus, clock = TryingStore(inner), LocalBus(), clock or FakeClock()
    kinds = {kebab(agent.__name__): agent for agent in agents}
    host = Host(kinds, store, bus, AlwaysMine(store.epoch), clock=clock, idle_seconds=idle_seconds)
    host.start()
    running = Hosting(host, bus, store, clock, 1 if idle_seconds is None else 2)
    try:
        yield running
    finally:
        await running.stop()
