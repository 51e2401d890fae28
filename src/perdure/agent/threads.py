"""The way back into the event loop, for the application's synchronous code that runs in a worker thread."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TypeVar

import anyio.from_thread

__all__ = ["in_loop"]

T = TypeVar("T")


def in_loop(call: Callable[[], T]) -> T:
    """Call in the agent's event loop, also from a synchronous tool, which runs in a worker thread.

    Raises:
        RuntimeError: called in a thread of the application's own.
        Exception: what ``call`` raises.
    """
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return anyio.from_thread.run_sync(call)
    return call()
