"""The queue of one agent: what it does one after the other, as soon as it can (reference: engine §1.5).

In memory for as long as the agent is, and in the store always. That an item has begun is stored before its method is
called, and the item goes when it is over: one that was cut off by the end of the process is found and begun again.
"""

from __future__ import annotations

import asyncio
import logging
import random
from collections.abc import Callable, Sequence
from contextvars import Context
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec.structs import replace

from perdure.agent.callbacks import Callback, callback_name
from perdure.agent.retry import RNG, Retry, retrying
from perdure.agent.services import Services
from perdure.agent.stopping import is_stopping
from perdure.agent.timers import INTERRUPTIONS
from perdure.errors import ConfigurationError
from perdure.observability import emit
from perdure.protocol import codec
from perdure.storage.contract import Commit
from perdure.storage.queue import DeleteQueued, PutQueued, QueuedRow

if TYPE_CHECKING:
    from perdure.agent.base import Agent

__all__ = ["Queue", "QueueItem"]

logger = logging.getLogger(__name__)


class QueueItem(msgspec.Struct, frozen=True, kw_only=True):
    """Something in an agent's queue."""

    id: str
    """Unique within the agent's queue."""
    callback: str
    """Name of the agent's method."""
    payload: Any
    """What the method is given: a JSON value, a copy."""
    created_ms: int
    """When it was queued: Unix time in milliseconds."""
    interrupted: bool = False
    """For the method that runs: whether it was begun before and cut off by the end of the server."""

    @property
    def created(self) -> datetime:
        """:attr:`created_ms` as a date, in UTC."""
        return datetime.fromtimestamp(self.created_ms / 1000, UTC)


class Queue:
    """Items in their order; the first one runs."""

    def __init__(self, agent: Agent, services: Services, rng: random.Random | None = None) -> None:
        """An empty queue.

        Args:
            agent: Whose methods are called.
            services: The host's side.
            rng: For the delays between attempts.
        """
        self._agent = agent
        self._services = services
        self._rng = rng or RNG
        self._rows: dict[str, QueuedRow] = {}
        self._running: QueuedRow | None = None
        self._starting = True

    def __len__(self) -> int:
        return len(self._rows)

    def load(self, rows: Sequence[QueuedRow]) -> None:
        """Take over what is stored."""
        self._rows.update((row.id, row) for row in rows)

    def started(self) -> None:
        """The agent has come into memory: from now on its queue runs."""
        self._starting = False
        self._go_on()

    # ── for the agent's own code ────────────────────────────────────

    def add(
        self, callback: str | Callable[..., Any], payload: Any, id: str | None, retry: Retry | None
    ) -> tuple[QueueItem, Commit]:
        """Put an item at the end, or in place of the one of that id. Gives it, and when it is stored.

        Raises:
            ConfigurationError: something of it cannot be used.
            TypeError: ``payload`` has no JSON form.
        """
        if id == "":
            raise ConfigurationError("The id of a queued item is a text that is not empty.")
        row = QueuedRow(
            id=id or self._services.new_id(),
            callback=callback_name(self._agent, callback, payload, "item"),
            payload=codec.encode_text(payload),
            created_ms=self._services.now_ms(),
            retry=None if retry is None else codec.encode_text(retry),
        )
        commit = self._services.write([PutQueued(row)])
        self._rows[row.id] = row
        emit("queue:create", id=row.id, callback=row.callback)
        self._go_on()
        return _shown(row), commit

    def remove(self, id: str) -> bool:
        """Forget an item; one that has begun is carried out all the same. False when there is none."""
        if self._rows.pop(id, None) is None:
            return False
        self._services.write([DeleteQueued(id)])
        return True

    def remove_all(self, callback: str | Callable[..., Any] | None) -> int:
        """Forget the items of a method, or all of them. Gives how many there were."""
        found = [item.id for item in self.find(callback)]
        for id in found:
            del self._rows[id]
        if found:
            self._services.write([DeleteQueued(id) for id in found])
        return len(found)

    def get(self, id: str) -> QueueItem | None:
        """One item."""
        row = self._rows.get(id)
        return None if row is None else _shown(row)

    def find(self, callback: str | Callable[..., Any] | None) -> list[QueueItem]:
        """The items of a method, or all of them, in their order."""
        name = callback if isinstance(callback, str) else getattr(callback, "__name__", None)
        return [_shown(row) for row in self._rows.values() if name is None or row.callback == name]

    # ── running ─────────────────────────────────────────────────────

    def _go_on(self) -> None:
        """Begin the first item, unless one runs."""
        while not self._starting and self._running is None and self._rows:
            row = next(iter(self._rows.values()))
            if row.begun <= INTERRUPTIONS:
                self._begin(row)
                return
            logger.error("%s was cut off %d times and is given up", self._name(row), row.begun)
            emit("queue:error", id=row.id, callback=row.callback, attempts=row.begun, error="cut off too often")
            self._forget(row)

    def _begin(self, row: QueuedRow) -> None:
        """Mark the item in the store, then call its method: as nobody's call, whoever has queued it."""
        self._running = self._rows[row.id] = replace(row, begun=row.begun + 1)
        marked = self._services.checkpoint([PutQueued(self._running)])
        self._services.spawn(self._run(row, marked), f"queued {row.callback}", Context())

    async def _run(self, row: QueuedRow, marked: Commit) -> None:
        await marked
        try:
            await self._call(row)
        except (Exception, asyncio.CancelledError) as error:
            if isinstance(error, asyncio.CancelledError) and is_stopping():
                raise
            # The application's code, or a method that a newer version of it has no more. The next item goes on.
            logger.exception("%s failed", self._name(row))
            emit("queue:error", id=row.id, callback=row.callback, attempts=_retry(row).max_attempts, error=repr(error))
        done, self._running = self._running, None
        if self._rows.get(row.id) is done:  # and not another one that has taken its place meanwhile
            self._forget(row)
        self._go_on()

    async def _call(self, row: QueuedRow) -> None:
        callback = Callback(self._agent, row.callback, "item")
        item = _shown(row, interrupted=row.begun > 0)

        def failed(attempt: int) -> None:
            emit("queue:retry", id=row.id, callback=row.callback, attempt=attempt, maxAttempts=_retry(row).max_attempts)

        await retrying(
            lambda: callback.call(item.payload, item),
            _retry(row),
            sleep=self._services.sleep,
            rng=self._rng,
            name=row.callback,
            failed=failed,
        )

    def _forget(self, row: QueuedRow) -> None:
        del self._rows[row.id]
        self._services.checkpoint([DeleteQueued(row.id)])

    def _name(self, row: QueuedRow) -> str:
        return f"The queued {type(self._agent).__name__}.{row.callback} ({row.id})"


def _shown(row: QueuedRow, *, interrupted: bool = False) -> QueueItem:
    payload = codec.decode(row.payload)
    return QueueItem(
        id=row.id, callback=row.callback, payload=payload, created_ms=row.created_ms, interrupted=interrupted
    )


def _retry(row: QueuedRow) -> Retry:
    return Retry() if row.retry is None else codec.decode_as(Retry, row.retry)
