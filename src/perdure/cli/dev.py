"""``perdure dev``: runs an app, and starts it again whenever its code changes.

The server is a child process, which has gone, and given its data folder free, before the next one starts. The socket is
this process's: who connects in between waits a moment instead of being refused.
"""

from __future__ import annotations

import argparse
import signal
import socket
import subprocess
import sys
import threading
from pathlib import Path

from perdure.cli.listening import listen
from perdure.cli.options import serving_arguments
from perdure.cli.watching import Watch
from perdure.errors import ConfigurationError

__all__ = ["dev"]

INTERVAL = 0.3
"""Seconds between two looks at the files."""
PATIENCE = 20.0
"""Seconds that a server has to stop."""


def dev(options: argparse.Namespace) -> int:
    """Run an app until the process is told to stop.

    Raises:
        ConfigurationError: it cannot listen where it should, or the system has no sockets to hand on.
    """
    if sys.platform == "win32":
        raise ConfigurationError("perdure dev needs Linux or macOS. Use perdure serve.")
    with listen(options.host, options.port) as listener:
        supervisor = _Supervisor(listener, options)
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            signal.signal(number, supervisor.stop)
        return supervisor.run()


class _Supervisor:
    def __init__(self, listener: socket.socket, options: argparse.Namespace) -> None:
        self._listener = listener
        self._command = [sys.executable, "-m", "perdure", "serve", *serving_arguments(options)]
        self._command.append(f"--listener={listener.fileno()}")
        self._watch = Watch(Path.cwd())
        self._stopped = threading.Event()
        self._child: subprocess.Popen[bytes] | None = None

    def run(self) -> int:
        while not self._stopped.is_set():
            # A group of its own: Ctrl-C comes to this process alone, which hands it on once.
            self._child = subprocess.Popen(self._command, pass_fds=[self._listener.fileno()], process_group=0)
            changed = self._until_something_happens(self._child)
            self._end(self._child)
            if changed:
                print(f"perdure: {', '.join(changed)} changed; starting again.", file=sys.stderr, flush=True)
        return 0

    def stop(self, number: int, _: object) -> None:
        """A signal: hand it on, and start nothing more."""
        self._stopped.set()
        if self._child is not None and self._child.poll() is None:
            self._child.send_signal(signal.SIGINT if number == signal.SIGINT else signal.SIGTERM)

    def _until_something_happens(self, child: subprocess.Popen[bytes]) -> list[str]:
        """Wait until files have changed, and give them; nothing when the end was asked for."""
        told = False
        while not self._stopped.wait(INTERVAL):
            if changed := self._watch.changes():
                return changed
            if child.poll() is not None and not told:
                told = True
                print("perdure: the server has ended; waiting for a change.", file=sys.stderr, flush=True)
        return []

    def _end(self, child: subprocess.Popen[bytes]) -> None:
        if child.poll() is None and not self._stopped.is_set():
            child.terminate()
        try:
            child.wait(PATIENCE)
        except subprocess.TimeoutExpired:
            child.kill()
            child.wait()
