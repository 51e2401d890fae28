"""What an app runs on: where agents are kept, how events and frames travel, which agents are its own, what time it is.

Internal: the default serves one machine. Tests put doubles in; running on several machines will be another engine.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from pathlib import Path

from perdure.host.bus import Bus, LocalBus
from perdure.host.clock import Clock, SystemClock
from perdure.host.placement import AlwaysMine, Placement
from perdure.storage.contract import Store
from perdure.storage.sqlite import SqliteStore

__all__ = ["Engine"]


def _always_mine(store: Store) -> Placement:
    return AlwaysMine(store.epoch)


@dataclass(kw_only=True)
class Engine:
    """The parts; the store and the bus are made anew each time the app starts."""

    open_store: Callable[[Path], Awaitable[Store]] = SqliteStore.open
    """Opens the store that is kept in the app's data folder."""
    make_bus: Callable[[], Bus] = LocalBus
    placement: Callable[[Store], Placement] = _always_mine
    """Says which agents are this app's, given its store."""
    clock: Clock = field(default_factory=SystemClock)
