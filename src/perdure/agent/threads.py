"""The way back into the event loop, for the application's synchronous code that runs in a worker thread."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TypeVar

import anyio.from_thread

from perdure.errors import ConfigurationError

__all__ = ["in_loop"]

T = TypeVar("T")


def in_loop(call: Callable[[], T]) -> T:
    """Call in the agent's event loop, also from a synchronous tool, which runs in a worker thread.

    Raises:
        ConfigurationError: called in a thread of the application's own.
        Exception: what ``call`` raises.
    """
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return _from_worker(call)
    return call()


def _from_worker(call: Callable[[], T]) -> T:
    begun: list[bool] = []

    def run() -> T:
        begun.append(True)
        return call()

    try:
        return anyio.from_thread.run_sync(run)
    except RuntimeError as error:
        if begun:
            raise
        raise ConfigurationError(
            "Agents and connections belong to the server's event loop, and this thread has no way into it. Synchronous "
            "tools do; from a thread of your own, use loop.call_soon_threadsafe() with the loop of an async method."
        ) from error
