"""``kill -9`` while writing: what was acknowledged is there, and nothing by half."""

import subprocess
import sys
from pathlib import Path

import pytest

from perdure.storage.contract import LoadPath, LoadValue
from perdure.storage.sqlite import SqliteStore

pytestmark = pytest.mark.anyio

WRITE = Path(__file__).parent / "processes" / "write.py"


def write_until_killed(folder: Path, after: int) -> dict[str, int]:
    """The last acknowledged position of every agent; the process is killed after that many acknowledgements."""
    process = subprocess.Popen([sys.executable, WRITE, folder], stdout=subprocess.PIPE, text=True, encoding="utf-8")
    with process:
        assert process.stdout is not None
        lines = [process.stdout.readline() for _ in range(after)]
        process.kill()
        lines += process.stdout.readlines()
    acknowledged: dict[str, int] = {}
    for line in lines:
        agent, pos = line.split()
        acknowledged[agent] = int(pos)
    return acknowledged


async def test_what_was_acknowledged_survives_kill_9_and_nothing_is_there_by_half(folder: Path) -> None:
    counts: dict[str, int] = {}
    for after in (1, 250, 43, 137, 8, 311):
        for agent, pos in write_until_killed(folder, after).items():
            assert pos >= counts.get(agent, 0), "the process went on where the one before it was killed"
            counts[agent] = pos + 1

        store = await SqliteStore.open(folder)
        for agent, acknowledged in counts.items():
            path = await store.read(LoadPath(agent))
            assert len(path) >= acknowledged
            assert [(row.pos, row.id, len(row.body)) for row in path] == [
                (pos, f"m{pos}", pos * 37 % 5000) for pos in range(len(path))
            ]
            assert await store.read(LoadValue(agent, "count", "messages")) == str(len(path))
        await store.close()
    assert sum(counts.values()) >= 750
