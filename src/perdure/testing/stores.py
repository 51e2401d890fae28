"""A store that takes its time, fails and fences when told to: for perdure's own tests and those of other stores.

It wraps a real store, which keeps what is kept. Imports the contract of stores and ``errors``.
"""

from __future__ import annotations

import asyncio
import random
from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import TypeVar

from perdure.errors import Fenced, StorageError
from perdure.storage.contract import Commit, Operation, Query, Store

__all__ = ["TryingStore"]

R = TypeVar("R")


class _Write:
    def __init__(self, agent: str, epoch: int, operations: Sequence[Operation], commit: Commit) -> None:
        self.agent = agent
        self.epoch = epoch
        self.operations = operations
        self.commit = commit


class TryingStore(Store):
    """A store that tries its users' patience. Writes of one agent stay in order; those of several overtake each other.

    ::

        store = TryingStore(await SqliteStore.temporary(), random.Random(7))
        store.hold()           # nothing becomes durable …
        store.release()        # … until now
        store.fail("a/room")   # this agent's writes fail …
        store.heal("a/room")   # … until now
    """

    def __init__(self, store: Store, rng: random.Random | None = None, *, longest_ms: float = 3) -> None:
        """A store in front of ``store``.

        Args:
            store: What keeps the data. Closed with this one.
            rng: Delays each write before it is handed on, and the news of it afterwards. ``None``: no delays.
            longest_ms: The longest of these delays.
        """
        self._store = store
        self._rng = rng
        self._longest = longest_ms / 1000
        self._queues: dict[str, deque[_Write]] = {}
        self._moving: set[asyncio.Task[None]] = set()
        self._open = asyncio.Event()
        self._open.set()
        self._failing: dict[str | None, Callable[[], StorageError]] = {}
        self._spared: dict[str | None, int] = {}
        self._unreadable: dict[str | None, Callable[[], StorageError]] = {}

    @classmethod
    def opener(
        cls,
        open_store: Callable[[Path], Awaitable[Store]],
        opened: Callable[[TryingStore], None],
        seed: int | None = None,
        *,
        longest_ms: float = 3,
    ) -> Callable[[Path], Awaitable[Store]]:
        """Opens stores with ``open_store`` and puts one of these in front, which ``opened`` is given."""

        async def open_one(folder: Path) -> Store:
            rng = None if seed is None else random.Random(seed)
            store = cls(await open_store(folder), rng, longest_ms=longest_ms)
            opened(store)
            return store

        return open_one

    # ── what tests do ───────────────────────────────────────────────

    def hold(self) -> None:
        """From now on nothing becomes durable."""
        self._open.clear()

    def release(self) -> None:
        """What was held goes on."""
        self._open.set()

    def fail(self, agent: str | None = None, text: str = "database or disk is full", *, after: int = 0) -> None:
        """Writes fail once ``after`` more have gone well: those of ``agent``, or all. What is held fails as well."""
        self._failing[agent] = lambda: StorageError(text)
        self._spared[agent] = after

    def fence(self, agent: str | None = None) -> None:
        """Another process owns the agent (or all) from now on."""
        self._failing[agent] = lambda: Fenced("another process owns the agent")

    def fail_reads(self, agent: str | None = None, text: str = "database disk image is malformed") -> None:
        """What is read of ``agent``, or at all, cannot be read from now on."""
        self._unreadable[agent] = lambda: StorageError(text)

    def heal(self, agent: str | None = None) -> None:
        """All is well again: with ``agent``, or with everything that was failed without naming one."""
        self._failing.pop(agent, None)
        self._spared.pop(agent, None)
        self._unreadable.pop(agent, None)

    async def settled(self) -> None:
        """Returns once nothing is on its way, or all of it is held."""
        while self._moving and self._open.is_set():
            await asyncio.wait(self._moving)

    # ── what a store does ───────────────────────────────────────────

    @property
    def epoch(self) -> int:
        return self._store.epoch

    def write(self, agent: str, epoch: int, operations: Sequence[Operation]) -> Commit:
        write = _Write(agent, epoch, tuple(operations), asyncio.get_running_loop().create_future())
        queue = self._queues.setdefault(agent, deque())
        queue.append(write)
        if len(queue) == 1:
            task = asyncio.create_task(self._move(queue), name=f"writes of {agent}")
            self._moving.add(task)
            task.add_done_callback(self._moving.discard)
        return write.commit

    async def read(self, query: Query[R]) -> R:
        await self._delay()
        if (error := self._error(self._unreadable, getattr(query, "agent", None))) is not None:
            raise error
        return await self._store.read(query)

    async def close(self) -> None:
        self.release()
        while self._moving:
            await asyncio.wait(self._moving)
        await self._store.close()

    async def _move(self, queue: deque[_Write]) -> None:
        """Hand on the writes of one agent, one after the other."""
        while queue:
            write = queue[0]
            await self._delay()
            await self._open.wait()
            error = None if self._is_spared(write.agent) else self._error(self._failing, write.agent)
            if error is None:
                error = await self._hand_on(write)
            await self._delay()
            if error is None:
                queue.popleft()
                _settle(write.commit, None)
            else:
                # What was handed over before the failure is known goes with it.
                lost = list(queue)
                queue.clear()
                for each in lost:
                    _settle(each.commit, error)
        # No await since the queue was found empty: nobody has seen it so.
        self._queues = {agent: other for agent, other in self._queues.items() if other is not queue}

    async def _hand_on(self, write: _Write) -> StorageError | None:
        try:
            await self._store.write(write.agent, write.epoch, write.operations)
        except StorageError as error:
            return error
        return None

    async def _delay(self) -> None:
        if self._rng is not None:
            await asyncio.sleep(self._rng.uniform(0, self._longest))

    def _is_spared(self, agent: str) -> bool:
        for key in (agent, None):
            if self._spared.get(key):
                self._spared[key] -= 1
                return True
        return False

    def _error(self, failing: dict[str | None, Callable[[], StorageError]], agent: str | None) -> StorageError | None:
        make = failing.get(agent) or failing.get(None)
        return None if make is None else make()


def _settle(commit: Commit, error: StorageError | None) -> None:
    if commit.done():
        return
    if error is None:
        commit.set_result(None)
    else:
        commit.set_exception(error)
