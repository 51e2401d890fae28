"""Fixtures of the tests that talk to a server: a log that must stay free of errors, and servers on a folder.

A ``conftest.py`` takes them in by importing them.
"""

from __future__ import annotations

import contextlib
import logging
from collections.abc import AsyncGenerator, Callable, Coroutine, Generator
from pathlib import Path
from typing import Any

import pytest

from perdure import Agent
from tests.support.serving import Serving, serving

__all__ = ["ErrorLog", "Serve", "log", "serve"]

Serve = Callable[..., Coroutine[Any, Any, Serving]]
"""Starts a server with agent classes; see :func:`tests.support.serving.serving` for its options."""


class ErrorLog(logging.Handler):
    """Collects errors. Each must be expected by the test."""

    def __init__(self) -> None:
        super().__init__(logging.ERROR)
        self.errors: list[str] = []
        self._formatter = logging.Formatter("%(levelname)s %(name)s: %(message)s")

    def emit(self, record: logging.LogRecord) -> None:
        self.errors.append(self._formatter.format(record))

    def expect(self, text: str) -> None:
        """There was an error with this text; it and those like it are fine."""
        found = [error for error in self.errors if text in error]
        assert found, f"no error with {text!r} was logged, only {self.errors}"
        self.errors = [error for error in self.errors if error not in found]


@pytest.fixture(autouse=True)
def log() -> Generator[ErrorLog]:
    """Fails the test when an error was logged that it did not expect."""
    handler = ErrorLog()
    logging.getLogger().addHandler(handler)
    yield handler
    logging.getLogger().removeHandler(handler)
    assert not handler.errors, "\n".join(["errors in the log:", *handler.errors])


@pytest.fixture
async def serve(tmp_path: Path, log: ErrorLog) -> AsyncGenerator[Serve]:
    """Starts servers that stop with the test."""
    async with contextlib.AsyncExitStack() as stack:

        async def start(*agents: type[Agent], data: Path = tmp_path, **options: Any) -> Serving:
            return await stack.enter_async_context(serving(*agents, data=data, **options))

        yield start
