"""How fast the embedded store is: durable appends by number of agents, and reads. Prints a table.

Run it with ``python benchmarks/storage.py [--folder FOLDER]``; the folder decides which disk is measured.
"""

from __future__ import annotations

import argparse
import asyncio
import tempfile
import time
from collections.abc import Awaitable, Callable
from pathlib import Path

import uvloop

from perdure.storage.contract import (
    AppendChunks,
    AppendMessage,
    LoadAgent,
    LoadChunks,
    LoadPath,
    LoadValue,
    OpenTurn,
    PutValue,
)
from perdure.storage.sqlite import SqliteStore

BODY = '{"id":"m","role":"user","parts":[{"type":"text","text":"' + "x" * 240 + '"}]}'
GROUP = 500
"""Messages per write while filling."""


def message(pos: int) -> AppendMessage:
    """The message at ``pos`` of a conversation without branches."""
    return AppendMessage(pos, f"message-{pos:012}", pos - 1 if pos else None, "user", BODY, 1_700_000_000_000)


def quantile(values: list[float], share: float) -> float:
    """The value below which ``share`` of ``values`` lie."""
    return sorted(values)[min(len(values) - 1, int(len(values) * share))]


async def appends(store: SqliteStore, agents: int, each: int) -> str:
    """One message per write, one write at a time per agent."""
    latencies: list[float] = []

    async def run(agent: str) -> None:
        for pos in range(each):
            begun = time.perf_counter()
            await store.write(agent, store.epoch, [message(pos)])
            latencies.append(time.perf_counter() - begun)

    before, wall, cpu = store.statistics, time.perf_counter(), time.process_time()
    await asyncio.gather(*[run(f"chat/appends-{agents}-{number}") for number in range(agents)])
    wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
    count, commits = agents * each, store.statistics.commits - before.commits
    return (
        f"| append, {agents:>4} agents | {count / wall:>9,.0f}/s | {quantile(latencies, 0.5) * 1e3:.2f} / "
        f"{quantile(latencies, 0.99) * 1e3:.2f} ms | {cpu / count * 1e6:.0f} μs | {count / commits:.1f} |"
    )


async def fill(store: SqliteStore, agent: str, length: int) -> None:
    """A conversation of ``length`` messages."""
    for start in range(0, length, GROUP):
        await store.write(agent, store.epoch, [message(pos) for pos in range(start, min(length, start + GROUP))])


async def reads(name: str, ask: Callable[[int], Awaitable[object]], times: int) -> str:
    """One read after the other."""
    latencies: list[float] = []
    for number in range(times):
        begun = time.perf_counter()
        await ask(number)
        latencies.append(time.perf_counter() - begun)
    return f"| {name} | {quantile(latencies, 0.5) * 1e6:,.0f} / {quantile(latencies, 0.99) * 1e6:,.0f} μs |"


async def hand_over(store: SqliteStore, times: int) -> str:
    """What ``write()`` costs the event loop's thread."""
    operations = [PutValue("state", "value", "{}")]
    begun = time.perf_counter()
    commits = [store.write("chat/hand-over", store.epoch, operations) for _ in range(times)]
    spent = time.perf_counter() - begun
    await asyncio.gather(*commits)
    return f"| write(), hand-over | {spent / times * 1e6:.1f} μs |"


async def longest_stall(store: SqliteStore, agent: str) -> str:
    """How long the event loop stands still while a long conversation is loaded."""
    stalls: list[float] = []
    loading = asyncio.ensure_future(store.read(LoadPath(agent)))
    while not loading.done():
        begun = time.perf_counter()
        await asyncio.sleep(0)
        stalls.append(time.perf_counter() - begun)
    return f"| longest stall of the loop meanwhile | {max(stalls) * 1e6:,.0f} μs |"


async def measure(folder: Path) -> None:
    """All figures."""
    store = await SqliteStore.open(folder)
    print("| case | throughput | p50 / p99 | CPU per append | writes per commit |\n|---|---|---|---|---|")
    for agents, each in ((1, 1000), (20, 500), (200, 100), (1000, 20)):
        print(await appends(store, agents, each))

    for length in (20, 1000, 10_000):
        await fill(store, f"chat/long-{length}", length)
    agent = "chat/long-20"
    await store.write(agent, store.epoch, [OpenTurn("t", "running", "ws-chat", "{}", "m", 0), PutValue("s", "k", BODY)])
    await store.write(agent, store.epoch, [AppendChunks("t", index, BODY * 4) for index in range(10)])
    print("\n| read | p50 / p99 |\n|---|---|")
    print(await reads("LoadAgent", lambda n: store.read(LoadAgent(f"chat/appends-200-{n % 200}")), 2000))
    print(await reads("LoadAgent, a turn open", lambda _: store.read(LoadAgent(agent)), 2000))
    print(await reads("LoadValue", lambda _: store.read(LoadValue(agent, "s", "k")), 2000))
    print(await reads("LoadChunks, 10 segments", lambda _: store.read(LoadChunks(agent, "t")), 2000))
    print(await reads("LoadPath, 20 messages", lambda _: store.read(LoadPath(agent)), 1000))
    print(await reads("LoadPath, 20 of a random agent", lambda n: store.read(LoadPath(f"chat/appends-1000-{n}")), 1000))
    print(await reads("LoadPath, 1,000", lambda _: store.read(LoadPath("chat/long-1000")), 50))
    print(await reads("LoadPath, 10,000", lambda _: store.read(LoadPath("chat/long-10000")), 20))
    print(await longest_stall(store, "chat/long-10000"))
    print(await hand_over(store, 5000))
    await store.close()


def main() -> None:
    """Measure in a folder of its own, which is removed afterwards."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--folder", type=Path, help="where to put the data (default: the system's temporary folder)")
    with tempfile.TemporaryDirectory(prefix="perdure-benchmark-", dir=parser.parse_args().folder) as folder:
        uvloop.run(measure(Path(folder)))


if __name__ == "__main__":
    main()
