"""The one thread that writes: it commits everything that waits, together, and tells the event loop once.

A write that fails takes along the writes of the same agent that were handed over before its caller could know. They
build on it; stored without it they would leave a gap. Knows no table; imports the contract and ``errors``.
"""

from __future__ import annotations

import logging
import sqlite3
import threading
from asyncio import AbstractEventLoop
from collections.abc import Sequence
from pathlib import Path
from queue import SimpleQueue

import msgspec

from perdure.errors import Fenced, StorageError
from perdure.storage.contract import Commit, Operation
from perdure.storage.families import ForgetFamily
from perdure.storage.sqlite.agents import AgentNumbers
from perdure.storage.sqlite.dispatch import APPLIES
from perdure.storage.sqlite.failures import explain

__all__ = ["Statistics", "Write", "Writer"]

_log = logging.getLogger("perdure.storage")


class Statistics(msgspec.Struct, frozen=True):
    """What a store has done since it was opened."""

    commits: int
    """Transactions committed. Each waited for the disk once."""
    writes: int
    """Writes that these made durable."""
    failed: int
    """Writes that were not stored."""


class Write(msgspec.Struct):
    """A write on its way."""

    agent: str
    epoch: int
    operations: Sequence[Operation]
    commit: Commit
    failure: StorageError | None = None


class _Reported(msgspec.Struct, frozen=True):
    """Queued once the failure of an agent's write has reached its caller: what comes after it knows of the failure."""

    agent: str


class Writer:
    """Applies writes in the order in which they were handed over."""

    def __init__(self, connection: sqlite3.Connection, path: Path, epoch: int, loop: AbstractEventLoop) -> None:
        self._connection = connection
        self._cursor = connection.cursor()
        self._path = path
        self._epoch = epoch
        self._loop = loop
        self._queue: SimpleQueue[Write | _Reported | None] = SimpleQueue()
        self._numbers = AgentNumbers()
        self._broken: set[str] = set()
        """Agents with a failure that has not reached its caller yet."""
        self._commits = self._writes = self._failed = 0
        self._thread = threading.Thread(target=self._run, name="perdure-writer", daemon=True)
        self._thread.start()

    @property
    def statistics(self) -> Statistics:
        """Counts so far."""
        return Statistics(self._commits, self._writes, self._failed)

    def submit(self, write: Write) -> None:
        """Hand over a write. Called in the event loop's thread; takes a microsecond."""
        self._queue.put(write)

    def stop(self) -> None:
        """Finish what was handed over. Blocks."""
        self._queue.put(None)
        self._thread.join()

    # ── in the thread ──

    def _run(self) -> None:
        while self._serve_next():
            pass

    def _serve_next(self) -> bool:
        """Take everything that waits, or the next thing to come. Gives False after the last."""
        # Whatever came while the last group was committed is the next group; nothing waits for company.
        taken = [self._queue.get()]
        taken.extend(self._queue.get() for _ in range(self._queue.qsize()))
        self._serve([item for item in taken if item is not None])
        return None not in taken

    def _serve(self, items: list[Write | _Reported]) -> None:
        writes = self._admit(items)
        broke = self._store([write for write in writes if write.failure is None])
        self._broken |= broke
        if writes:
            self._count(writes)
            self._deliver(writes, broke)

    def _admit(self, items: list[Write | _Reported]) -> list[Write]:
        """The writes among ``items``; those that must not be stored have failed."""
        writes: list[Write] = []
        for item in items:
            if isinstance(item, _Reported):
                self._broken.discard(item.agent)
                continue
            writes.append(item)
            if item.epoch != self._epoch:
                what = f"A write for {item.agent!r} under epoch {item.epoch} was refused: the store is at {self._epoch}"
                _fail(item, Fenced(what))
            elif item.agent in self._broken:
                _fail(item, _follows_a_failure(item))
        return writes

    def _store(self, writes: list[Write]) -> set[str]:
        """Commit ``writes`` together. Gives the agents of which one failed."""
        broke: set[str] = set()
        if not writes:
            return broke
        try:
            self._cursor.execute("begin immediate")
            for write in writes:
                self._isolate(write, broke)
            self._cursor.execute("commit")
        except Exception as error:  # the thread goes on whatever happens: without it nothing is ever stored again
            self._abandon(writes, error)
            broke.update(write.agent for write in writes)
        return broke

    def _isolate(self, write: Write, broke: set[str]) -> None:
        """Apply a write so that its failure is its own."""
        if write.agent in broke:
            _fail(write, _follows_a_failure(write))
            return
        cursor = self._cursor
        cursor.execute("savepoint one")
        try:
            self._apply(cursor, write)
        except Exception as error:  # whatever is wrong with one write must not reach its neighbours
            if not self._connection.in_transaction:
                raise  # SQLite gave up the whole transaction, as it may when the disk is full
            cursor.execute("rollback to one")
            self._numbers.forget()
            broke.add(write.agent)
            _fail(write, explain(error, self._path, f"A write for {write.agent!r} was not stored"))
        cursor.execute("release one")

    def _apply(self, cursor: sqlite3.Cursor, write: Write) -> None:
        if not write.operations:
            return
        agent = self._numbers.resolve(cursor, write.agent)
        for operation in write.operations:
            apply = APPLIES.get(type(operation))
            if apply is None:
                raise StorageError(f"this store knows no operation {type(operation).__name__}")
            apply(cursor, agent, operation)
            if isinstance(operation, ForgetFamily):
                self._numbers.forget()

    def _abandon(self, writes: list[Write], error: Exception) -> None:
        """Nothing of the group was stored: fail every write of it that has not failed on its own."""
        if self._connection.in_transaction:
            self._cursor.execute("rollback")
        self._numbers.forget()
        for write in writes:
            if write.failure is None:
                write.failure = explain(error, self._path, f"A write for {write.agent!r} was not stored")
        _log.error("%s", explain(error, self._path, f"A group of {len(writes)} writes was not stored"))

    def _count(self, writes: list[Write]) -> None:
        failed = sum(write.failure is not None for write in writes)
        self._failed += failed
        self._writes += len(writes) - failed
        self._commits += failed < len(writes)
        self._numbers.trim()

    def _deliver(self, writes: list[Write], broke: set[str]) -> None:
        try:
            self._loop.call_soon_threadsafe(self._resolve, writes, broke)
        except RuntimeError:  # the loop is closed: nobody waits, and nobody is left to hear of a failure
            self._broken -= broke

    # ── back in the event loop ──

    def _resolve(self, writes: list[Write], broke: set[str]) -> None:
        for write in writes:
            if write.commit.done():  # cancelled; the write itself is not taken back
                continue
            if write.failure is None:
                write.commit.set_result(None)
            else:
                write.commit.set_exception(write.failure)
        for agent in broke:
            self._queue.put(_Reported(agent))


def _fail(write: Write, failure: StorageError) -> None:
    write.failure = failure
    _log.error("%s", failure, extra={"agent": write.agent})


def _follows_a_failure(write: Write) -> StorageError:
    return StorageError(f"A write for {write.agent!r} was not stored, as an earlier one of this agent failed")
