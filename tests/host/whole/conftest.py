"""Takes in the fixtures of tests that talk to a server."""

from tests.support.fixtures import log, serve

__all__ = ["log", "serve"]
