"""One agent in memory: its mailbox, its outbox, its tasks, and what it needs from outside (``Services``)."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import uuid
from collections.abc import Callable, Coroutine, Generator, Mapping, Sequence
from contextvars import Context, copy_context
from typing import Any, Protocol

from perdure.agent.attachment import Attachment
from perdure.agent.live import LiveAgent
from perdure.agent.services import Family, PeerId, Timer
from perdure.errors import StorageError
from perdure.host.bus import Bus
from perdure.host.clock import Clock
from perdure.host.outbox import Outbox
from perdure.host.tasks import GRACE, Tasks
from perdure.host.timers import Timers
from perdure.observability import Scope, current_scope, within
from perdure.storage.contract import Commit, Operation, Store

__all__ = ["Keeper", "Resident"]

logger = logging.getLogger(__name__)


class Keeper(Protocol):
    """Who keeps the residents."""

    def dropped(self, resident: Resident, error: BaseException) -> None:
        """This one cannot go on: the next event has to wake the agent anew."""
        ...

    def alarm(self, key: str, due_ms: int | None) -> None:
        """The agent is to be woken for its timers at that time."""
        ...

    @property
    def family(self) -> Family:
        """How agents reach each other."""
        ...


class Resident:
    """Gives an agent its events one at a time and in order, also while it is still being woken."""

    def __init__(self, scope: Scope, store: Store, epoch: int, bus: Bus, clock: Clock, keeper: Keeper) -> None:
        """A resident without its agent yet.

        Args:
            scope: Which agent: all that happens here is its work.
            store: Where it is kept.
            epoch: Under which this process owns it.
            bus: The way to its connections.
            clock: What time it is.
            keeper: Is told what concerns more than this agent.
        """
        self.key = scope.key
        self.scope = scope
        self.touched = True
        """Whether something happened to it; whoever looks after idle agents takes it back."""
        self.quiet_since = 0.0
        """Likewise, when that was."""
        self._store = store
        self._epoch = epoch
        self._bus = bus
        self._clock = clock
        self._keeper = keeper
        self._agent: LiveAgent | None = None
        self.calls = Tasks()
        """What other agents have called here."""
        self.failure: BaseException | None = None
        """Why it cannot go on."""
        # Plain lists, as an empty deque takes as much memory as all else here.
        self._mailbox: list[tuple[Callable[[LiveAgent], None], Context]] = []
        self._outbox = Outbox(bus.emit, self._fail)
        self._tasks = Tasks()
        self._timers = Timers()
        self._pending: list[Commit] = []
        """Writes that may not be stored yet, in order."""
        self._woken: asyncio.Event | None = asyncio.Event()
        self._holds = 0
        self._gone = False
        """Whether it was dropped or closed: its agent may live in another object, so nothing is written any more."""

    # ── events ──────────────────────────────────────────────────────

    def wake(self, waking: Callable[[Resident], Coroutine[Any, Any, LiveAgent]]) -> None:
        """Bring the agent into memory."""
        with within(self.scope):
            self._tasks.spawn(self._wake(waking), f"wake {self.key}")

    def post(self, event: Callable[[LiveAgent], None]) -> None:
        """Hand over an event: it happens at once, or when the agent is awake."""
        self.touched = True
        if self._agent is None:
            # It is handled in the context in which it came: the one of the wake may be part of another agent's turn.
            self._mailbox.append((event, copy_context()))
        else:
            self._handle(self._agent, event)

    @contextlib.contextmanager
    def held(self) -> Generator[None]:
        """While this lasts the agent is not idle."""
        self._holds += 1
        try:
            yield
        finally:
            self._holds -= 1
            self.touched = True

    async def agent(self) -> LiveAgent | None:
        """The agent, once it is awake; ``None`` when it could not be woken."""
        if self._woken is not None:
            await self._woken.wait()
        return self._agent

    @property
    def awake(self) -> bool:
        """Whether the agent is in memory and handles its events."""
        return self._agent is not None

    async def stop(self, peers: Sequence[PeerId], code: int, reason: str) -> None:
        """End all work, so that no turn stays open; then close these connections and stop everything."""
        if self._agent is not None:
            await self.calls.close()
            await asyncio.wait([self._tasks.spawn(self._agent.stop(), f"stop {self.key}")], timeout=GRACE)
            with contextlib.suppress(StorageError):  # which has been logged
                await self.settled()
        self._bus.hang_up(peers, code, reason)
        await self.close()

    async def close(self) -> None:
        """Stop everything. Running turns stay open in the store."""
        self._timers.close()
        await asyncio.gather(self.calls.close(), self._tasks.close())
        self._timers.close()  # again: what was running may have asked for calls as it ended
        self._outbox.close()
        self._gone = True
        # Closed before it began to wake: whoever waits for the agent is told that it will not come.
        self._stop_waiting()

    async def _wake(self, waking: Callable[[Resident], Coroutine[Any, Any, LiveAgent]]) -> None:
        try:
            agent = await waking(self)
        except Exception as error:
            # The user's class or the store failed: this agent cannot be served now, the others can.
            self._fail(error)
            return
        finally:
            self._stop_waiting()
        if self._gone:
            return
        for event, context in self._mailbox:  # also what is added meanwhile
            context.run(self._handle, agent, event)
        self._mailbox.clear()
        self._agent = agent

    def _stop_waiting(self) -> None:
        if self._woken is not None:
            self._woken.set()
            self._woken = None

    def _handle(self, agent: LiveAgent, event: Callable[[LiveAgent], None]) -> None:
        with within(self.scope):
            try:
                event(agent)
            except Exception:
                # One event that goes wrong must not end the connection that brought it, nor the agent.
                logger.exception("An event of the agent %s failed", self.key)

    def _fail(self, error: BaseException) -> None:
        if self._gone:
            return
        self._gone = True
        self.failure = error
        self._outbox.close()
        logger.error("The agent %s is dropped from memory: %s", self.key, error, exc_info=error)
        self._keeper.dropped(self, error)

    # ── leaving ─────────────────────────────────────────────────────

    @property
    def idle(self) -> bool:
        """Whether nothing runs, waits, or is on its way to the store or to connections."""
        self._look_back()
        busy = (
            self._mailbox or self._tasks or self.calls or self._timers or self._outbox or self._pending or self._holds
        )
        return self._agent is not None and not busy and not self._gone

    def attachments(self) -> Mapping[PeerId, Attachment] | None:
        """What is to be remembered of the connections when it leaves; ``None`` when it must stay."""
        return None if self._agent is None else self._agent.attachments()

    def farewell(self, text: str) -> list[str]:
        """What connections are sent when it cannot go on."""
        return [] if self._agent is None else self._agent.farewell(text)

    @property
    def has_work(self) -> bool:
        """Whether the agent has something to do later."""
        return self._agent is not None and self._agent.has_work

    # ── services ────────────────────────────────────────────────────

    def send(self, peers: Sequence[PeerId], frame: str) -> None:
        self._outbox.send(peers, frame)

    def hang_up(self, peers: Sequence[PeerId], code: int, reason: str) -> None:
        self._outbox.then(lambda: self._bus.hang_up(peers, code, reason))

    def then(self, call: Callable[[], None]) -> None:
        self._outbox.then(call)

    def write(self, operations: Sequence[Operation]) -> Commit:
        commit = self._hand_over(operations)
        self._outbox.hold(commit)
        return _shielded(commit)

    def checkpoint(self, operations: Sequence[Operation]) -> Commit:
        commit = self._hand_over(operations)
        commit.add_done_callback(lambda commit: self._look_back())
        return _shielded(commit)

    def _hand_over(self, operations: Sequence[Operation]) -> Commit:
        self._look_back()
        if self._gone:
            # What is in memory builds on a write that was not stored. Stored without it, it would leave a gap.
            return _refused(f"A write for {self.key!r} was not stored, as an earlier one of this agent failed")
        commit = self._store.write(self.key, self._epoch, operations)
        self._pending.append(commit)
        return commit

    def _look_back(self) -> None:
        """Learn of a write that failed before anything is done that builds on it."""
        while self._pending and self._pending[0].done():
            if (error := self._pending.pop(0).exception()) is not None:
                self._fail(error)

    def spawn(self, work: Coroutine[Any, Any, None], name: str, context: Context | None = None) -> None:
        # The work is this agent's, whoever asked for it: also in the context of another agent's code.
        if context is None:
            context = copy_context()
        context.run(current_scope.set, self.scope)
        self._tasks.spawn(work, f"{name} of {self.key}", context)

    def later(self, seconds: float, call: Callable[[], None]) -> Timer:
        return self._timers.later(seconds, call)

    def now_ms(self) -> int:
        return self._clock.now_ms()

    async def sleep(self, seconds: float) -> None:
        await self._clock.sleep(seconds)

    def alarm(self, due_ms: int | None) -> None:
        self._keeper.alarm(self.key, due_ms)

    @property
    def family(self) -> Family:
        return self._keeper.family

    def new_id(self) -> str:
        return str(uuid.uuid4())

    async def settled(self) -> None:
        if self._pending:
            await asyncio.shield(self._pending[-1])


def _shielded(commit: Commit) -> Commit:
    """The commit for those who wait for it: when they are cancelled, its outcome is still learnt."""
    shielded = asyncio.shield(commit)
    shielded.add_done_callback(_retrieve)
    return shielded


def _refused(text: str) -> Commit:
    commit: Commit = asyncio.get_running_loop().create_future()
    commit.set_exception(StorageError(text))
    _retrieve(commit)
    return commit


def _retrieve(commit: Commit) -> None:
    """Nobody need look at the outcome: the agent is dropped because of it."""
    if not commit.cancelled():
        commit.exception()
