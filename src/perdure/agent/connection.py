"""A connection as the agent's own code sees it, and which one the running code answers to."""

from __future__ import annotations

from collections.abc import Mapping
from contextvars import ContextVar
from typing import Any

import msgspec

from perdure.agent.services import PeerId, Services
from perdure.agent.threads import in_loop
from perdure.errors import ConfigurationError

__all__ = ["Connection", "ConnectionRequest", "check_text", "current_connection"]

_CODES = frozenset({1000, 1001, 1002, 1003, *range(1007, 1015)})
"""Close codes of RFC 6455 and its registry that may be sent."""


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
        """Send a message of the application's own. Synchronous tools may do so too.

        Raises:
            TypeError: ``text`` is no text.
        """
        check_text(text, "Connection.send()")
        in_loop(lambda: self._services.send((self.peer,), text))

    def close(self, code: int = 1000, reason: str = "") -> None:
        """Close it. Clients come back after any code but 1008 and 4000 to 4999.

        Args:
            code: 1000 to 1003, 1007 to 1014, or 3000 to 4999: others cannot be sent (RFC 6455 §7.4).
            reason: For people. What does not fit into a close frame is cut.

        Raises:
            ConfigurationError: ``code`` cannot be sent.
            TypeError: ``reason`` is no text.
        """
        if type(code) is not int or not (code in _CODES or 3000 <= code <= 4999):
            raise ConfigurationError(f"Connection.close({code!r:.40}): give a close code, like 1000, 1008 or 4000.")
        check_text(reason, "Connection.close()")
        in_loop(lambda: self._services.hang_up((self.peer,), code, reason))


def check_text(text: Any, who: str) -> None:
    """Whether an application gave text, before it waits to be sent.

    Raises:
        TypeError: it did not.
    """
    if not isinstance(text, str):
        raise TypeError(f"{who} takes text, not {type(text).__name__}: json.dumps() makes text of values.")


current_connection: ContextVar[Connection | None] = ContextVar("perdure_connection", default=None)
"""The connection whose call or message the running code answers; ``None`` for the server's own work."""
