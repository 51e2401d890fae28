"""The command in a process of its own."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import sys
from collections.abc import AsyncGenerator
from pathlib import Path

from tests.support.tabs import PATIENCE

__all__ = ["Command", "command"]

PROJECT = Path(__file__).parents[2]


class Command:
    """A running ``perdure …``, and what it has written so far."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self.process = process
        self.out: list[str] = []
        self.err: list[str] = []
        self._changed = asyncio.Event()
        assert process.stdout is not None
        assert process.stderr is not None
        self._readers = [
            asyncio.create_task(self._read(process.stdout, self.out)),
            asyncio.create_task(self._read(process.stderr, self.err)),
        ]

    async def _read(self, stream: asyncio.StreamReader, lines: list[str]) -> None:
        while line := await stream.readline():
            lines.append(line.decode().rstrip("\n"))
            self._changed.set()
        self._changed.set()

    async def says(self, text: str, *, times: int = 1) -> str:
        """Wait for a line with this text, or for so many of them; gives the last."""
        async with asyncio.timeout(PATIENCE):
            while len(found := [line for line in [*self.out, *self.err] if text in line]) < times:
                assert self.process.returncode is None or not all(reader.done() for reader in self._readers), self.err
                self._changed.clear()
                await self._changed.wait()
        return found[times - 1]

    async def port(self, *, times: int = 1) -> int:
        """Where it listens, once it does; with ``times``, for so-manieth time."""
        return int((await self.says("http://127.0.0.1:", times=times)).rpartition(":")[2])

    async def ended(self) -> int:
        """Its exit code, once it has ended and all it wrote was read."""
        async with asyncio.timeout(PATIENCE):
            code = await self.process.wait()
            await asyncio.gather(*self._readers)
        return code

    async def stop(self, sent: int = signal.SIGTERM) -> int:
        """Send a signal; gives the exit code."""
        self.process.send_signal(sent)
        return await self.ended()


@contextlib.asynccontextmanager
async def command(*arguments: str, cwd: Path = PROJECT, **env: str) -> AsyncGenerator[Command]:
    """A process that runs ``perdure`` with these arguments."""
    process = await asyncio.create_subprocess_exec(
        *[sys.executable, "-m", "perdure", *arguments],
        cwd=cwd,
        env={**os.environ, "PYTHONDONTWRITEBYTECODE": "1", **env},
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    running = Command(process)
    try:
        yield running
    finally:
        if process.returncode is None:
            process.kill()
        await running.ended()  # with what it started: that holds the other end of the pipes
