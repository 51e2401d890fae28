"""Calls that are due later, for one owner: none outlives it, and it can tell whether any is left."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

__all__ = ["Calls", "LaterCall"]


class Calls:
    """The calls of one owner."""

    def __init__(self) -> None:
        self._calls: set[LaterCall] = set()

    def __len__(self) -> int:
        return len(self._calls)

    def later(self, seconds: float, call: Callable[[], None]) -> LaterCall:
        """Call back after a while."""
        pending = LaterCall(self._calls)
        pending.start(seconds, call)
        return pending

    def close(self) -> None:
        """Make none of them."""
        for call in list(self._calls):
            call.cancel()


class LaterCall:
    """One call that is due."""

    __slots__ = ("_handle", "_owner")

    def __init__(self, owner: set[LaterCall]) -> None:
        self._owner = owner
        self._handle: asyncio.TimerHandle | None = None

    def start(self, seconds: float, call: Callable[[], None]) -> None:
        """Begin to wait."""
        self._owner.add(self)
        self._handle = asyncio.get_running_loop().call_later(seconds, self._fire, call)

    def cancel(self) -> None:
        """Do not make the call."""
        self._owner.discard(self)
        if self._handle is not None:
            self._handle.cancel()

    def _fire(self, call: Callable[[], None]) -> None:
        self._owner.discard(self)
        call()
