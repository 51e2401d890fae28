"""What idle agents and connections cost, and whether it comes back: ``python -m benchmarks.memory``.

Runs ``perdure serve benchmarks.memory:app`` and connects to a thousand agents, then again and again, each time to new
ones. Ends with an error when a target is missed (see README.md).
"""

from __future__ import annotations

import argparse
import asyncio
import itertools
import json
import os
import re
import resource
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

import httpx2
from websockets.asyncio.client import ClientConnection, connect

from benchmarks.fixture import BenchAgent
from perdure import App, Limits

ROOT = Path(__file__).parents[1]
KIB_IDLE, KIB_GROWTH, SECONDS_IMPORT = 30.0, 2.0, 0.3
"""The targets: an idle agent with one connection, each agent of a third round, ``import perdure``."""
ROUNDS = 3

app = App(BenchAgent, limits=Limits(connections=5000), idle_seconds=float(os.environ.get("BENCH_IDLE_SECONDS", "60")))


class Server:
    """A server in a process of its own."""

    def __init__(self, data: str, idle_seconds: float) -> None:
        command = [sys.executable, "-m", "perdure", "serve", "benchmarks.memory:app", "--port", "0", "--data", data]
        env = {**os.environ, "BENCH_IDLE_SECONDS": str(idle_seconds)}
        self._process = subprocess.Popen(command, cwd=ROOT, env=env, stdout=subprocess.PIPE, text=True)
        assert self._process.stdout is not None
        for line in self._process.stdout:
            if found := re.search(r"http://(\S+:\d+)", line):
                self.address = found[1]
                return
        raise RuntimeError("the server did not start")

    def kib(self) -> float:
        """Resident memory."""
        pages = int(Path(f"/proc/{self._process.pid}/statm").read_text(encoding="ascii").split()[1])
        return pages * os.sysconf("SC_PAGE_SIZE") / 1024

    async def connect(self, names: Sequence[str]) -> list[ClientConnection]:
        """One connection for each name, until it has been greeted."""
        return [await self._one(name) for name in names]

    async def _one(self, name: str) -> ClientConnection:
        url = f"ws://{self.address}/agents/bench-agent/{name}"
        socket = await connect(url, max_size=None, proxy=None, compression=None, ping_interval=None)
        while json.loads(await socket.recv())["type"] != "cf_agent_mcp_servers":
            pass
        return socket

    async def empty(self) -> None:
        """Returns once no agent is in memory."""
        async with httpx2.AsyncClient() as client:
            # Another process cannot set an event.
            while (await client.get(f"http://{self.address}/health")).json()["agents"]:  # noqa: ASYNC110
                await asyncio.sleep(0.2)

    def stop(self) -> None:
        self._process.terminate()
        self._process.wait()


async def close(sockets: Sequence[ClientConnection]) -> None:
    for socket in sockets:
        await socket.close()


async def idle(count: int) -> tuple[float, float]:
    """KiB of one more connection of an agent, and of one more agent with a connection."""
    with tempfile.TemporaryDirectory(prefix="memory-") as data:
        server = Server(data, idle_seconds=60)
        try:
            sockets = await server.connect(["room"] * 50)
            samples = [server.kib()]
            for names in (["room"] * count, [f"idle-{number}" for number in range(count)]):
                sockets += await server.connect(names)
                await asyncio.sleep(1)
                samples.append(server.kib())
            await close(sockets)
        finally:
            server.stop()
    return (samples[1] - samples[0]) / count, (samples[2] - samples[1]) / count


async def rounds(count: int) -> list[float]:
    """KiB by which each round of connecting to new agents and closing makes the process grow, for each agent."""
    with tempfile.TemporaryDirectory(prefix="memory-") as data:
        server = Server(data, idle_seconds=1)
        try:
            await close(await server.connect(["first"]))
            await server.empty()
            samples = [server.kib()]
            for number in range(ROUNDS):
                await close(await server.connect([f"round-{number}-{each}" for each in range(count)]))
                await server.empty()
                samples.append(server.kib())
        finally:
            server.stop()
    return [(after - before) / count for before, after in itertools.pairwise(samples)]


def import_seconds(times: int = 7) -> float:
    """Median seconds of processor time that ``import perdure`` takes in a fresh process: others on the machine do not
    count."""

    def run(code: str) -> float:
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        subprocess.run([sys.executable, "-c", code], check=True, cwd=ROOT)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        return after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime

    run("import perdure")  # compiles
    return statistics.median(run("import perdure") - run("pass") for _ in range(times))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--agents", type=int, default=1000)
    count: int = parser.parse_args().agents
    seconds = import_seconds()
    connection, agent = asyncio.run(idle(count))
    grown = asyncio.run(rounds(count))
    print(f"import perdure: {seconds:.2f} s of processor time (target {SECONDS_IMPORT})")
    print(f"one more connection of an agent: {connection:.1f} KiB")
    print(f"one more agent with a connection: {agent:.1f} KiB (target {KIB_IDLE})")
    each = ", ".join(f"{kib:.1f}" for kib in grown)
    print(f"growth by rounds of {count} new agents: {each} KiB each (target of the last {KIB_GROWTH})")
    return int(seconds > SECONDS_IMPORT or agent > KIB_IDLE or grown[-1] > KIB_GROWTH)


if __name__ == "__main__":
    sys.exit(main())
