"""What an agent needs from its host, in the hands of a test."""

from __future__ import annotations

import asyncio
import itertools
import json
from collections.abc import Callable, Coroutine, Sequence
from contextlib import AbstractContextManager, nullcontext
from contextvars import Context
from typing import Any

from perdure.host.tasks import Tasks
from perdure.storage.contract import Commit, Operation, Store

__all__ = ["ManualTimer", "RecordingServices"]

Frame = dict[str, Any]


class ManualTimer:
    """A call that is due when the test says so."""

    def __init__(self, seconds: float, call: Callable[[], None]) -> None:
        self.seconds = seconds
        self.cancelled = False
        self._call = call

    def cancel(self) -> None:
        self.cancelled = True

    def ring(self) -> None:
        """Time has passed."""
        if not self.cancelled:
            self.cancelled = True
            self._call()


class RecordingServices:
    """Records what is sent and written. With a store, writes go there; without, their commits are the test's."""

    def __init__(self, store: Store | None = None, agent: str = "a") -> None:
        self.sent: list[tuple[tuple[int, ...], Frame]] = []
        self.closed: list[tuple[int, int]] = []
        self.alarms: list[int | None] = []
        self.written: list[list[Operation]] = []
        self.checkpoints: list[list[Operation]] = []
        self.commits: list[Commit] = []
        self.timers: list[ManualTimer] = []
        self._store = store
        self._agent = agent
        self._ids = itertools.count(1)
        self._tasks = Tasks()

    def frames(self, peer: int) -> list[Frame]:
        """What a connection was sent."""
        return [frame for peers, frame in self.sent if peer in peers]

    @property
    def running_timers(self) -> list[ManualTimer]:
        return [timer for timer in self.timers if not timer.cancelled]

    async def close(self) -> None:
        await self._tasks.close()

    # services

    def send(self, peers: Sequence[int], frame: str) -> None:
        self.sent.append((tuple(peers), json.loads(frame)))

    def write(self, operations: Sequence[Operation]) -> Commit:
        self.written.append(list(operations))
        return self._commit(operations)

    def checkpoint(self, operations: Sequence[Operation]) -> Commit:
        self.checkpoints.append(list(operations))
        return self._commit(operations)

    def _commit(self, operations: Sequence[Operation]) -> Commit:
        if self._store is not None:
            commit = self._store.write(self._agent, self._store.epoch, operations)
        else:
            commit = asyncio.get_running_loop().create_future()
        self.commits.append(commit)
        return commit

    def hang_up(self, peers: Sequence[int], code: int, reason: str) -> None:
        self.closed += [(peer, code) for peer in peers]

    def spawn(self, work: Coroutine[Any, Any, None], name: str, context: Context | None = None) -> None:
        self._tasks.spawn(work, name, context)

    def later(self, seconds: float, call: Callable[[], None]) -> ManualTimer:
        self.timers.append(ManualTimer(seconds, call))
        return self.timers[-1]

    def now_ms(self) -> int:
        return 1_800_000_000_000

    def new_id(self) -> str:
        return f"id-{next(self._ids)}"

    def alarm(self, due_ms: int | None) -> None:
        self.alarms.append(due_ms)

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(0)

    def held(self) -> AbstractContextManager[None]:
        return nullcontext()

    def then(self, call: Callable[[], None]) -> None:
        call()

    async def settled(self) -> None:
        if self.commits:
            await asyncio.shield(self.commits[-1])
