"""``perdure serve`` as the process that a user runs: started, asked to end, killed, started again."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import threading
from collections import deque
from collections.abc import Mapping
from pathlib import Path
from typing import IO, Any

import httpx2

__all__ = ["ROOT", "ServerProcess"]

ROOT = Path(__file__).parents[2]

PATIENCE = 20
"""Seconds that a start or an orderly end may take."""

_ADDRESS = re.compile(r"http://127\.0\.0\.1:(\d+)")


class ServerProcess:
    """A server with a data folder. The first start takes a free port; later ones take it again."""

    def __init__(self, target: str, data: Path, env: Mapping[str, str] | None = None) -> None:
        """A server that is not running yet.

        Args:
            target: The app, like ``examples.assistant:app``.
            data: Folder in which it keeps everything.
            env: Environment variables beside the test's own.
        """
        self._target = target
        self._data = data
        self._env = {**os.environ, **(env or {})}
        self._port = 0
        self._process: subprocess.Popen[str] | None = None
        self._reader: threading.Thread | None = None
        self._addressed = threading.Event()
        self._output: deque[str] = deque(maxlen=200)

    @property
    def url(self) -> str:
        """Where it answers, without a trailing slash."""
        return f"http://127.0.0.1:{self._port}"

    def stored(self, agent: str, name: str) -> list[dict[str, Any]]:
        """The conversation as ``get-messages`` gives it."""
        response = httpx2.get(f"{self.url}/agents/{agent}/{name}/get-messages", timeout=PATIENCE)
        assert response.status_code == 200, response.text
        return response.json()

    def start(self) -> None:
        """Start it, and wait until it says where it answers."""
        assert self._process is None, "the server runs already"
        self._addressed.clear()
        self._output.clear()
        self._process = subprocess.Popen(
            [
                sys.executable,
                "-m",
                "perdure",
                "serve",
                self._target,
                "--port",
                str(self._port),
                "--data",
                str(self._data),
            ],
            cwd=ROOT,
            env=self._env,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            encoding="utf-8",
        )
        assert self._process.stdout is not None
        self._reader = threading.Thread(target=self._read, args=(self._process.stdout,))
        self._reader.start()
        self._addressed.wait(PATIENCE)
        if self._port == 0 or self._process.poll() is not None or not self._addressed.is_set():
            self.kill()
            raise AssertionError(f"the server did not start:\n{self._said()}")

    def _read(self, output: IO[str]) -> None:
        for line in output:
            self._output.append(line)
            if address := _ADDRESS.search(line):
                self._port = int(address[1])
                self._addressed.set()
        self._addressed.set()

    def _said(self) -> str:
        return "".join(self._output)

    def stop(self) -> None:
        """Ask it to end, as Ctrl+C does, and wait until it has."""
        process = self._process
        if process is None:
            return
        process.send_signal(signal.SIGINT)
        try:
            process.wait(PATIENCE)
        except subprocess.TimeoutExpired:
            self.kill()
            raise AssertionError(f"the server did not end within {PATIENCE} s:\n{self._said()}") from None
        self._forget()

    def kill(self) -> None:
        """``kill -9``: it cannot do anything about it."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._forget()

    def _forget(self) -> None:
        assert self._process is not None
        assert self._reader is not None
        self._reader.join()
        if self._process.stdout is not None:
            self._process.stdout.close()
        self._process = self._reader = None
