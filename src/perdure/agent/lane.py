"""Handles the events of a conversation one after the other, also when one has to read before it can be decided.

An event is handled at once and synchronously. Only while an earlier one reads do later ones wait, in order of arrival.
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Callable, Coroutine
from typing import Any

__all__ = ["Lane"]

logger = logging.getLogger(__name__)

Event = Callable[[], Coroutine[Any, Any, None] | None]
"""Handles what happened. When something must be read first it gives the rest of the handling."""


class Lane:
    """One event at a time."""

    def __init__(self, spawn: Callable[[Coroutine[Any, Any, None], str], None]) -> None:
        """An empty lane. ``spawn`` runs what has to wait as a task of the agent."""
        self._spawn = spawn
        self._waiting: deque[Event] = deque()
        self._reading = False

    def enter(self, event: Event) -> None:
        """Something happened."""
        if self._reading:
            self._waiting.append(event)
        elif (rest := event()) is not None:
            self._reading = True
            self._spawn(self._finish(rest), "read for a request")

    async def _finish(self, rest: Coroutine[Any, Any, None]) -> None:
        await self._isolated(rest)
        while self._waiting:
            try:
                following = self._waiting.popleft()()
            except Exception:
                logger.exception("An event of a conversation failed")
                continue
            if following is not None:
                await self._isolated(following)
        self._reading = False

    async def _isolated(self, rest: Coroutine[Any, Any, None]) -> None:
        """One event that goes wrong must not hold up those behind it."""
        try:
            await rest
        except Exception:
            logger.exception("An event of a conversation failed")
