"""How much a client may send, and how far it may lag behind. Data only."""

from __future__ import annotations

from dataclasses import dataclass

from perdure.errors import ConfigurationError

__all__ = ["Limits"]

MIB = 1024 * 1024


@dataclass(frozen=True, kw_only=True, slots=True)
class Limits:
    """Sizes in bytes."""

    window: int = 4 * MIB
    """Most of a conversation that is sent to a client at once."""
    upload: int = 16 * MIB
    """Most that a client may add to it in one message, files included."""
    frame: int = 24 * MIB
    """Largest frame that a client may send. The page posts its whole conversation, so no chat must outgrow it: at least
    twice the window plus the upload."""
    backlog: int = 16 * MIB
    """Most that waits for a connection that reads slowly; past it the connection is closed and comes back by itself."""

    def __post_init__(self) -> None:
        needed = 2 * self.window + self.upload
        if self.frame < needed:
            raise ConfigurationError(
                f"Limits(frame={self.frame}) is too small: a client posts its whole conversation in one frame, so it "
                f"must be at least 2 * window + upload = {needed} bytes."
            )
