"""A server in a process of its own, so that it can be killed."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import os
import signal
import sys
from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any

import httpx2

from tests.support.tabs import PATIENCE, Tab

__all__ = ["Process", "process"]

PROJECT = Path(__file__).parents[2]

_numbers = itertools.count(1)


class Process:
    """A running ``perdure serve``."""

    def __init__(self, running: asyncio.subprocess.Process, errors: Path) -> None:
        self.port = 0
        self.expects_traceback = False
        self._running = running
        self._errors = errors
        self._said: list[str] = []
        self._open = contextlib.AsyncExitStack()

    async def started(self) -> None:
        """Wait for the line that says where it listens."""
        self.port = int((await self.said("http://")).rpartition(":")[2])

    async def said(self, beginning: str, count: int = 1) -> str:
        """The line of its output that begins like this (with ``count``: the so-manieth), once it is there."""
        assert self._running.stdout is not None
        async with asyncio.timeout(PATIENCE):
            while True:
                found = [line for line in self._said if line.startswith(beginning)]
                if len(found) >= count:
                    return found[count - 1]
                line = (await self._running.stdout.readline()).decode()
                assert line, f"the server has ended and never said {beginning!r}: {self.log()}"
                self._said.append(line)

    async def tab(self, name: str = "room", agent: str = "agent") -> Tab:
        """Open a connection."""
        tab = await Tab.open(f"ws://127.0.0.1:{self.port}/agents/{agent}/{name}")
        self._open.push_async_callback(tab.close)
        return tab

    async def stored(self, name: str = "room", agent: str = "agent") -> list[dict[str, Any]]:
        """The conversation, once everything so far is durable: checkpoints of a running turn included."""
        async with httpx2.AsyncClient(timeout=PATIENCE) as client:
            response = await client.get(f"http://127.0.0.1:{self.port}/agents/{agent}/{name}/get-messages")
        assert response.status_code == 200, response.text
        return response.json()

    async def kill(self) -> None:
        """``kill -9``."""
        self._running.kill()
        await self.ended()

    async def terminate(self, sent: int = signal.SIGTERM) -> int:
        """Tell it to stop; gives the exit code."""
        self._running.send_signal(sent)
        return await self.ended()

    async def ended(self) -> int:
        """The exit code, once it has ended."""
        async with asyncio.timeout(PATIENCE):
            return await self._running.wait()

    def log(self) -> str:
        """What it wrote to stderr so far."""
        return self._errors.read_text(encoding="utf-8")

    async def close(self) -> None:
        if self._running.returncode is None:
            await self.kill()
        await self._open.aclose()


@contextlib.asynccontextmanager
async def process(folder: Path, target: str = "tests.crash.app:app", *options: str) -> AsyncGenerator[Process]:
    """A process that serves ``target`` from ``folder``. It may still be starting: see :meth:`Process.started`."""
    errors = folder.parent / f"server-{next(_numbers)}.log"
    with errors.open("wb") as log:
        running = await asyncio.create_subprocess_exec(
            *[sys.executable, "-m", "perdure", "serve", target, "--port", "0", "--data", str(folder), *options],
            cwd=PROJECT,
            env={**os.environ, "PERDURE_DATA": str(folder)},
            stdout=asyncio.subprocess.PIPE,
            stderr=log,
        )
    server = Process(running, errors)
    try:
        yield server
    finally:
        await server.close()
