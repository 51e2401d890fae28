"""What the servers of tests run on: the real thing, or doubles of store and bus that make life harder."""

from __future__ import annotations

import os

from perdure.host.engine import Engine
from perdure.storage.sqlite import SqliteStore
from perdure.testing.buses import SerialisingBus
from perdure.testing.stores import TryingStore

__all__ = ["Doubles", "default_engine"]


class Doubles:
    """An engine whose store delays, fails and fences, and whose bus serialises."""

    def __init__(self, seed: int | None = 1, *, longest_ms: float = 3) -> None:
        """Doubles for one server.

        Args:
            seed: Of the store's delays; ``None`` for none.
            longest_ms: The longest of them.
        """
        self.bus = SerialisingBus()
        self.engine = Engine(
            make_bus=lambda: self.bus,
            open_store=TryingStore.opener(SqliteStore.open, self._opened, seed, longest_ms=longest_ms),
        )
        self._store: TryingStore | None = None

    @property
    def store(self) -> TryingStore:
        """The store, once the server has started."""
        assert self._store is not None
        return self._store

    def _opened(self, store: TryingStore) -> None:
        self._store = store


def default_engine() -> Engine:
    """What servers run on when a test does not say: with ``PERDURE_TEST_ENGINE=doubles`` in the environment the
    doubles, so that every test can be run over them."""
    return Doubles().engine if os.environ.get("PERDURE_TEST_ENGINE") == "doubles" else Engine()
