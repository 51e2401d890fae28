"""What time it is. Tests give the host a clock of their own."""

from __future__ import annotations

import asyncio
import time
from typing import Protocol

__all__ = ["Clock", "SystemClock"]


class Clock(Protocol):
    """Time, and waiting for it."""

    def now_ms(self) -> int:
        """Unix time in milliseconds. May jump when the machine's clock is set."""
        ...

    def monotonic(self) -> float:
        """Seconds since some moment. Never jumps."""
        ...

    async def sleep(self, seconds: float) -> None:
        """Return after a while."""
        ...


class SystemClock:
    """The machine's clock."""

    def now_ms(self) -> int:
        return time.time_ns() // 1_000_000

    def monotonic(self) -> float:
        return time.monotonic()

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(seconds)
