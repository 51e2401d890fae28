"""The queue of turns: strictly one after the other, in the order in which they were admitted (reference: engine §2.1).

Decides from the queue alone, synchronously, so that nothing slips between looking and acting. Pure.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from typing import Literal

__all__ = ["Admission", "TurnQueue"]

Admission = Literal["run", "queue", "duplicate"]

REMEMBERED = 256
"""How many ids of finished turns are remembered, to recognise a request that is delivered twice."""


class TurnQueue:
    """Ids of the turns of one agent: at most one active, the others waiting."""

    def __init__(self, finished: Iterable[str] = ()) -> None:
        """An empty queue that knows these turns as finished."""
        self._active: str | None = None
        self._waiting: deque[str] = deque()
        self._finished: deque[str] = deque(finished, maxlen=REMEMBERED)

    @property
    def active(self) -> str | None:
        """The turn that runs now. After a clear it stays active until it has unwound."""
        return self._active

    @property
    def waiting(self) -> tuple[str, ...]:
        """The turns that wait, first in first."""
        return tuple(self._waiting)

    def knows(self, turn: str) -> bool:
        """Whether this id was admitted or refused before."""
        return turn == self._active or turn in self._waiting or turn in self._finished

    def refuse(self, turn: str) -> None:
        """A new turn is not to be. It is known from now on."""
        self._finished.append(turn)

    def admit(self, turn: str) -> Admission:
        """What to do with a new turn. ``run``: it is active now. ``duplicate``: its id is known."""
        if self.knows(turn):
            return "duplicate"
        if self._active is None:
            self._active = turn
            return "run"
        self._waiting.append(turn)
        return "queue"

    def finish(self, turn: str) -> str | None:
        """The active turn is over. Gives the next one, which is active now, or ``None``."""
        assert turn == self._active, f"{turn} is not the active turn"
        self._finished.append(turn)
        self._active = self._waiting.popleft() if self._waiting else None
        return self._active

    def withdraw(self, turn: str) -> bool:
        """Take a waiting turn out. False when it does not wait."""
        if turn not in self._waiting:
            return False
        self._waiting.remove(turn)
        self._finished.append(turn)
        return True

    def clear(self) -> tuple[str, ...]:
        """Take all waiting turns out, and say which they were."""
        dropped = tuple(self._waiting)
        self._waiting.clear()
        self._finished.extend(dropped)
        return dropped
