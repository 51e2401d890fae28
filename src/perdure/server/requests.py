"""What an ASGI scope says of a request. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Self
from urllib.parse import parse_qsl, unquote

import msgspec
from starlette.types import Scope

from perdure.agent.connection import ConnectionRequest

__all__ = ["IncomingRequest", "incoming_request", "raw_path", "visible_headers"]

_INTERNAL = {b"x-agents-lifecycle-props", b"x-cf-agents-subagent-url"}
"""Headers that clients of the original use between its own parts: from outside they mean nothing, or mischief."""


class IncomingRequest(ConnectionRequest, frozen=True, kw_only=True):
    """A request that wants in: what ``on_before_connect``, ``on_before_request`` and ``route`` are asked about."""

    method: str
    """``GET`` for WebSockets."""
    client: str | None
    """The client's address, where the server knows it. Behind a proxy it is the proxy's, unless the server is told."""
    class_name: str = ""
    """The agent's class, for a sub-agent the one at its root; empty while ``route`` is asked."""
    agent_name: str = ""
    """The agent's name, as it stands in the URL; likewise."""

    def to(self, class_name: str, agent_name: str) -> Self:
        """The same request, with the agent that it goes to."""
        return msgspec.structs.replace(self, class_name=class_name, agent_name=agent_name)

    def with_headers(self, headers: Mapping[str, str]) -> Self:
        """The same request with these headers added or replaced: what a hook has found out, for the agent."""
        added = {name.lower(): value for name, value in headers.items()}
        return msgspec.structs.replace(self, headers={**self.headers, **added})


def incoming_request(scope: Scope) -> IncomingRequest:
    """The request of this scope."""
    query: bytes = scope.get("query_string", b"")
    client: tuple[str, int] | None = scope.get("client")
    return IncomingRequest(
        path=raw_path(scope),
        query=dict(parse_qsl(query.decode("latin-1"), keep_blank_values=True)),
        headers={name.decode("latin-1"): value.decode("latin-1") for name, value in visible_headers(scope)},
        method=scope.get("method", "GET"),
        client=client[0] if client else None,
    )


def visible_headers(scope: Scope) -> list[tuple[bytes, bytes]]:
    """The headers, but for those that outsiders must not set. Names in lower case."""
    return [(name, value) for name, value in scope["headers"] if name not in _INTERNAL]


def raw_path(scope: Scope) -> str:
    """The path as it stands in the URL, without what the app is mounted under.

    Names of agents are not percent-decoded, so the decoded path that most code looks at will not do.
    """
    raw: bytes | None = scope.get("raw_path")
    path: str = (raw.decode("latin-1") if raw else scope["path"]).partition("?")[0]
    root = [segment for segment in scope.get("root_path", "").split("/") if segment]
    if not root:
        return path
    segments = path.split("/")
    mounted = [index for index, segment in enumerate(segments) if segment][: len(root)]
    if len(mounted) < len(root) or [unquote(segments[index]) for index in mounted] != root:
        return path
    return "/" + "/".join(segments[mounted[-1] + 1 :])
