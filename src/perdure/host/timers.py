"""The timers of one agent, which end with it. Knows only the event loop."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

__all__ = ["Timers"]


class Timers:
    """Calls that are due later."""

    def __init__(self) -> None:
        self._waiting: set[_Timer] = set()

    def __len__(self) -> int:
        return len(self._waiting)

    def later(self, seconds: float, call: Callable[[], None]) -> _Timer:
        """Call back after a while, unless the timer or all of them are cancelled before."""
        return _Timer(self._waiting, seconds, call)

    def close(self) -> None:
        """Make none of the calls."""
        for timer in list(self._waiting):
            timer.cancel()


class _Timer:
    def __init__(self, waiting: set[_Timer], seconds: float, call: Callable[[], None]) -> None:
        self._waiting = waiting
        self._call = call
        self._handle = asyncio.get_running_loop().call_later(seconds, self._due)
        waiting.add(self)

    def cancel(self) -> None:
        """Do not make the call."""
        self._handle.cancel()
        self._waiting.discard(self)

    def _due(self) -> None:
        self._waiting.discard(self)
        self._call()
