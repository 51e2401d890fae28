"""Which turns the running code is part of, and whose wait for whose: a call that would wait for itself is refused.

A chain of calls carries it along in a context variable, from an agent's turn through its tools into other agents.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Generator
from contextvars import ContextVar

from perdure.errors import NestedTurn

__all__ = ["Nesting"]

_inside: ContextVar[tuple[tuple[Nesting, str], ...]] = ContextVar("perdure_inside", default=())
"""The turns around the running code, outermost first. A task that outlives its turn still carries it."""


class Nesting:
    """The waiting of one agent's turns, of which one runs at a time."""

    def __init__(self, runs: Callable[[str], bool]) -> None:
        """``runs`` says whether a turn of this agent is the one that runs."""
        self._runs = runs
        self._awaited: list[Nesting] = []
        """Whose turns the one that runs is waiting for."""

    def enter(self, turn: str) -> None:
        """The running task is this turn from now on."""
        _inside.set((*_inside.get(), (self, turn)))

    def refuse(self, what: str) -> None:
        """For calls that wait for a turn of this agent.

        Raises:
            NestedTurn: the caller is part of a turn that this agent's next one has to wait for.
        """
        if any(self._depends_on(caller) for caller in _around()):
            raise NestedTurn(what)

    @contextlib.contextmanager
    def awaited(self) -> Generator[None]:
        """While the caller waits for a turn of this agent."""
        around = _around()
        if around:
            around[-1]._awaited.append(self)
        try:
            yield
        finally:
            if around:
                around[-1]._awaited.remove(self)

    def _depends_on(self, other: Nesting) -> bool:
        """Whether the turn that runs here is the other's, or waits for it."""
        return self is other or any(awaited._depends_on(other) for awaited in self._awaited)


def _around() -> list[Nesting]:
    return [nesting for nesting, turn in _inside.get() if nesting._runs(turn)]  # pyright: ignore[reportPrivateUsage]
