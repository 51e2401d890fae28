"""What an agent needs from whoever keeps it alive. The host implements it; tests give their own.

Declarations only.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Sequence
from contextlib import AbstractContextManager
from contextvars import Context
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from perdure.protocol.names import Address
from perdure.storage.contract import Commit, Operation

if TYPE_CHECKING:
    from perdure.agent.base import Agent

__all__ = ["Family", "PeerId", "Services", "Timer"]

R = TypeVar("R")

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

    def held(self) -> AbstractContextManager[None]:
        """While this lasts the agent stays in memory, unless it is dropped."""
        ...

    def then(self, call: Callable[[], None]) -> None:
        """Call once everything that was sent before has left; never, when the agent is dropped before that."""
        ...

    @property
    def family(self) -> Family:
        """The way to the other agents of its family."""
        ...


class Family(Protocol):
    """The way from one agent to the others of its family. All of a family live in one process."""

    def kind_of(self, address: Address) -> type[Agent]:
        """The class of an agent.

        Raises:
            ConfigurationError: the app has no such class.
        """
        ...

    async def open(self, address: Address) -> None:
        """Bring a sub-agent into memory; from then on it exists. Returns when that is durable.

        Raises:
            AgentStopped: it could not be brought into memory, or was stopped meanwhile.
        """
        ...

    async def exists(self, address: Address) -> bool:
        """Whether there is such a sub-agent."""
        ...

    async def children(self, address: Address) -> Sequence[tuple[Address, int]]:
        """The sub-agents of an agent, in the order in which they were made, each with the Unix time in milliseconds.

        Those whose class the app does not have (any more) are left out.
        """
        ...

    async def stop(self, address: Address) -> None:
        """Stop a sub-agent and those below it, and drop them from memory. What is stored stays."""
        ...

    async def delete(self, address: Address) -> None:
        """Stop a sub-agent and those below it, and forget all that is stored of them. Returns when that is durable."""
        ...

    async def call(self, address: Address, what: str, work: Callable[[Agent], Coroutine[Any, Any, R]]) -> R:
        """Run ``work`` with the agent as one of that agent's tasks. Cancelling the wait cancels it.

        Args:
            address: Which agent. It is woken if need be; a sub-agent must exist.
            what: What is called, for errors.
            work: Does the call. What it raises comes back as it is.

        Raises:
            AgentStopped: there is no such sub-agent, or it was stopped before the end.
            NestedTurn: the agent is just starting, and waits for what calls it.
        """
        ...
