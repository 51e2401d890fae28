"""Takes in the fixtures of tests that talk to a server, and a server on a store that can be made to fail."""

from __future__ import annotations

import importlib
from collections.abc import Callable

import pytest

from perdure.host.engine import Engine
from tests.support.fixtures import log, serve
from tests.support.stores import TroubledStore

__all__ = ["log", "serve"]


@pytest.fixture
def stores(monkeypatch: pytest.MonkeyPatch) -> Callable[[], TroubledStore]:
    """The store that was opened last; servers started from now on use such stores."""
    serving = importlib.import_module("tests.support.serving")
    monkeypatch.setattr(serving, "default_engine", lambda: Engine(open_store=TroubledStore.open))
    monkeypatch.setattr(TroubledStore, "opened", [])
    return lambda: TroubledStore.opened[-1]
