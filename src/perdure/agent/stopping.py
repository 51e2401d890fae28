"""Tells a cancellation that is meant for this task from one that the application's code came upon."""

from __future__ import annotations

import asyncio

__all__ = ["is_stopping"]


def is_stopping() -> bool:
    """Whether this task was cancelled. Code may also raise ``CancelledError`` for something of its own that was."""
    task = asyncio.current_task()
    return task is not None and task.cancelling() > 0
