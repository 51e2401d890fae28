"""How agents of one family reach each other: calls, and the making, stopping and forgetting of sub-agents.

Implements ``agent.services.Family`` for all agents of a host.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Coroutine, Iterable, Mapping, MutableMapping, Sequence
from contextvars import ContextVar, copy_context
from dataclasses import dataclass
from typing import Any, TypeVar
from urllib.parse import unquote

from perdure.agent.attachment import Attachment
from perdure.agent.base import Agent
from perdure.agent.connection import ConnectionRequest, current_connection
from perdure.agent.hooks import call
from perdure.agent.live import CREATED, LiveAgent
from perdure.agent.refusal import Refuse
from perdure.agent.services import Family, PeerId
from perdure.agent.values import NAMESPACE
from perdure.errors import AgentStopped, ConfigurationError, NestedTurn
from perdure.host.alarm import Alarm
from perdure.host.bus import Bus
from perdure.host.placement import Placement
from perdure.host.resident import Resident
from perdure.host.tasks import Tasks
from perdure.observability import within
from perdure.protocol import codec
from perdure.protocol.names import SUB, Address
from perdure.storage.contract import LoadValue, Store
from perdure.storage.families import ForgetFamily, LoadChildren

__all__ = ["Families"]

logger = logging.getLogger(__name__)

R = TypeVar("R")

GONE = 1001
"""Close code for the connections of a sub-agent that is stopped or deleted: clients come back after it."""

_starting: ContextVar[tuple[str, ...]] = ContextVar("perdure_starting", default=())
"""Keys of the agents for whose start the running code runs, outermost first."""


@dataclass(frozen=True, slots=True)
class _Ending:
    """Agents that are being stopped."""

    residents: Sequence[Resident]
    work: asyncio.Task[None]
    forgets: bool


class Families(Family):
    """The families of a host."""

    def __init__(
        self,
        kinds: Mapping[str, type[Agent]],
        store: Store,
        bus: Bus,
        placement: Placement,
        residents: MutableMapping[str, Resident],
        peers: MutableMapping[str, dict[PeerId, Attachment]],
        bring: Callable[[Address], Resident],
        alarm: Alarm,
        tasks: Tasks,
    ) -> None:
        """The families of the host that has these ``residents``.

        Args:
            kinds: The agent classes by their kebab-case names.
            store: Where agents are kept.
            bus: The way to their connections.
            placement: Under which epoch they are written.
            residents: The agents in memory, by key. Those that are stopped are taken out.
            peers: The connections of all agents, likewise.
            bring: Gives the resident of an agent, which is woken if need be.
            alarm: Wakes agents for their timers.
            tasks: The host's.
        """
        self._kinds = kinds
        self._store = store
        self._bus = bus
        self._placement = placement
        self._residents = residents
        self._peers = peers
        self._bring = bring
        self._alarm = alarm
        self._tasks = tasks
        self._endings: dict[str, _Ending] = {}

    def kind_of(self, address: Address) -> type[Agent]:
        kind = self._kinds.get(address.kind)
        if kind is None:
            raise ConfigurationError(
                f"The app has no agent class that is called {address.kind!r} in URLs. "
                "Give it the class: App(…), or App(…, sub_agents=[…]) for one that is only a sub-agent."
            )
        return kind

    async def starting(self, address: Address) -> None:
        """For whoever wakes an agent, before anything else: what is being stopped of it or above it must be over."""
        _starting.set((*_starting.get(), address.key))
        while (ending := self._ending(address)) is not None:
            await asyncio.wait([ending.work])

    async def close(self) -> None:
        """See to the end of what is being stopped."""
        for ending in list(self._endings.values()):
            await asyncio.gather(*(resident.close() for resident in ending.residents))
            await asyncio.wait([ending.work])

    # ── reaching one ────────────────────────────────────────────────

    async def open(self, address: Address) -> None:
        if address.parent is not None and self._ending(address.parent) is not None:
            raise AgentStopped(f"{address.key} cannot be opened: the agent above it is being stopped.")
        resident, _ = await self._awake(address, "sub_agent()")
        await resident.settled()

    async def call(self, address: Address, what: str, work: Callable[[Agent], Coroutine[Any, Any, R]]) -> R:
        if self._ending(address) is not None or not (address.parent is None or await self.exists(address)):
            raise AgentStopped(f"{what} cannot be called: {address.key} is not there (any more).")
        resident, agent = await self._awake(address, what)
        results: list[R] = []
        errors: list[Exception] = []

        async def carry_out() -> None:
            try:
                results.append(await work(agent.agent))
            except Exception as error:
                # A method of the application: what it raises belongs to whoever called it.
                errors.append(error)

        # The chain of turns goes along in the context; the connection that the caller answers to does not.
        with within(resident.scope):
            context = copy_context()
        context.run(current_connection.set, None)
        task = resident.calls.spawn(carry_out(), f"{what} of {address.key}", context)
        try:
            await asyncio.wait([task])
        finally:
            task.cancel()
        if errors:
            raise errors[0]
        if not results:
            raise AgentStopped(f"{what} came to nothing: {address.key} was stopped.")
        return results[0]

    async def _awake(self, address: Address, what: str) -> tuple[Resident, LiveAgent]:
        known = self._residents.get(address.key)
        if known is not None and not known.awake and address.key in _starting.get():
            raise NestedTurn(what)
        context = copy_context()
        context.run(current_connection.set, None)
        resident = context.run(self._bring, address)
        agent = await resident.agent()
        if agent is None or self._residents.get(address.key) is not resident:
            raise AgentStopped(f"{address.key} could not be brought into memory.") from resident.failure
        return resident, agent

    # ── which there are ─────────────────────────────────────────────

    async def exists(self, address: Address) -> bool:
        ending = self._ending(address)
        if ending is not None and ending.forgets:
            return False
        if address.key in self._residents:
            return True
        return await self._store.read(LoadValue(address.key, NAMESPACE, CREATED)) is not None

    async def children(self, address: Address) -> Sequence[tuple[Address, int]]:
        found: list[tuple[Address, int]] = []
        for row in await self._store.read(LoadChildren(address.key, NAMESPACE, CREATED)):
            kind, name = row.key.removeprefix(f"{address.key}/{SUB}/").split("/")
            if kind in self._kinds:
                found.append((Address(kind, unquote(name), address), codec.decode(row.body)))
        return found

    async def admit(self, address: Address, request: ConnectionRequest) -> Refuse | None:
        """Ask the agents above a sub-agent whether a request from outside may reach it."""
        for step in address.line[1:]:
            refusal = await self._ask(step, request)
            if refusal is not None:
                return refusal
        return None

    async def _ask(self, address: Address, request: ConnectionRequest) -> Refuse | None:
        parent = address.parent
        assert parent is not None
        asks = self.kind_of(parent).on_before_sub_agent is not Agent.on_before_sub_agent
        asked = (request, self.kind_of(address).__name__, address.name)
        try:
            if parent.parent is not None:
                await self.open(parent)  # what is on the way to a sub-agent comes to be with it
            if not asks:
                return None
            what = "on_before_sub_agent()"
            answer = await self.call(parent, what, lambda agent: call(agent.on_before_sub_agent, *asked))
        except AgentStopped as error:
            logger.warning("Turned a request for %s away: %s", address.key, error)
            return Refuse(503, "The agent cannot be reached at the moment.")
        except Exception:
            # The application's guard: whatever goes wrong there, nobody gets past it.
            logger.exception("on_before_sub_agent failed; turned a request for %s away", address.key)
            return Refuse(500, "Internal Server Error")
        if answer is None or isinstance(answer, Refuse):
            return answer
        logger.error("on_before_sub_agent gave %s; it must give a Refuse, or nothing", type(answer).__name__)
        return Refuse(500, "Internal Server Error")

    # ── ending one ──────────────────────────────────────────────────

    async def stop(self, address: Address) -> None:
        await self._end(address, forget=False)

    async def delete(self, address: Address) -> None:
        await self._end(address, forget=True)

    async def _end(self, address: Address, *, forget: bool) -> None:
        """What happens here without an await is what makes it sure: from now on nothing reaches the old agents."""
        head = address.key
        residents = [self._residents.pop(key) for key in _below(head, self._residents)]
        # Connections of agents that are not in memory stay open when nothing is forgotten: there is nothing to stop.
        ending_keys = _below(head, self._peers) if forget else [resident.key for resident in residents]
        peers = {key: list(self._peers.pop(key, ())) for key in ending_keys}
        earlier = self._endings.get(head)
        if forget:
            self._bus.hang_up([peer for those in peers.values() for peer in those], GONE, "Sub-agent deleted")
            work = self._tasks.spawn(self._delete(address, residents, earlier), f"delete {head}")
        else:
            work = self._tasks.spawn(self._stop(residents, peers, earlier), f"stop {head}")
        ending = self._endings[head] = _Ending(residents, work, forget)
        work.add_done_callback(lambda _: self._over(head, ending))
        # Whoever asked may be one of those that end: what was begun is carried through all the same.
        await asyncio.shield(work)

    async def _stop(
        self, residents: Sequence[Resident], peers: Mapping[str, list[int]], earlier: _Ending | None
    ) -> None:
        if earlier is not None:
            await asyncio.wait([earlier.work])
        ends = (resident.stop(peers[resident.key], GONE, "Sub-agent stopped") for resident in residents)
        await asyncio.gather(*ends)

    async def _delete(self, address: Address, residents: Sequence[Resident], earlier: _Ending | None) -> None:
        if earlier is not None:
            await asyncio.wait([earlier.work])
        await asyncio.gather(*(resident.close() for resident in residents))
        for resident in residents:
            self._alarm.set(resident.key, None)
        epoch = self._placement.epoch_of(address.root.key)
        assert epoch is not None, f"{address.key} belongs to another process"
        await self._store.write(address.key, epoch, [ForgetFamily()])

    def _over(self, head: str, ending: _Ending) -> None:
        if self._endings.get(head) is ending:
            del self._endings[head]

    def _ending(self, address: Address) -> _Ending | None:
        """What is being stopped of an agent: itself, or one above it."""
        if not self._endings:
            return None
        endings = (self._endings.get(above.key) for above in address.line)
        return next((ending for ending in endings if ending is not None), None)


def _below(head: str, keys: Iterable[str]) -> list[str]:
    """The keys among these of an agent and of those below it."""
    return [key for key in keys if key == head or key.startswith(f"{head}/{SUB}/")]
