"""The JavaScript clients, installed from npm, against a server process: each case of ``run.mjs``.

One Node process runs the cases of an area, on first need; each case is a test of its own.
"""

from __future__ import annotations

import re
import shutil
import subprocess
from collections import defaultdict
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.requirements import requirement
from tests.support.process import ServerProcess

HERE = Path(__file__).parent

Verdicts = Callable[[str, str], str]


def node(*arguments: str) -> subprocess.CompletedProcess[str]:
    """Run the runner. Its cases end by themselves; the limit is for a Node that hangs."""
    command = ["node", "run.mjs", *arguments]
    return subprocess.run(command, cwd=HERE, capture_output=True, text=True, encoding="utf-8", timeout=300, check=False)


def all_cases() -> list[tuple[str, str]]:
    """Area and name of the cases. Without Node there are none, which ``test_the_runner_is_installed`` reports."""
    if shutil.which("node") is None:
        return []
    pairs = (line.split("\t") for line in node("--list").stdout.splitlines())
    return [(area, name) for area, name in pairs]


CASES = all_cases()


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    running = ServerProcess("tests.wire.app:app", tmp_path_factory.mktemp("wire"))
    running.start()
    yield running
    running.stop()


@pytest.fixture(scope="module")
def verdict(request: pytest.FixtureRequest, server: ServerProcess) -> Verdicts:
    """Gives what the runner said of a case; runs all selected cases of its area when the first one is asked for."""
    chosen = {item.name for item in request.session.items if item.path == Path(__file__)}
    selected: dict[str, list[str]] = defaultdict(list)
    for area, name in CASES:
        if any(test.endswith(f"[{name}]") for test in chosen):
            selected[area].append(name)
    said: dict[str, str] = {}

    def of(area: str, name: str) -> str:
        if name not in said:
            run = node(server.url, *(f"--case={case}" for case in selected[area]))
            for line in run.stdout.splitlines():
                for case in selected[area]:
                    if re.match(rf"(PASS|FAIL) {re.escape(case)}[ :]", line):
                        said[case] = line
            said.setdefault(name, f"nothing was said of it:\n{run.stdout}{run.stderr}")
        return said[name]

    return of


def test_the_runner_is_installed() -> None:
    assert shutil.which("node"), "the npm clients need Node; scripts/test says which"
    assert (HERE / "node_modules" / "agents").is_dir(), "run npm ci in tests/wire, or scripts/test, which does"
    assert CASES, node("--list").stderr


@requirement("protocol:98")
@pytest.mark.timeout(330)
@pytest.mark.parametrize(("area", "name"), CASES, ids=[name for _, name in CASES])
def test_the_client_gets_what_it_expects(area: str, name: str, verdict: Verdicts) -> None:
    line = verdict(area, name)
    assert line.startswith("PASS"), line
