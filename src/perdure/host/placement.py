"""Which agents this process may run. Here: the contract, and the placement of a single process: all of them."""

from __future__ import annotations

from typing import Protocol

__all__ = ["AlwaysMine", "Placement"]


class Placement(Protocol):
    """Says which agents are mine, and under which epoch I write."""

    def epoch_of(self, key: str) -> int | None:
        """The epoch under which this process owns the agent; ``None`` when another one does."""
        ...


class AlwaysMine:
    """The only process: every agent is here."""

    def __init__(self, epoch: int) -> None:
        self._epoch = epoch

    def epoch_of(self, key: str) -> int | None:
        return self._epoch
