"""How long conversations are to open and to go on with, and what they take in memory. Prints a table.

Run it with ``python -m benchmarks.history [--folder FOLDER]``; the folder decides which disk is measured.
"""

from __future__ import annotations

import argparse
import asyncio
import base64
import gc
import json
import random
import tempfile
import time
import tracemalloc
from collections.abc import Callable, Iterable
from pathlib import Path

import uvloop

from perdure.protocol import server_frames as frames
from perdure.session.archive import Archive
from perdure.session.transcript import Transcript
from perdure.storage.contract import LoadAgent, Operation
from perdure.storage.sqlite import SqliteStore

GROUP = 500
"""Messages per write while filling."""

_chance = random.Random(1)


def short(number: int) -> str:
    """A message of about 300 bytes, every second one an answer."""
    role = "assistant" if number % 2 else "user"
    text = f"{number} " + "words and more words " * 11
    return json.dumps({"id": f"message-{number:06}", "role": role, "parts": [{"type": "text", "text": text}]})


def with_tools(number: int) -> str:
    """An answer with a tool result of 4 kB, after a short question."""
    if number % 2 == 0:
        return short(number)
    tool = {"type": "tool-read", "toolCallId": f"c{number}", "state": "output-available", "input": {"path": "a"}}
    part = {**tool, "output": "line of a file\n" * 270}
    return json.dumps({"id": f"message-{number:06}", "role": "assistant", "parts": [{"type": "step-start"}, part]})


def with_pictures(number: int) -> str:
    """Every tenth message has a picture of 200 kB."""
    if number % 10:
        return short(number)
    url = f"data:image/jpeg;base64,{base64.b64encode(_chance.randbytes(200_000)).decode()}"
    part = {"type": "file", "mediaType": "image/jpeg", "url": url}
    return json.dumps({"id": f"message-{number:06}", "role": "user", "parts": [part]})


async def fill(store: SqliteStore, agent: str, make: Callable[[int], str], length: int) -> None:
    """A conversation of ``length`` messages, as a transcript stores it."""
    transcript = Transcript(Archive(store, agent, lambda: asyncio.sleep(0)))
    for start in range(0, length, GROUP):
        operations: list[Operation] = []
        for number in range(start, min(length, start + GROUP)):
            text = make(number)
            role = json.loads(text)["role"]
            operations += transcript.append(f"message-{number:06}", role, text, transcript.leaf, 0)
        await store.write(agent, store.epoch, operations)
        transcript.shrink()


async def opened(store: SqliteStore, agent: str) -> Transcript:
    """Wake it up."""
    archive = Archive(store, agent, lambda: asyncio.sleep(0))
    return await Transcript.open(archive, await store.read(LoadAgent(agent)))


async def stall(store: SqliteStore, agent: str) -> tuple[float, float, float]:
    """Seconds that opening takes, of the clock and of the processor, and the longest time that the event loop stands
    still meanwhile."""
    longest = 0.0
    begun, cpu = time.perf_counter(), time.process_time()
    opening = asyncio.ensure_future(opened(store, agent))
    while not opening.done():
        turn = time.perf_counter()
        await asyncio.sleep(0)
        longest = max(longest, time.perf_counter() - turn)
    return time.perf_counter() - begun, time.process_time() - cpu, longest


def median(values: Iterable[float]) -> float:
    """The middle one."""
    ordered = sorted(values)
    return ordered[len(ordered) // 2]


async def conversation(store: SqliteStore, name: str, make: Callable[[int], str], length: int) -> str:
    """One row."""
    agent = f"chat/{name}"
    await fill(store, agent, make, length)
    times = [await stall(store, agent) for _ in range(5)]

    gc.collect()
    tracemalloc.start()
    transcript = await opened(store, agent)
    gc.collect()
    held, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()

    begun = time.thread_time()
    first = await transcript.history(transcript.leaf)
    first_history = time.thread_time() - begun
    turns: list[float] = []
    for number in range(50):
        begun = time.thread_time()
        operations = transcript.append(f"new-{number}", "user", short(number), transcript.leaf, 0)
        transcript.repair()
        await transcript.history(transcript.leaf)
        answer = {"id": f"answer-{number}", "role": "assistant", "parts": [{"type": "text", "text": "Well."}]}
        operations += transcript.answer(answer, transcript.leaf, 0)  # pyright: ignore[reportArgumentType]
        frames.transcript(transcript.texts())
        transcript.shrink()
        turns.append(time.thread_time() - begun)
        await store.write(agent, store.epoch, operations)
    sent = len(frames.transcript(transcript.texts()))
    # Of a busy machine the best of several is the least wrong.
    took, cpu, worst = (min(figures) * 1e3 for figures in zip(*times, strict=True))
    return (
        f"| {name} | {took:.0f} ms | {cpu:.0f} ms | {worst:.1f} ms "
        f"| {held / 2**20:.1f} MiB | {len(transcript.texts()):,} / {sent / 2**20:.1f} MiB | {len(first):,} "
        f"| {first_history * 1e3:.1f} ms | {median(turns) * 1e6:.0f} μs |"
    )


async def measure(folder: Path) -> None:
    """All figures."""
    store = await SqliteStore.open(folder)
    print(
        "| conversation | open | its CPU | longest stall of the loop | held | sent to a tab | shown to the model "
        "| first time, CPU | the transcript's work in a turn, CPU |\n|---|---|---|---|---|---|---|---|---|"
    )
    for name, make, length in (
        ("20 messages", short, 20),
        ("1,000 messages", short, 1_000),
        ("10,000 messages", short, 10_000),
        ("10,000, half with a result of 4 kB", with_tools, 10_000),
        ("50,000, half with a result of 4 kB", with_tools, 50_000),
        ("10,000, a tenth a picture of 200 kB", with_pictures, 10_000),
    ):
        print(await conversation(store, name, make, length), flush=True)
    await store.close()


def main() -> None:
    """Measure in a folder of its own, which is removed afterwards."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--folder", type=Path, help="where to put the data (default: the system's temporary folder)")
    with tempfile.TemporaryDirectory(prefix="perdure-benchmark-", dir=parser.parse_args().folder) as folder:
        uvloop.run(measure(Path(folder)))


if __name__ == "__main__":
    main()
