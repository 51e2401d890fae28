"""Points at which a process is to die: before or after a write of a certain kind has become durable.

The file ``die`` in the data folder says which: ``after tool started``. Without it nothing happens.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import msgspec

from perdure.storage.contract import AppendChunks, Commit, OpenTurn, Operation
from perdure.storage.interactions import InteractionRow, PutInteraction
from perdure.storage.sqlite import SqliteStore

__all__ = ["POINTS", "DyingStore", "dies", "lives"]

_FILE = "die"


def dies(folder: Path, when: str, point: str) -> None:
    """A process that starts on this folder from now on dies ``before`` or ``after`` this point."""
    (folder / _FILE).write_text(f"{when} {point}", encoding="utf-8")


def lives(folder: Path) -> None:
    """It does not."""
    (folder / _FILE).unlink()


def _a_row(wanted: Callable[[InteractionRow, dict[str, Any]], bool]) -> Callable[[Operation], bool]:
    def is_there(operation: Operation) -> bool:
        if not isinstance(operation, PutInteraction):
            return False
        return wanted(operation.row, msgspec.json.decode(operation.row.body))

    return is_there


POINTS: dict[str, Callable[[Operation], bool]] = {
    "call stored": _a_row(lambda row, body: row.state == "waiting"),
    "result stored": _a_row(lambda row, body: body.get("decision") == "answered"),
    "approval stored": _a_row(lambda row, body: row.state == "approved"),
    "continuation created": lambda operation: (
        isinstance(operation, OpenTurn) and operation.trigger == "auto-continuation"
    ),
    "tool started": _a_row(lambda row, body: row.state == "running"),
    "tool executed": _a_row(lambda row, body: row.state == "settled" and body.get("begun", False)),
    "first words stored": lambda operation: isinstance(operation, AppendChunks) and "half" in operation.bodies,
}
"""What is written at each point. Of several such writes the first one counts."""


class DyingStore(SqliteStore):
    """A store that ends its process at a point."""

    _dies: Callable[[Sequence[Operation]], str | None] = staticmethod(lambda operations: None)

    @classmethod
    async def opened(cls, folder: Path) -> DyingStore:
        """The store in this folder, and what its file says."""
        store = await cls.open(folder)
        if (folder / _FILE).exists():
            when, _, point = (folder / _FILE).read_text(encoding="utf-8").partition(" ")
            is_there = POINTS[point]
            store._dies = lambda operations: when if any(is_there(operation) for operation in operations) else None
        return store

    def write(self, agent: str, epoch: int, operations: Sequence[Operation]) -> Commit:
        when = self._dies(operations)
        if when == "before":
            _die()
        commit = super().write(agent, epoch, operations)
        if when == "after":
            # The first callback: nobody has learnt of it yet.
            commit.add_done_callback(lambda commit: _die())
        return commit


def _die() -> None:
    os.kill(os.getpid(), signal.SIGKILL)
