"""The command's front: what it understands, and how it fails."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

from perdure._version import __version__
from perdure.cli.dev import dev
from perdure.cli.new import new
from perdure.cli.options import add_serving_options
from perdure.cli.serve import serve
from perdure.errors import PerdureError

__all__ = ["main"]


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; gives its exit code."""
    options = _parser().parse_args(arguments)
    try:
        return options.run(options)
    except PerdureError as error:
        print(f"perdure: {error}", file=sys.stderr)
        return 1


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="perdure", description="A server for chat agents.")
    parser.add_argument("--version", action="version", version=f"perdure {__version__}")
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")

    command = commands.add_parser("serve", help="run an app", description="Run an app on this machine.")
    add_serving_options(command)
    command.set_defaults(run=serve)

    command = commands.add_parser(
        "dev",
        help="run an app, and again whenever its code changes",
        description="Run an app on this machine, and start it again whenever a Python file below this folder changes.",
    )
    add_serving_options(command)
    command.set_defaults(run=dev)

    command = commands.add_parser(
        "new",
        help="make a project",
        description="Make a folder with a small agent, its test, and what is needed to run both.",
    )
    command.add_argument("name", help="the folder to make; its last part is the project's name")
    command.set_defaults(run=new)
    return parser
