"""Fixtures of the crash tests: processes on a folder that outlives them."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncGenerator, Callable, Coroutine
from pathlib import Path
from typing import Any

import msgspec
import pytest

from perdure.testing import RecordedRequest
from tests.crash.process import Process, process

__all__ = ["Start"]

Start = Callable[..., Coroutine[Any, Any, Process]]
"""Starts a server on the folder, with the app of these tests or the one that is named; with ``waits=False`` it may die
before it listens."""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """The data folder."""
    path = tmp_path / "data"
    path.mkdir()
    return path


@pytest.fixture
async def start(folder: Path) -> AsyncGenerator[Start]:
    """Starts a server on the folder. None may leave a traceback in its log that the test does not expect."""
    started: list[Process] = []
    async with contextlib.AsyncExitStack() as stack:

        async def begin(target: str = "tests.crash.app:app", *, waits: bool = True) -> Process:
            server = await stack.enter_async_context(process(folder, target))
            started.append(server)
            if waits:
                await server.started()
            return server

        yield begin
    for server in started:
        assert server.expects_traceback or "Traceback" not in server.log(), server.log()


@pytest.fixture
def asked(folder: Path) -> Callable[[], list[RecordedRequest]]:
    """What the model was asked so far, over all processes."""

    def read() -> list[RecordedRequest]:
        lines = (folder / "requests").read_bytes().splitlines()
        return [msgspec.json.decode(line, type=RecordedRequest) for line in lines]

    return read


@pytest.fixture
def ran(folder: Path) -> Callable[[], list[str]]:
    """The tools that ran so far, over all processes."""

    def read() -> list[str]:
        path = folder / "tools"
        return path.read_text(encoding="utf-8").split() if path.exists() else []

    return read
