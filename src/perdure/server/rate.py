"""How often something may happen: a bucket that tokens drip into. Pure; the clock is the caller's."""

from __future__ import annotations

__all__ = ["TokenBucket"]


class TokenBucket:
    """Lets ``rate`` things a second through for long, and ``burst`` at once."""

    __slots__ = ("_burst", "_rate", "_since", "_tokens")

    def __init__(self, rate: float, burst: int, now: float) -> None:
        """A full bucket. ``now`` is in seconds, as in :meth:`take`."""
        self._rate = rate
        self._burst = burst
        self._tokens = float(burst)
        self._since = now

    def take(self, now: float) -> bool:
        """Take a token; false when there is none."""
        self._tokens = min(self._burst, self._tokens + (now - self._since) * self._rate)
        self._since = now
        if self._tokens < 1:
            return False
        self._tokens -= 1
        return True
