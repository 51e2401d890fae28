"""How much a client may send and hold, and how far it may lag behind. Data only."""

from __future__ import annotations

from dataclasses import dataclass

from perdure.errors import ConfigurationError

__all__ = ["Limits"]

MIB = 1024 * 1024


@dataclass(frozen=True, kw_only=True, slots=True)
class Limits:
    """Bounds on what clients may take. Sizes are in bytes.

    Raises:
        ConfigurationError: a limit is too small to work with.
    """

    window: int = 4 * MIB
    """Most of a conversation that is sent to a client at once."""
    upload: int = 8 * MIB
    """Most that a message takes in a frame which a client adds, files included; the request with a larger one is
    refused."""
    frame: int = 24 * MIB
    """Largest frame that a client may send; a larger one closes its connection (1009). The page posts its whole
    conversation, so no chat must outgrow it: at least twice the window, for what is quoted in it, and two uploads: the
    newest question is shown however large it is, and the next one may be as large."""
    backlog: int = 16 * MIB
    """Most that waits for a connection that reads slowly; past it the connection is closed (1013) and comes back by
    itself."""
    body: int = 16 * MIB
    """Largest body of an HTTP request that an agent's ``on_request`` may be sent; a larger one is refused (413)."""
    connections: int = 1000
    """Most connections of one agent; one more is turned away (1013) and tries again by itself."""
    rate: float = 1000.0
    """Frames per second that a connection may send for long; past it and :attr:`burst` it is closed for good (1008)."""
    burst: int = 2000
    """Frames that it may send at once, as a page does that was offline for a while."""
    patience: float = 5.0
    """Seconds that a connection has to take what was sent before it was closed; then it is cut."""

    def __post_init__(self) -> None:
        needed = 2 * self.window + 2 * self.upload
        if self.frame < needed:
            raise ConfigurationError(
                f"Limits(frame={self.frame}) is too small: a client posts its whole conversation in one frame, so it "
                f"must be at least 2 * window + 2 * upload = {needed} bytes."
            )
        for name in ("window", "upload", "backlog", "body", "connections", "rate", "burst", "patience"):
            if getattr(self, name) <= 0:
                raise ConfigurationError(f"Limits({name}={getattr(self, name)}) must be more than 0.")
