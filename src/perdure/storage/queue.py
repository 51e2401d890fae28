"""The contract of a store for the queues of agents: rows, operations and queries, as in ``contract``.

An item waits, or was begun and is not over. An agent with items has to be woken: ``AgentsWithTimers`` tells of it too.
"""

from __future__ import annotations

import msgspec

from perdure.storage.contract import Operation, Query

__all__ = ["DeleteQueued", "LoadQueue", "PutQueued", "QueuedRow"]


class QueuedRow(msgspec.Struct, frozen=True):
    """One item as stored."""

    id: str
    """Unique within the agent."""
    callback: str
    """Name of the agent's method."""
    payload: str
    """JSON text."""
    created_ms: int
    retry: str | None = None
    """JSON text: how a failing run is retried; ``None`` for the default."""
    begun: int = 0
    """How often it was begun; 0 while it waits."""


class PutQueued(Operation, frozen=True):
    """An item: at the end, or in place of the one of that id."""

    row: QueuedRow


class DeleteQueued(Operation, frozen=True):
    """Forget an item, if there is one."""

    id: str


class LoadQueue(Query[list[QueuedRow]], frozen=True):
    """The items of an agent, in their order."""

    agent: str
