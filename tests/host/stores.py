"""A real store that fails or stands still when a test wants it to."""

import asyncio
from collections.abc import Callable, Sequence
from typing import TypeVar

from perdure.errors import StorageError
from perdure.storage.contract import Commit, Operation, Query, Store
from perdure.storage.sqlite import SqliteStore

__all__ = ["MoodyStore"]

R = TypeVar("R")


class MoodyStore(Store):
    """Hands everything to a real store, unless told otherwise.

    A write that fails takes along the writes of its agent until the failure is known, as the contract says.
    """

    def __init__(self, inner: SqliteStore) -> None:
        self.refuses: Callable[[Operation], bool] = lambda operation: False
        """Whether a write with this operation fails."""
        self.unreadable = False
        self.readable = asyncio.Event()
        """Cleared by a test that wants reads to take their time."""
        self.readable.set()
        self.commits: list[Commit] = []
        self._inner = inner
        self._broken: set[str] = set()

    @property
    def epoch(self) -> int:
        return self._inner.epoch

    def write(self, agent: str, epoch: int, operations: Sequence[Operation]) -> Commit:
        if agent in self._broken or any(self.refuses(operation) for operation in operations):
            self._broken.add(agent)
            loop = asyncio.get_running_loop()
            commit: Commit = loop.create_future()
            loop.call_soon(self._fail, agent, commit)
        else:
            commit = self._inner.write(agent, epoch, operations)
        self.commits.append(commit)
        return commit

    def _fail(self, agent: str, commit: Commit) -> None:
        if not commit.done():
            commit.set_exception(StorageError("the disk is full"))
        asyncio.get_running_loop().call_soon(self._broken.discard, agent)

    async def read(self, query: Query[R]) -> R:
        await self.readable.wait()
        if self.unreadable:
            raise StorageError("the disk is broken")
        return await self._inner.read(query)

    async def close(self) -> None:
        await self._inner.close()
