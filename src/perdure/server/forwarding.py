"""How an HTTP request is handed on to an agent: as plain values, with a body that has an end. Pure."""

from __future__ import annotations

from starlette.exceptions import HTTPException
from starlette.types import Message, Receive, Scope

from perdure.server.requests import IncomingRequest, visible_headers
from perdure.server.router import Destination

__all__ = ["bounded", "forwarded"]

_PLAIN = ("type", "http_version", "method", "scheme", "path", "raw_path", "query_string", "client", "server")


def forwarded(scope: Scope, request: IncomingRequest, destination: Destination) -> Scope:
    """The scope that the agent sees. The headers are those of ``request``: a hook may have changed them."""
    original = visible_headers(scope)
    known = {name.decode("latin-1"): value.decode("latin-1") for name, value in original}
    changed = {name: value for name, value in request.headers.items() if known.get(name) != value}
    headers = [(name, value) for name, value in original if name.decode("latin-1") not in changed]
    headers += [(name.encode("latin-1"), value.encode("latin-1")) for name, value in changed.items()]
    return {
        **{key: scope[key] for key in _PLAIN if key in scope},
        "asgi": dict(scope["asgi"]),
        "root_path": scope.get("root_path", ""),
        "headers": headers,
        "path_params": {"path": destination.tail},
    }


def bounded(scope: Scope, receive: Receive, limit: int) -> Receive:
    """``receive`` that gives no more than ``limit`` bytes of a body.

    Raises:
        HTTPException: 413, at once when the request says that it has more, else when the rest comes.
    """
    error = HTTPException(413, f"The request's body is larger than {limit} bytes.")
    for name, value in scope["headers"]:
        if name == b"content-length" and value.isdigit() and int(value) > limit:
            raise error
    left = limit

    async def receiving() -> Message:
        nonlocal left
        message = await receive()
        left -= len(message.get("body", b""))
        if left < 0:
            raise error
        return message

    return receiving
