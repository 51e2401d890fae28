"""A day in small: many conversations with people who come, ask, stop, reload, clear, rest and come back.

``python -m benchmarks.soak [--agents 200] [--minutes 30]`` runs ``perdure serve benchmarks.fixture:app`` and visits it.
With ``--in-process`` the server runs in this process, so that its tasks can be counted. Ends with an error when a
conversation is not as it was said, memory grows, a task is left behind, or the server complains in its log.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import os
import random
import re
import socket
import statistics
import sys
import tempfile
import time
from collections.abc import AsyncGenerator
from pathlib import Path

import httpx2
import uvicorn

from benchmarks.fixture import app
from benchmarks.visitor import Counts, Inconsistent, Visitor

ROOT = Path(__file__).parents[1]
COMPLAINT = re.compile(r"Traceback|ERROR|Left behind|was never retrieved")
GROWTH, GROWTH_IN_A_SHORT_RUN = 0.05, 0.1
"""How much more memory than in the second quarter of the time may be used in the last; short is less than ten minutes,
in which not everybody has had a long conversation by the second quarter."""


class Server:
    """The server while it runs."""

    def __init__(self, url: str, pid: int) -> None:
        self.url = url
        self.pid = pid
        self.complaints: list[str] = []

    def rss(self) -> float:
        """Resident memory in MiB."""
        pages = int(Path(f"/proc/{self.pid}/statm").read_text(encoding="ascii").split()[1])
        return pages * os.sysconf("SC_PAGE_SIZE") / 2**20


@contextlib.asynccontextmanager
async def in_a_process(data: str) -> AsyncGenerator[Server]:
    """``perdure serve`` as a process of its own."""
    command = ["-m", "perdure", "serve", "benchmarks.fixture:app", "--port", "0", "--data", data]
    process = await asyncio.create_subprocess_exec(
        sys.executable, *command, cwd=ROOT, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.STDOUT
    )
    assert process.stdout is not None
    output = process.stdout
    while not (found := re.search(rb"http://\S+:\d+", line := await output.readline())):
        assert line, "the server did not start"
    server = Server(found[0].decode(), process.pid)

    async def listen() -> None:
        async for line in output:
            if COMPLAINT.search(text := line.decode(errors="replace")):
                server.complaints.append(text.rstrip())

    listening = asyncio.create_task(listen())
    try:
        yield server
    finally:
        if process.returncode is None:
            process.terminate()
        else:
            server.complaints.append(f"the server ended by itself, with code {process.returncode}")
        await process.wait()
        await listening


@contextlib.asynccontextmanager
async def in_this_process(data: str) -> AsyncGenerator[Server]:
    """The same app in this event loop."""
    app.data = Path(data)
    config = uvicorn.Config(app, ws="websockets-sansio", ws_max_size=app.limits.frame, log_level="error", lifespan="on")
    listener = socket.create_server(("127.0.0.1", 0))
    uv = uvicorn.Server(config)
    running = asyncio.create_task(uv.serve(sockets=[listener]), name="the server")
    await asyncio.to_thread(_wait_for, uv)
    try:
        yield Server(f"http://127.0.0.1:{listener.getsockname()[1]}", os.getpid())
    finally:
        uv.should_exit = True
        await running


def _wait_for(uv: uvicorn.Server) -> None:
    while not uv.started:
        time.sleep(0.05)


def on_disk(folder: str) -> float:
    """MiB."""
    return sum(file.stat().st_size for file in Path(folder).iterdir()) / 2**20


async def watch(server: Server, every: float, samples: list[float]) -> None:
    """Write down how much memory is used."""
    started = time.monotonic()
    while True:
        samples.append(server.rss())
        print(f"{time.monotonic() - started:7.0f} s  {samples[-1]:7.1f} MiB", flush=True)
        await asyncio.sleep(every)


def tasks() -> set[asyncio.Task[object]]:
    return asyncio.all_tasks() - {asyncio.current_task()}  # type: ignore[arg-type]


async def visit(server: Server, options: argparse.Namespace, counts: Counts, samples: list[float]) -> list[str]:
    """Let everybody visit, then look whether all is as it was said. Gives what is wrong."""
    wrong: list[str] = []
    rng, end = random.Random(options.seed), time.monotonic() + options.minutes * 60
    visitors = [
        Visitor(server.url, f"soak-{number}", random.Random(rng.random()), counts, options.pause, options.rest)
        for number in range(options.agents)
    ]

    async def one(visitor: Visitor, client: httpx2.AsyncClient) -> None:
        try:
            await visitor.run(lambda: time.monotonic() >= end)
            await visitor.check(client)
        except Inconsistent as error:
            wrong.append(str(error))
        finally:
            await visitor.leave()

    watching = asyncio.create_task(watch(server, options.minutes * 60 / 40, samples))
    async with httpx2.AsyncClient(timeout=60) as client:
        outcomes = await asyncio.gather(*(one(visitor, client) for visitor in visitors), return_exceptions=True)
    watching.cancel()
    await asyncio.wait([watching])
    return wrong + [repr(outcome) for outcome in outcomes if outcome is not None]


def growth(samples: list[float]) -> float:
    """How much more is used in the last quarter than in the second: by then everybody has come."""
    quarter = max(len(samples) // 4, 1)
    before, after = samples[quarter : 2 * quarter], samples[-quarter:]
    return statistics.mean(after) / statistics.mean(before) - 1


async def soak(options: argparse.Namespace) -> list[str]:
    """Run it. Gives what is wrong."""
    counts, samples = Counts(), list[float]()
    serve = in_this_process if options.in_process else in_a_process
    with tempfile.TemporaryDirectory(prefix="soak-") as data:
        async with serve(data) as server:
            before = tasks()
            wrong = await visit(server, options, counts, samples)
            await asyncio.sleep(2)
            left = tasks() - before
            size = on_disk(data)
        wrong += server.complaints
    if options.in_process:
        print(f"tasks left behind: {len(left)}")
        wrong += [f"left behind: {task.get_name()} {task.get_coro()}" for task in left]
    print(f"{options.agents} agents, {options.minutes:g} minutes: {counts}; {size:.1f} MiB on disk")
    print(f"memory in the last quarter of the time against the second: {growth(samples):+.1%}")
    if growth(samples) > (GROWTH if options.minutes >= 10 else GROWTH_IN_A_SHORT_RUN):
        wrong.append(f"memory grows by {growth(samples):.1%}")
    return wrong


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--agents", type=int, default=200)
    parser.add_argument("--minutes", type=float, default=30)
    parser.add_argument("--pause", type=float, default=6, help="mean seconds between two doings of a visitor")
    parser.add_argument("--rest", type=float, default=120, help="mean seconds of a rest; an agent is idle after 60")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--in-process", action="store_true", help="count the server's tasks, too")
    wrong = asyncio.run(soak(parser.parse_args()))
    print("\n".join(wrong[:50]) or "all conversations are as they were said")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
