"""What becomes of a message that is sent while a turn runs or waits (reference: engine §5, protocol §10.1).

Decides at once with the admission, so that no burst slips through. Keeps which submits can still lose their turn, in
the order in which they were admitted. Pure: no clock, no I/O.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, cast

import msgspec

from perdure.errors import ConfigurationError

__all__ = ["Debounce", "Decision", "Strategy", "Submits", "strategy_of"]

_NAMES = ("queue", "latest", "merge", "drop")
_CHOICES = '"queue", "latest", "merge", "drop", Debounce(ms=750) or {"strategy": "debounce", "debounceMs": 750}'
_FIELDS = frozenset({"strategy", "debounceMs"})
_QUIET_MS = 750


@dataclass(frozen=True, slots=True)
class Debounce:
    """Only the last of the messages that come while a turn runs is answered, and not before it has been quiet for a
    while."""

    ms: float = _QUIET_MS
    """How long, in milliseconds. What is no finite number of at least 0 counts as 750."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "ms", _quiet_ms(self.ms))


Strategy = Literal["queue", "latest", "merge", "drop"] | Debounce


def strategy_of(value: Any, who: str) -> Strategy:
    """What a class says in ``message_concurrency``.

    Args:
        value: The name of a strategy, a :class:`Debounce`, or a mapping as in TypeScript:
            ``{"strategy": "debounce", "debounceMs": 750}``.
        who: The name of the class, for the error.

    Raises:
        ConfigurationError: it is none of these.
    """
    if isinstance(value, Debounce):
        return value
    if isinstance(value, str) and value in _NAMES:
        return cast("Strategy", value)
    if isinstance(value, Mapping):
        given = cast("Mapping[Any, Any]", value)
        if given.get("strategy") == "debounce" and given.keys() <= _FIELDS:
            return Debounce(given.get("debounceMs", _QUIET_MS))
    raise ConfigurationError(f"{who}.message_concurrency is {value!r:.60}; it must be {_CHOICES}.")


def _quiet_ms(value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return _QUIET_MS
    try:
        usable = math.isfinite(value) and value >= 0
    except OverflowError:  # an integer beyond every float
        return _QUIET_MS
    return value if usable else _QUIET_MS


class Decision(msgspec.Struct, frozen=True):
    """What becomes of a submit, and of those before it."""

    drops: bool = False
    """Whether it is not taken at all."""
    quiet_until: int | None = None
    """Unix time in milliseconds before which its turn does not begin."""
    supersedes: str | None = None
    """The submit that loses its turn to it."""
    leaves_out: bool = False
    """Whether models are not shown the messages of that one."""


class Submits:
    """The submits of one agent that came while a turn ran or waited, and have not begun.

    They are numbered: one that has a later one behind it is superseded, whatever becomes of that.
    """

    def __init__(self) -> None:
        self._numbers: dict[str, int] = {}
        self._latest = 0

    def decide(self, turn: str, strategy: Strategy, *, overlaps: bool, now_ms: int) -> Decision:
        """What becomes of a new submit.

        Args:
            turn: Its id.
            strategy: What the agent says now.
            overlaps: Whether any turn runs or waits since the last clear.
            now_ms: Unix time in milliseconds.
        """
        if not overlaps or strategy == "queue":
            return Decision()
        if strategy == "drop":
            return Decision(drops=True)
        superseded = next((other for other, number in self._numbers.items() if number == self._latest), None)
        self._latest += 1
        self._numbers[turn] = self._latest
        quiet_until = now_ms + math.ceil(strategy.ms) if isinstance(strategy, Debounce) else None
        return Decision(False, quiet_until, superseded, strategy != "merge")

    def is_superseded(self, turn: str) -> bool:
        """Whether this one has lost its turn."""
        return self._numbers.get(turn, self._latest) < self._latest

    def begin(self, turn: str) -> bool:
        """The turn is about to ask the model: from now on it cannot lose its turn. False when it has."""
        if self.is_superseded(turn):
            return False
        self._numbers.pop(turn, None)
        return True

    def end(self, turn: str) -> None:
        """The turn is over."""
        self._numbers.pop(turn, None)

    def clear(self) -> None:
        """The conversation was forgotten: nobody supersedes anybody."""
        self._numbers.clear()
