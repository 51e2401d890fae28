"""``perdure serve``: runs an app on this machine."""

from __future__ import annotations

import argparse
import importlib
import logging
import os
import socket
import sys
from collections.abc import Sequence

import uvicorn

from perdure._version import __version__
from perdure.errors import ConfigurationError, PerdureError
from perdure.server.app import App

__all__ = ["main"]


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; gives its exit code."""
    options = _parser().parse_args(arguments)
    try:
        serve(options)
    except PerdureError as error:
        print(f"perdure: {error}", file=sys.stderr)
        return 1
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="perdure", description="A server for chat agents.")
    parser.add_argument("--version", action="version", version=f"perdure {__version__}")
    commands = parser.add_subparsers(dest="command", required=True)
    command = commands.add_parser("serve", help="run an app", description="Run an app on this machine.")
    command.add_argument("target", help="module:name of the app, like examples.assistant:app")
    command.add_argument(
        "--host", default="127.0.0.1", help="address to listen on (default: %(default)s, this machine only)"
    )
    command.add_argument(
        "--port", type=int, default=8000, help="port to listen on; 0 picks a free one (default: %(default)s)"
    )
    command.add_argument(
        "--data", metavar="FOLDER", help="where everything is kept (default: $PERDURE_DATA, else .perdure)"
    )
    command.add_argument(
        "--allow-host",
        action="append",
        default=[],
        metavar="NAME",
        help="host name by which the server is reached; may be repeated",
    )
    command.add_argument(
        "--allow-origin",
        action="append",
        default=[],
        metavar="ORIGIN",
        help="origin of a page that may connect; may be repeated",
    )
    command.add_argument("--log-level", default="info", choices=["debug", "info", "warning", "error"])
    return parser


def load(target: str) -> App:
    """The app that ``module:name`` names.

    Raises:
        ConfigurationError: there is none.
    """
    module_name, _, name = target.partition(":")
    if not module_name or not name:
        raise ConfigurationError(f"{target!r} does not name an app. Write module:name, like examples.assistant:app.")
    if os.getcwd() not in sys.path:
        sys.path.insert(0, os.getcwd())
    try:
        module = importlib.import_module(module_name)
    except ModuleNotFoundError as error:
        if error.name is None or not f"{module_name}.".startswith(f"{error.name}."):
            raise
        raise ConfigurationError(
            f"There is no module {module_name!r} here. Run perdure in the folder that holds it."
        ) from error
    app = getattr(module, name, None)
    if not isinstance(app, App):
        raise ConfigurationError(f"{module_name} has no perdure.App called {name!r}. Add: {name} = App(YourAgent)")
    return app


def serve(options: argparse.Namespace) -> None:
    """Run an app until the process is told to stop."""
    app = load(options.target)
    if options.data is not None:
        app.data = options.data
    app.allowed_hosts += options.allow_host
    app.allowed_origins += options.allow_origin
    logging.basicConfig(level=options.log_level.upper(), format="%(asctime)s %(levelname)s %(name)s: %(message)s")
    logging.getLogger("httpx2").setLevel(logging.WARNING)
    config = uvicorn.Config(
        app,
        host=options.host,
        port=options.port,
        ws="websockets-sansio",
        ws_max_size=app.limits.frame,
        ws_per_message_deflate=False,
        lifespan="on",
        log_level="warning",
        access_log=False,
        timeout_graceful_shutdown=5,
    )
    names = ", ".join(kind.__name__ for kind in app.agents.values())
    _Server(config, f"perdure {__version__} serves {names} (data in {app.data})").run(sockets=[config.bind_socket()])


class _Server(uvicorn.Server):
    """Says where it listens once it does."""

    def __init__(self, config: uvicorn.Config, greeting: str) -> None:
        super().__init__(config)
        self._greeting = greeting

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        if self.started and sockets:
            host, port = sockets[0].getsockname()[:2]
            print(f"{self._greeting}\nhttp://{host}:{port}", flush=True)
