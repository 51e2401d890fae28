"""The tasks of a host or a server: none is forgotten, none fails in silence, all end with their owner."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Coroutine
from contextvars import Context
from typing import Any

__all__ = ["GRACE", "Tasks"]

logger = logging.getLogger(__name__)

GRACE = 3.0
"""Seconds that tasks have to end once they are cancelled."""


class Tasks:
    """A group of tasks in which one that fails does not take the others along."""

    def __init__(self) -> None:
        self._tasks: set[asyncio.Task[None]] = set()

    def spawn(self, work: Coroutine[Any, Any, None], name: str, context: Context | None = None) -> asyncio.Task[None]:
        """Run ``work``, in ``context`` if one is given. What it raises is logged."""
        task = asyncio.create_task(work, name=name, context=context)
        self._tasks.add(task)
        task.add_done_callback(self._done)
        return task

    def __len__(self) -> int:
        return len(self._tasks)

    async def close(self) -> None:
        """Cancel all tasks and wait for their end, but not for ever: code of users may refuse to be stopped."""
        loop = asyncio.get_running_loop()
        deadline = loop.time() + GRACE
        while self._tasks:
            tasks = list(self._tasks)
            for task in tasks:
                task.cancel()
            _, left = await asyncio.wait(tasks, timeout=max(0.0, deadline - loop.time()))
            if left:
                logger.warning("Left behind, as they do not end: %s", ", ".join(task.get_name() for task in left))
                return

    def _done(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            logger.error("The task %r failed", task.get_name(), exc_info=error)
