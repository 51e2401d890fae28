"""What an ASGI scope says of a request. Pure."""

from __future__ import annotations

from urllib.parse import parse_qsl

from starlette.types import Scope

from perdure.agent.connection import ConnectionRequest

__all__ = ["connection_request", "raw_path"]


def raw_path(scope: Scope) -> str:
    """The path as it stands in the URL, without what the app is mounted under.

    Names of agents are not percent-decoded, so the decoded path that most code looks at will not do.
    """
    raw: bytes | None = scope.get("raw_path")
    path: str = raw.decode("latin-1") if raw is not None else scope["path"]
    return path.partition("?")[0].removeprefix(scope.get("root_path", ""))


def connection_request(scope: Scope) -> ConnectionRequest:
    """What an agent is told of a connection's request."""
    query: bytes = scope.get("query_string", b"")
    return ConnectionRequest(
        path=raw_path(scope),
        query=dict(parse_qsl(query.decode("latin-1"), keep_blank_values=True)),
        headers={name.decode("latin-1"): value.decode("latin-1") for name, value in scope["headers"]},
    )
