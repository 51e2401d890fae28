"""Takes in the fixtures of tests that talk to a server, and a server on a store that can be made to fail."""

from __future__ import annotations

from collections.abc import Callable

import pytest

import perdure.server.app
from tests.support.fixtures import log, serve
from tests.support.stores import TroubledStore

__all__ = ["log", "serve"]


@pytest.fixture
def stores(monkeypatch: pytest.MonkeyPatch) -> Callable[[], TroubledStore]:
    """The store that was opened last; servers started from now on use such stores."""
    monkeypatch.setattr(perdure.server.app, "SqliteStore", TroubledStore)
    monkeypatch.setattr(TroubledStore, "opened", [])
    return lambda: TroubledStore.opened[-1]
