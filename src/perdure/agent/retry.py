"""Trying again: how often, and how long to wait in between (reference: engine §1.5)."""

from __future__ import annotations

import asyncio
import logging
import random
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import TypeVar

from perdure.agent.stopping import is_stopping
from perdure.errors import ConfigurationError

__all__ = ["RNG", "Retry", "retrying"]

logger = logging.getLogger(__name__)

T = TypeVar("T")

RNG = random.Random()
"""For the pauses. One for all agents: its state is larger than all else that an idle agent needs."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Retry:
    """How something that fails is tried again: with full jitter, so that what failed together does not come back
    together.

    Raises:
        ConfigurationError: ``max_attempts`` is less than 1, or the delays are not 0 < base <= max.
    """

    max_attempts: int = 3
    """How often it is tried, the first time included."""
    base_delay_ms: float = 100
    """After attempt ``n`` it waits between nothing and ``2**n`` times this …"""
    max_delay_ms: float = 3_000
    """… and never longer than this."""

    def __post_init__(self) -> None:
        if self.max_attempts < 1 or self.max_attempts != int(self.max_attempts):
            raise ConfigurationError(f"Retry(max_attempts={self.max_attempts!r}): it must be a whole number from 1 on.")
        if not 0 < self.base_delay_ms <= self.max_delay_ms:
            raise ConfigurationError(
                f"Retry(base_delay_ms={self.base_delay_ms!r}, max_delay_ms={self.max_delay_ms!r}): the first must be "
                "more than 0 and at most the second."
            )

    def delay(self, failures: int, rng: random.Random) -> float:
        """Seconds to wait after that many failures."""
        # No power beyond what the cap needs: a float ends at 2**1023.
        longest = min(2 ** min(failures, 64) * self.base_delay_ms, self.max_delay_ms)
        return rng.uniform(0, longest) / 1000


async def retrying(
    call: Callable[[], Awaitable[T]],
    retry: Retry,
    *,
    sleep: Callable[[float], Awaitable[None]],
    rng: random.Random,
    name: str,
    failed: Callable[[int], object] = lambda attempt: None,
    again: Callable[[Exception], bool] | None = None,
) -> T:
    """Call until it goes well, at most ``retry.max_attempts`` times. Gives what the call gives.

    Args:
        call: What to call.
        retry: How often, and with which pauses.
        sleep: Waits so many seconds.
        rng: For the length of the pauses.
        name: What is called, for the log.
        failed: Told the number of each attempt that failed and will be followed by another.
        again: Whether an error is worth another attempt. Default: all are.

    Raises:
        Exception: what the last attempt raised.
    """
    for attempt in range(1, retry.max_attempts):
        try:
            return await call()
        except (Exception, asyncio.CancelledError) as error:
            # The application's code: whatever it raises may be gone the next time.
            if isinstance(error, asyncio.CancelledError):
                if is_stopping():
                    raise
            elif again is not None and not again(error):
                raise
            logger.info("%s failed in attempt %d of %d: %r", name, attempt, retry.max_attempts, error)
        failed(attempt)
        await sleep(retry.delay(attempt, rng))
    return await call()
