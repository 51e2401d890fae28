"""How an application turns a request away. Data only."""

from __future__ import annotations

from dataclasses import dataclass

from perdure.errors import ConfigurationError

__all__ = ["Refuse"]


@dataclass(frozen=True, slots=True)
class Refuse:
    """A hook's no: ``Refuse(401, "Sign in first")``.

    An HTTP request is answered with the status and the reason. A WebSocket is accepted and closed with 4000 plus the
    status, which the published clients show and do not retry; for a status of 500 or more they do.

    Raises:
        ConfigurationError: ``status`` is none of those below.
    """

    status: int
    """An HTTP status from 400 to 599, or a WebSocket close code: 1008, or 4000 to 4999."""
    reason: str = ""
    """For people: shown to whoever is refused. What does not fit into a close frame is cut."""

    def __post_init__(self) -> None:
        if not (400 <= self.status <= 599 or self.status == 1008 or 4000 <= self.status <= 4999):
            raise ConfigurationError(
                f"Refuse({self.status}): give an HTTP status from 400 to 599, or a close code: 1008, or 4000 to 4999."
            )
