"""The options of the commands that serve, as arguments and back."""

from __future__ import annotations

import argparse
from collections.abc import Sequence

__all__ = ["add_serving_options", "serving_arguments"]


def add_serving_options(command: argparse.ArgumentParser) -> None:
    """Add what ``serve`` and ``dev`` understand."""
    add = command.add_argument
    add("target", help="the app: app.py, package.module:name, … (name: app, unless given)")
    add("--host", default="127.0.0.1", help="address to listen on (default: %(default)s, this machine only)")
    add("--port", type=int, default=8000, help="port to listen on; 0 picks a free one (default: %(default)s)")
    add("--data", metavar="FOLDER", help="where everything is kept (default: $PERDURE_DATA, else .perdure)")
    add(
        "--allow-host",
        action="append",
        default=[],
        metavar="NAME",
        help="host name by which the server is reached; may be repeated",
    )
    add(
        "--allow-origin",
        action="append",
        default=[],
        metavar="ORIGIN",
        help="origin of a page that may connect; may be repeated",
    )
    add("--root-path", default="", metavar="PATH", help="what a proxy in front takes off the path, like /chat")
    add(
        "--forwarded-allow-ips",
        default=None,
        metavar="ADDRESSES",
        help="proxies in front whose X-Forwarded-… headers count (default: 127.0.0.1)",
    )
    add(
        "--log-level",
        default="info",
        choices=["debug", "info", "warning", "error"],
        help="least important records that are written (default: %(default)s)",
    )
    add("--log-format", default="text", choices=["text", "json"], help="json: one record a line (default: %(default)s)")
    # The socket that `perdure dev` listens on, for the server that it starts.
    add("--listener", type=int, default=None, help=argparse.SUPPRESS)


def serving_arguments(options: argparse.Namespace) -> Sequence[str]:
    """The arguments that give these options again, but for where to listen."""
    arguments = [options.target, f"--log-level={options.log_level}", f"--log-format={options.log_format}"]
    arguments += [f"--root-path={options.root_path}"]
    arguments += [f"--allow-host={name}" for name in options.allow_host]
    arguments += [f"--allow-origin={origin}" for origin in options.allow_origin]
    if options.data is not None:
        arguments.append(f"--data={options.data}")
    if options.forwarded_allow_ips is not None:
        arguments.append(f"--forwarded-allow-ips={options.forwarded_allow_ips}")
    return arguments
