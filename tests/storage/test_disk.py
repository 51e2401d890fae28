"""A disk that takes no more."""

import json
import sqlite3
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from perdure.storage.contract import LoadValue
from perdure.storage.sqlite import SqliteStore
from perdure.storage.sqlite.failures import explain

FILL = Path(__file__).parent / "processes" / "fill.py"


def run_out_of_space(folder: Path) -> tuple[dict[str, Any], str]:
    """What the process reports, and its log."""
    process = subprocess.run([sys.executable, FILL, folder], capture_output=True, check=True, timeout=30, text=True)
    return json.loads(process.stdout), process.stderr


@pytest.mark.anyio
@pytest.mark.skipif(sys.platform == "win32", reason="limits on file sizes are POSIX")
async def test_a_disk_that_takes_no_more_fails_writes_clearly_until_it_does_again(folder: Path) -> None:
    said, log = run_out_of_space(folder)
    for agent, outcome in zip("abc", said["refused"], strict=True):
        assert outcome.startswith(f"StorageError: A write for '{agent}' was not stored: disk I/O error")
        assert str(folder / "perdure.db") in outcome
        assert "free space" in outcome
    assert said["meanwhile"] == "old", "reads go on, and see nothing of what failed"
    assert said["later"] == ["stored"] * 3
    assert said["values"] == ["new a", "new b", "new c"]
    assert "A group of" in log

    store = await SqliteStore.open(folder)
    assert await store.read(LoadValue("c", "n", "k")) == "new c"
    await store.close()


def test_a_full_disk_is_called_by_its_name(tmp_path: Path) -> None:
    connection = sqlite3.connect(tmp_path / "small.db")
    connection.execute("create table t (x)")
    connection.execute("pragma max_page_count = 3")
    with pytest.raises(sqlite3.OperationalError) as raised:
        connection.execute("insert into t values (?)", ("x" * 100_000,))
    connection.close()
    assert str(explain(raised.value, tmp_path / "small.db", "A write was not stored")) == (
        f"A write was not stored: database or disk is full ({tmp_path / 'small.db'}). "
        "The disk is full. Free some space; no restart is needed."
    )
