"""The host: which agents are in memory, how events find them, and when they leave."""

from __future__ import annotations

import asyncio
import logging
import math
from collections.abc import Mapping

from starlette import types as asgi

from perdure.agent.attachment import Attachment
from perdure.agent.base import Agent
from perdure.agent.connection import ConnectionRequest
from perdure.agent.live import LiveAgent
from perdure.agent.refusal import Refuse
from perdure.agent.services import PeerId, Services
from perdure.errors import BadRequest, StorageError
from perdure.host.alarm import Alarm
from perdure.host.bus import Bus
from perdure.host.clock import Clock, SystemClock
from perdure.host.failure import close_reason, error_text
from perdure.host.families import Families
from perdure.host.left_open import take_up
from perdure.host.placement import Placement
from perdure.host.resident import Resident
from perdure.host.tasks import Tasks
from perdure.observability import Events, Scope, within
from perdure.protocol.names import Address
from perdure.session.transcript import WINDOW
from perdure.storage.contract import Store

__all__ = ["Host"]

logger = logging.getLogger(__name__)

LOOKS = 4
"""How often an agent is looked at in the time after which it is idle."""
PORTION = 100
"""How many are looked at without letting others run."""


class Host:
    """Runs agents: wakes them when something happens to them, lets go of them when nothing does.

    A connection belongs to its agent's key, not to the agent in memory: it stays open when the agent leaves, and the
    next event finds both.
    """

    def __init__(
        self,
        kinds: Mapping[str, type[Agent]],
        store: Store,
        bus: Bus,
        placement: Placement,
        *,
        events: Events | None = None,
        window: int = WINDOW,
        upload: float = math.inf,
        clock: Clock | None = None,
        idle_seconds: float | None = 60.0,
    ) -> None:
        """A host without agents yet.

        Args:
            kinds: The agent classes by their kebab-case names, those of sub-agents too.
            store: Where agents are kept.
            bus: Brings their events and carries their frames.
            placement: Which agents are this process's.
            events: Who is told of what happens to them. Default: nobody.
            window: Most bytes of a conversation that clients are sent.
            upload: Most bytes of one message that they add.
            clock: What time it is. Default: the machine's.
            idle_seconds: After how many seconds without work an agent leaves memory; ``None``: never.
        """
        self._kinds = kinds
        self._store = store
        self._bus = bus
        self._placement = placement
        self._window = window
        self._upload = upload
        self._events = events if events is not None else Events()
        self._clock = clock or SystemClock()
        self._idle_seconds = idle_seconds
        self._residents: dict[str, Resident] = {}
        self._peers: dict[str, dict[int, Attachment]] = {}
        self._rung: set[str] = set()
        """Agents that are being woken for their timers."""
        self._alarm = Alarm(self._clock, store, self._ring)
        self._tasks = Tasks()
        self._families = Families(
            kinds, store, bus, placement, self._residents, self._peers, self._of, self._alarm, self._tasks
        )
        self._closed = False
        bus.serve(self)

    @property
    def family(self) -> Families:
        """How agents reach each other."""
        return self._families

    @property
    def in_memory(self) -> int:
        """How many agents are in memory."""
        return len(self._residents)

    def start(self) -> None:
        """Begin to wake agents for their timers and for turns that were left open, and to let go of those that are
        idle."""
        self._tasks.spawn(self._alarm.run(), "alarm")
        self._tasks.spawn(take_up(self._store, self._wake_left_open), "wake agents with open turns")
        if self._idle_seconds is not None:
            self._tasks.spawn(self._sweep(self._idle_seconds), "let go of idle agents")

    async def close(self) -> None:
        """Stop. Running turns stay open in the store; the next start finds them."""
        self._closed = True
        residents = list(self._residents.values())
        self._residents.clear()
        self._peers.clear()
        # All at once: an agent must not see the end of another one's call as a wish to stop what it does for it.
        await asyncio.gather(*(resident.close() for resident in residents))
        await self._families.close()
        await self._tasks.close()

    # ── events ──────────────────────────────────────────────────────

    def connect(self, address: Address, peer: int, request: ConnectionRequest) -> None:
        """A connection comes."""
        if self._closed:
            return
        resident = self._resident(address)
        self._peers.setdefault(address.key, {})[peer] = Attachment(request)
        resident.post(lambda agent: self._greet(agent, peer, request))

    def receive(self, address: Address, peer: int, message: str | bytes) -> None:
        """A connection sends a message."""
        # One that its agent does not know (it was dropped meanwhile) is being closed: what it says has nowhere to go.
        if peer in self._peers.get(address.key, ()):
            self._resident(address).post(lambda agent: agent.received(peer, message))

    def disconnect(self, address: Address, peer: int) -> None:
        """A connection goes."""
        peers = self._peers.get(address.key, {})
        if peer not in peers:
            return
        resident = self._residents.get(address.key)
        if resident is None and self._kinds[address.kind].on_close is not Agent.on_close:
            resident = self._resident(address)
        del peers[peer]
        if not peers:
            del self._peers[address.key]
        if resident is not None:
            resident.post(lambda agent: agent.disconnected(peer))

    async def call(self, address: Address, method: str) -> str:
        """Ask an agent.

        Raises:
            BadRequest: there is no such method.
            StorageError: the agent could not be woken.
        """
        if method != "get-messages":
            raise BadRequest(f"An agent has no method {method!r:.60}.")
        resident = self._of(address)
        with resident.held():
            return await (await self._awake(resident)).chat.stored_messages()

    async def answer(self, address: Address, scope: asgi.Scope, receive: asgi.Receive, send: asgi.Send) -> None:
        """Let an agent answer an HTTP request.

        Raises:
            StorageError: the agent could not be woken.
        """
        resident = self._of(address)
        with resident.held():
            agent = await self._awake(resident)
            with within(resident.scope):
                await agent.requested(scope, receive, send)

    async def admit(self, address: Address, request: ConnectionRequest) -> Refuse | None:
        """Ask the agents above a sub-agent whether a request from outside may reach it."""
        return await self._families.admit(address, request)

    # ── coming into memory ──────────────────────────────────────────

    def _of(self, address: Address) -> Resident:
        if self._closed:
            raise StorageError("The server is stopping.")
        return self._resident(address)

    async def _awake(self, resident: Resident) -> LiveAgent:
        agent = await resident.agent()
        if agent is None:
            raise StorageError(f"The agent {resident.key} could not be brought into memory.")
        return agent

    def _resident(self, address: Address) -> Resident:
        resident = self._residents.get(address.key)
        if resident is None:
            epoch = self._placement.epoch_of(address.root.key)
            assert epoch is not None, f"{address.key} belongs to another process"
            kind = self._families.kind_of(address)
            scope = Scope(agent=kind.__name__, name=address.name, key=address.key, events=self._events)
            resident = Resident(scope, self._store, epoch, self._bus, self._clock, self)
            self._residents[address.key] = resident
            attachments = dict(self._peers.get(address.key, {}))
            resident.wake(lambda services: self._wake(address, services, attachments))
        return resident

    async def _wake(self, address: Address, services: Services, attachments: Mapping[PeerId, Attachment]) -> LiveAgent:
        await self._families.starting(address)
        kind = self._families.kind_of(address)
        return await LiveAgent.wake(
            kind, address, self._store, services, attachments, window=self._window, upload=self._upload
        )

    async def _wake_left_open(self, key: str) -> None:
        address = Address.of_key(key)
        if not self._kinds.keys() >= {above.kind for above in address.line}:
            logger.warning("%s has turns that are not over, but this app has no such agent", key)
        elif self._placement.epoch_of(address.root.key) is not None and not self._closed:
            resident = self._resident(address)
            with resident.held():
                await resident.agent()

    def _greet(self, agent: LiveAgent, peer: int, request: ConnectionRequest) -> None:
        try:
            agent.connected(peer, request)
        except Exception:
            # The application's code failed half way: a connection that was not greeted would never be served.
            self._bus.hang_up((peer,), 1011, "The connection could not be set up. See the server's log.")
            raise

    def _ring(self, key: str) -> None:
        address = Address.of_key(key)
        if not self._kinds.keys() >= {above.kind for above in address.line}:
            logger.warning("A timer of %s is due, but this app has no such agent", key)
        elif address.parent is None or key in self._residents:
            self._ring_now(address)
        else:
            self._tasks.spawn(self._ring_sub_agent(address), f"ring {key}")

    async def _ring_sub_agent(self, address: Address) -> None:
        # It may have been deleted since the alarm was set, and waking it would make it anew.
        if await self._families.exists(address):
            self._ring_now(address)

    def _ring_now(self, address: Address) -> None:
        self._rung.add(address.key)
        self._resident(address).post(self._rings)

    def _rings(self, agent: LiveAgent) -> None:
        self._rung.discard(agent.address.key)
        agent.timers.ring()

    def alarm(self, key: str, due_ms: int | None) -> None:
        """An agent says when it is to be woken for its timers."""
        self._alarm.set(key, due_ms)

    # ── leaving it ──────────────────────────────────────────────────

    def dropped(self, resident: Resident, error: BaseException) -> None:
        """An agent cannot go on. Its connections are told, and find what is stored when they come back."""
        if self._closed or self._residents.get(resident.key) is not resident:
            return
        del self._residents[resident.key]
        if resident.has_work or resident.key in self._rung:
            self._alarm.retry(resident.key)
        if peers := list(self._peers.pop(resident.key, ())):
            for frame in resident.farewell(error_text(error)):
                self._bus.emit(peers, frame)
            self._bus.hang_up(peers, 1011, close_reason(error))
        self._tasks.spawn(resident.close(), f"close {resident.key}")

    async def _sweep(self, idle_seconds: float) -> None:
        while True:
            await self._clock.sleep(idle_seconds / LOOKS)
            await self._look_around(idle_seconds)

    async def _look_around(self, idle_seconds: float) -> None:
        for number, resident in enumerate(list(self._residents.values()), 1):
            self._look_after(resident, idle_seconds)
            if number % PORTION == 0:
                await asyncio.sleep(0)

    def _look_after(self, resident: Resident, idle_seconds: float) -> None:
        now = self._clock.monotonic()
        if resident.touched or not resident.idle:
            resident.touched = False
            resident.quiet_since = now
        elif now - resident.quiet_since >= idle_seconds:
            self._let_go(resident)

    def _let_go(self, resident: Resident) -> None:
        attachments = resident.attachments()
        if attachments is None:
            logger.debug("%s stays in memory: the state of one of its connections is not plain JSON", resident.key)
            resident.touched = True
            return
        del self._residents[resident.key]
        if attachments:
            self._peers[resident.key] = dict(attachments)
        logger.debug("%s left memory; %d connections stay open", resident.key, len(attachments))
