"""What an agent needs from whoever keeps it alive. The host implements it; tests give their own.

Declarations only.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Sequence
from contextvars import Context
from typing import Any, Protocol

from perdure.storage.contract import Commit, Operation

__all__ = ["PeerId", "Services", "Timer"]

PeerId = int
"""One connection, unique in the life of the server."""


class Timer(Protocol):
    """A call that is due later."""

    def cancel(self) -> None:
        """Do not make the call."""
        ...


class Services(Protocol):
    """Sending, storing, tasks, time and ids, for one agent."""

    def send(self, peers: Sequence[PeerId], frame: str) -> None:
        """Send a frame to these connections: after everything that was sent before, and after every write before it is
        durable."""
        ...

    def hang_up(self, peers: Sequence[PeerId], code: int, reason: str) -> None:
        """Close these connections, after everything that was sent before."""
        ...

    def write(self, operations: Sequence[Operation]) -> Commit:
        """Store a change of state. What is sent from now on waits until it is durable."""
        ...

    def checkpoint(self, operations: Sequence[Operation]) -> Commit:
        """Store progress. Nothing that is sent waits for it."""
        ...

    def spawn(self, work: Coroutine[Any, Any, None], name: str, context: Context | None = None) -> None:
        """Run ``work`` as a task of the agent, in ``context`` if one is given. It is cancelled when the agent is
        dropped."""
        ...

    def later(self, seconds: float, call: Callable[[], None]) -> Timer:
        """Call back after a while, unless the agent is dropped before."""
        ...

    def now_ms(self) -> int:
        """Unix time in milliseconds."""
        ...

    def new_id(self) -> str:
        """A fresh id: a UUID."""
        ...

    async def settled(self) -> None:
        """Wait until everything that was written so far is durable."""
        ...

    def alarm(self, due_ms: int | None) -> None:
        """Wake the agent for its timers at that time, also when it is not in memory then; ``None``: never. Replaces the
        time that was given before."""
        ...

    async def sleep(self, seconds: float) -> None:
        """Return after a while."""
        ...

    def then(self, call: Callable[[], None]) -> None:
        """Call once everything that was sent before has left; never, when the agent is dropped before that."""
        ...
