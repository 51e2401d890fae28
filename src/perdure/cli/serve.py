"""``perdure serve``: runs an app on this machine until it is told to stop."""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import logging
import os
import signal
import socket
import sys
import threading
import time
from collections.abc import Generator
from pathlib import Path
from types import FrameType

import uvicorn

from perdure._version import __version__
from perdure.cli.listening import address_of, listen
from perdure.cli.target import load
from perdure.observability.logs import log_handler
from perdure.server.app import App
from perdure.server.transport import WebSocketProtocol

__all__ = ["serve"]

logger = logging.getLogger(__name__)

REQUESTS_GRACE = 5
"""Seconds that HTTP requests have to end."""
STOP_GRACE = 15.0
"""Seconds after which a server that was told to stop is gone, whatever the application's code does."""
PARENT_INTERVAL = 1.0
"""Seconds between two looks at whether ``perdure dev`` is still there."""
THREADS_GRACE = 1.0
"""Seconds that threads of tools have to end once everything else has."""


def serve(options: argparse.Namespace) -> int:
    """Run an app until the process is told to stop.

    A first signal stops it in order: clients are told to come back, running turns stay open in the store. A second one
    ends the process at once, which loses no more than a crash does.

    Raises:
        ConfigurationError: there is no such app, or it cannot listen where it should.
        StorageError: the data folder cannot be used.
    """
    logging.basicConfig(level=options.log_level.upper(), handlers=[log_handler(options.log_format)])
    logging.getLogger("httpx2").setLevel(logging.WARNING)
    app = load(options.target)
    if options.data is not None:
        app.data = Path(options.data)
    app.allowed_hosts += options.allow_host
    app.allowed_origins += options.allow_origin
    if options.listener is None:
        listener = listen(options.host, options.port)
    else:
        listener = socket.socket(fileno=options.listener)
    with listener:
        config = _config(app, options)
        server = _Server(config, app, listener)
        if options.listener is not None:
            _end_with_parent(server)
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, server.handle_exit)
        with asyncio.Runner(loop_factory=config.get_loop_factory()) as runner:
            runner.run(_serve(app, server, listener))
    return 0


def _config(app: App, options: argparse.Namespace) -> uvicorn.Config:
    return uvicorn.Config(
        app,
        ws=WebSocketProtocol,
        ws_max_size=app.limits.frame,
        ws_per_message_deflate=False,
        lifespan="off",
        log_config=None,
        log_level="warning",
        access_log=False,
        root_path=options.root_path,
        forwarded_allow_ips=options.forwarded_allow_ips,
        timeout_graceful_shutdown=REQUESTS_GRACE,
    )


async def _serve(app: App, server: uvicorn.Server, listener: socket.socket) -> None:
    async with app.lifespan():
        await server.serve(sockets=[listener])
    # What is kept is closed. Threads cannot be stopped, and Python would wait for them.
    _leave_in(THREADS_GRACE, "A tool is still running in a thread; it is left behind.")


class _Server(uvicorn.Server):
    """Says where it listens once it does, and stops when it is told to."""

    def __init__(self, config: uvicorn.Config, app: App, listener: socket.socket) -> None:
        super().__init__(config)
        names = ", ".join(kind.__name__ for kind in app.agents.values())
        self._greeting = f"perdure {__version__} serves {names} (data in {app.data})\n{address_of(listener)}"

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        if self.started:
            print(self._greeting, flush=True)

    @contextlib.contextmanager
    def capture_signals(self) -> Generator[None]:
        """Signals are ours from before the start until the very end, not only while uvicorn runs."""
        yield

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """A signal: the first one stops in order, the next at once."""
        if self.should_exit:
            _tell(b"Stopped at once.\n")
            os._exit(128 + sig)
        self.should_exit = True  # first of all: the next signal may come within this one
        _tell(b"Stopping. A second signal stops at once.\n")
        _leave_in(STOP_GRACE, "Something does not let the server stop; it is left behind.")


def _tell(line: bytes) -> None:
    # Not by print: a signal may come in the middle of one.
    os.write(sys.stdout.fileno(), line)


def _end_with_parent(server: uvicorn.Server) -> None:
    """Stop when the process that started this one has gone, however it went: nobody else would."""
    parent = os.getppid()

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(PARENT_INTERVAL)
        server.should_exit = True

    threading.Thread(target=watch, daemon=True).start()


def _leave_in(seconds: float, complaint: str) -> None:
    """End the process after a while, if it has not ended by then."""

    def leave() -> None:
        logger.warning("%s", complaint)
        logging.shutdown()
        sys.stdout.flush()
        os._exit(0)

    timer = threading.Timer(seconds, leave)
    timer.daemon = True
    timer.start()
