"""One agent in memory: its mailbox, its outbox, its tasks, and what it needs from outside (``Services``)."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
import uuid
from collections import deque
from collections.abc import Callable, Coroutine, Sequence
from contextvars import Context, copy_context
from typing import Any

from perdure.agent.live import LiveAgent
from perdure.agent.services import Timer
from perdure.errors import StorageError
from perdure.host.bus import Bus
from perdure.host.outbox import Outbox
from perdure.host.tasks import Tasks
from perdure.host.timers import Timers
from perdure.observability import Scope, current_scope, within
from perdure.storage.contract import Commit, Operation, Store

__all__ = ["Resident"]

logger = logging.getLogger(__name__)


class Resident:
    """Gives an agent its events one at a time and in order, also while it is still being woken."""

    def __init__(self, scope: Scope, store: Store, epoch: int, bus: Bus, dropped: Callable[[Resident], None]) -> None:
        """A resident without its agent yet.

        Args:
            scope: Which agent: all that happens here is its work.
            store: Where it is kept.
            epoch: Under which this process owns it.
            bus: The way to its connections.
            dropped: Called when it cannot go on: the next event must wake it anew.
        """
        self.key = scope.key
        self.scope = scope
        self.peers: dict[int, None] = {}
        self._store = store
        self._epoch = epoch
        self._bus = bus
        self._dropped = dropped
        self._agent: LiveAgent | None = None
        self.calls = Tasks()
        """What other agents have called here."""
        self.failure: BaseException | None = None
        """Why it cannot go on."""
        self._mailbox: deque[tuple[Callable[[LiveAgent], None], Context]] = deque()
        self._outbox = Outbox(bus.emit, self._fail)
        self._tasks = Tasks()
        self._timers = Timers()
        self._last_commit: Commit | None = None
        self._gone = False
        """Whether it was dropped or closed: its agent may live in another object, so nothing is written any more."""
        self._ready = asyncio.Event()

    # ── events ──────────────────────────────────────────────────────

    def wake(self, waking: Callable[[Resident], Coroutine[Any, Any, LiveAgent]]) -> None:
        """Bring the agent into memory."""
        with within(self.scope):
            self._tasks.spawn(self._wake(waking), f"wake {self.key}")

    def post(self, event: Callable[[LiveAgent], None]) -> None:
        """Hand over an event: it happens at once, or when the agent is awake."""
        if self._agent is None:
            # It is handled in the context in which it came: the one of the wake may be part of another agent's turn.
            self._mailbox.append((event, copy_context()))
        else:
            self._handle(self._agent, event)

    async def agent(self) -> LiveAgent | None:
        """The agent, once it is awake; ``None`` when it could not be woken."""
        await self._ready.wait()
        return self._agent

    @property
    def awake(self) -> bool:
        """Whether the agent is in memory and handles its events."""
        return self._agent is not None

    async def stop(self, code: int, reason: str) -> None:
        """End all work, so that no turn stays open; then close the connections and stop everything."""
        if self._agent is not None:
            await self.calls.close()
            await asyncio.wait([self._tasks.spawn(self._agent.stop(), f"stop {self.key}")])
            self.hang_up(list(self.peers), code, reason)
            with contextlib.suppress(StorageError):  # which has been logged, and has closed the connections
                await self.settled()
        await self.close()

    async def close(self) -> None:
        """Stop everything. Running turns stay open in the store."""
        self._timers.close()
        await asyncio.gather(self.calls.close(), self._tasks.close())
        self._outbox.close()
        self._gone = True
        self._ready.set()

    async def _wake(self, waking: Callable[[Resident], Coroutine[Any, Any, LiveAgent]]) -> None:
        try:
            agent = await waking(self)
        except Exception as error:
            # The user's class or the store failed: this agent cannot be served now, the others can.
            self._fail(error)
            return
        finally:
            self._ready.set()
        while self._mailbox:
            event, context = self._mailbox.popleft()
            context.run(self._handle, agent, event)
        self._agent = agent

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
        self._dropped(self)
        self._bus.hang_up(list(self.peers), 1011, "The agent could not be served. See the server's log.")

    # ── services ────────────────────────────────────────────────────

    def send(self, peers: Sequence[int], frame: str) -> None:
        self._outbox.send(peers, frame)

    def hang_up(self, peers: Sequence[int], code: int, reason: str) -> None:
        self._outbox.then(lambda: self._bus.hang_up(peers, code, reason))

    def write(self, operations: Sequence[Operation]) -> Commit:
        commit = self._commit(operations)
        self._outbox.hold(commit)
        return commit

    def checkpoint(self, operations: Sequence[Operation]) -> Commit:
        commit = self._commit(operations)
        commit.add_done_callback(self._checked)
        return commit

    def _commit(self, operations: Sequence[Operation]) -> Commit:
        if self._gone:
            refused: Commit = asyncio.get_running_loop().create_future()
            refused.set_exception(StorageError(f"The agent {self.key} is not in memory any more."))
            refused.exception()  # whoever does not wait for it need not know
            return refused
        self._last_commit = self._store.write(self.key, self._epoch, operations)
        return self._last_commit

    def _checked(self, commit: Commit) -> None:
        if not commit.cancelled() and (error := commit.exception()) is not None:
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
        return time.time_ns() // 1_000_000

    def new_id(self) -> str:
        return str(uuid.uuid4())

    async def settled(self) -> None:
        if self._last_commit is not None and not self._last_commit.done():
            await asyncio.shield(self._last_commit)
