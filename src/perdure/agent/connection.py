"""A connection as the agent's own code sees it, and which one the running code answers to."""

from __future__ import annotations

from collections.abc import Mapping
from contextvars import ContextVar
from typing import Any

import msgspec

from perdure.agent.services import PeerId, Services
from perdure.agent.threads import in_loop

__all__ = ["Connection", "ConnectionRequest", "current_connection"]


class ConnectionRequest(msgspec.Struct, frozen=True):
    """The request with which a connection came."""

    path: str
    """As in the URL, without the query."""
    query: Mapping[str, str]
    """Query parameters; of one that is given several times, the last."""
    headers: Mapping[str, str]
    """Names in lower case."""


class Connection:
    """One tab, or another client, on its WebSocket."""

    def __init__(self, peer: PeerId, request: ConnectionRequest, services: Services) -> None:
        self.peer = peer
        """Unique in the life of the server."""
        self.id = request.query.get("_pk") or services.new_id()
        """Chosen by the client, and the same after it reconnects: not unique, and not to be trusted."""
        self.request = request
        self.readonly = False
        """Whether it may not change the agent's state. Can be changed at any time."""
        self.protocol = True
        """Whether it is sent identity, state and the list of MCP servers."""
        self.state: Any = None
        """For the application: gone when the connection is."""
        self.closed = False
        """Whether it is gone. What is sent to it then is dropped."""
        self._services = services

    def send(self, text: str) -> None:
        """Send a message of the application's own. Synchronous tools may do so too."""
        in_loop(lambda: self._services.send((self.peer,), text))

    def close(self, code: int = 1000, reason: str = "") -> None:
        """Close it. Clients come back after any code but 1008 and 4000 to 4999."""
        in_loop(lambda: self._services.hang_up((self.peer,), code, reason))


current_connection: ContextVar[Connection | None] = ContextVar("perdure_connection", default=None)
"""The connection whose call or message the running code answers; ``None`` for the server's own work."""
