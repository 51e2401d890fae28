"""How an application turns a request away. Data only."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["Refuse"]


@dataclass(frozen=True, slots=True)
class Refuse:
    """The request is not let in."""

    status: int
    """HTTP status, from 400 to 599. A WebSocket is accepted and closed with 4000 + status for 400 to 499, which clients
    take as final, else with 1011, after which they try again."""
    reason: str = ""
    """What an HTTP client is told. Do not say anything internal."""

    def __post_init__(self) -> None:
        if not 400 <= self.status <= 599:
            raise ValueError(f"Refuse({self.status}) is no refusal: the status must be from 400 to 599.")
