"""The real store, made to fail and to be slow on demand."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import ClassVar

from perdure.storage.contract import CloseTurn, Commit, Operation
from perdure.storage.sqlite import SqliteStore

__all__ = ["TroubledStore"]


class TroubledStore(SqliteStore):
    """Put in the place of :class:`SqliteStore`; ``opened`` has those that an app has opened."""

    opened: ClassVar[list[TroubledStore]] = []

    breaks: Callable[[Sequence[Operation]], bool] = staticmethod(lambda operations: False)
    """Which writes fail. They are given an operation that contradicts what is stored, so the failure is SQLite's."""

    writes: list[Sequence[Operation]]
    """All writes, in order."""

    @classmethod
    async def _open(cls, folder, *, durable: bool) -> TroubledStore:
        store = await super()._open(folder, durable=durable)
        store.writes = []
        store._held = None
        cls.opened.append(store)
        return store

    def write(self, agent: str, epoch: int, operations: Sequence[Operation]) -> Commit:
        self.writes.append(operations)
        if self.breaks(operations):
            operations = [*operations, CloseTurn("no such turn", "completed", None, 0)]
        commit = super().write(agent, epoch, operations)
        if self._held is None:
            return commit
        shown: Commit = asyncio.get_running_loop().create_future()
        self._held.append((commit, shown))
        return shown

    def hold(self) -> None:
        """From now on nobody learns that a write is durable."""
        self._held: list[tuple[Commit, Commit]] | None = []

    def release(self) -> None:
        """Everybody learns it."""
        held, self._held = self._held or [], None
        for commit, shown in held:
            commit.add_done_callback(lambda done, shown=shown: _copy(done, shown))


def _copy(done: Commit, shown: Commit) -> None:
    if shown.cancelled():
        return
    if (error := done.exception()) is not None:
        shown.set_exception(error)
    else:
        shown.set_result(None)
