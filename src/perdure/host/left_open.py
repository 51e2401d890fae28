"""After a start: wakes the agents whose turns the last process left open, a few at a time.

What becomes of those turns is the agents' business.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable

import anyio

from perdure.errors import StorageError
from perdure.storage.contract import OpenAgents, Store

__all__ = ["AT_ONCE", "take_up"]

logger = logging.getLogger(__name__)

AT_ONCE = 4
"""How many are woken at the same time: the others leave the loop to those who are connected."""


async def take_up(store: Store, wake: Callable[[str], Awaitable[None]]) -> None:
    """Wake them all, in the order in which their turns were accepted. ``wake`` returns when the agent is in memory."""
    try:
        keys = await store.read(OpenAgents())
    except StorageError as error:
        logger.error(
            "Turns that were left open cannot be looked up; their agents go on when they are visited: %s", error
        )
        return
    if keys:
        logger.info("%d agents have turns that were left open", len(keys))
    left = iter(keys)

    async def work() -> None:
        for key in left:
            await wake(key)

    async with anyio.create_task_group() as group:
        for _ in range(AT_ONCE):
            group.start_soon(work)
