"""The host: which agents are in memory, and how events find them."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping

from starlette import types as asgi

from perdure.agent.base import Agent
from perdure.agent.connection import ConnectionRequest
from perdure.agent.live import LiveAgent
from perdure.agent.refusal import Refuse
from perdure.errors import BadRequest, StorageError
from perdure.host.bus import Bus
from perdure.host.families import Families
from perdure.host.placement import Placement
from perdure.host.resident import Resident
from perdure.host.tasks import Tasks
from perdure.observability import Events, Scope, within
from perdure.protocol.names import Address
from perdure.storage.contract import Store

__all__ = ["Host"]

logger = logging.getLogger(__name__)


class Host:
    """Runs agents: wakes them when something happens to them."""

    def __init__(
        self,
        kinds: Mapping[str, type[Agent]],
        store: Store,
        bus: Bus,
        placement: Placement,
        events: Events | None = None,
    ) -> None:
        """A host without agents yet.

        Args:
            kinds: The agent classes by their kebab-case names, those of sub-agents too.
            store: Where agents are kept.
            bus: Brings their events and carries their frames.
            placement: Which agents are this process's.
            events: Who is told of what happens to them. Default: nobody.
        """
        self._store = store
        self._bus = bus
        self._placement = placement
        self._events = events if events is not None else Events()
        self._residents: dict[str, Resident] = {}
        self._tasks = Tasks()
        self._families = Families(kinds, store, bus, placement, self._residents, self._resident, self._tasks)
        bus.serve(self)

    @property
    def in_memory(self) -> int:
        """How many agents are in memory."""
        return len(self._residents)

    def connect(self, address: Address, peer: int, request: ConnectionRequest) -> None:
        """A connection comes."""
        resident = self._resident(address)
        resident.peers[peer] = None
        resident.post(lambda agent: self._greet(agent, peer, request))

    def receive(self, address: Address, peer: int, message: str | bytes) -> None:
        """A connection sends a message."""
        resident = self._residents.get(address.key)
        # A frame of a connection that its agent does not know (it was dropped meanwhile) has nowhere to go.
        if resident is not None and peer in resident.peers:
            resident.post(lambda agent: agent.received(peer, message))

    def disconnect(self, address: Address, peer: int) -> None:
        """A connection goes."""
        resident = self._residents.get(address.key)
        if resident is not None and peer in resident.peers:
            del resident.peers[peer]
            resident.post(lambda agent: agent.disconnected(peer))

    async def call(self, address: Address, method: str) -> str:
        """Ask an agent.

        Raises:
            BadRequest: there is no such method.
            StorageError: the agent could not be woken.
        """
        if method != "get-messages":
            raise BadRequest(f"An agent has no method {method!r:.60}.")
        _, agent = await self._awake(address)
        return await agent.chat.stored_messages()

    async def answer(self, address: Address, scope: asgi.Scope, receive: asgi.Receive, send: asgi.Send) -> None:
        """Let an agent answer an HTTP request.

        Raises:
            StorageError: the agent could not be woken.
        """
        resident, agent = await self._awake(address)
        with within(resident.scope):
            await agent.requested(scope, receive, send)

    async def admit(self, address: Address, request: ConnectionRequest) -> Refuse | None:
        """Ask the agents above a sub-agent whether a request from outside may reach it."""
        return await self._families.admit(address, request)

    async def close(self) -> None:
        """Stop. Running turns stay open in the store; the next start finds them."""
        residents = list(self._residents.values())
        self._residents.clear()
        # All at once: an agent must not see the end of another one's call as a wish to stop what it does for it.
        await asyncio.gather(*(resident.close() for resident in residents))
        await self._families.close()
        await self._tasks.close()

    async def _awake(self, address: Address) -> tuple[Resident, LiveAgent]:
        resident = self._resident(address)
        agent = await resident.agent()
        if agent is None:
            raise StorageError(f"The agent {address.key} could not be brought into memory.")
        return resident, agent

    def _resident(self, address: Address) -> Resident:
        resident = self._residents.get(address.key)
        if resident is None:
            epoch = self._placement.epoch_of(address.root.key)
            assert epoch is not None, f"{address.key} belongs to another process"
            kind = self._families.kind_of(address)
            scope = Scope(agent=kind.__name__, name=address.name, key=address.key, events=self._events)
            resident = Resident(scope, self._store, epoch, self._bus, self._drop)
            self._residents[address.key] = resident
            resident.wake(lambda services: self._families.wake(address, services))
        return resident

    def _greet(self, agent: LiveAgent, peer: int, request: ConnectionRequest) -> None:
        try:
            agent.connected(peer, request)
        except Exception:
            # The application's code failed half way: a connection that was not greeted would never be served.
            self._bus.hang_up((peer,), 1011, "The connection could not be set up. See the server's log.")
            raise

    def _drop(self, resident: Resident) -> None:
        if self._residents.get(resident.key) is resident:
            del self._residents[resident.key]
        self._tasks.spawn(resident.close(), f"close {resident.key}")
