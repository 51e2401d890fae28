"""The WebSocket protocol class that ``perdure serve`` gives to uvicorn: it cuts clients that take nothing any more.

uvicorn's own class waits until everything it has written was taken before it lets go of a socket. A client that is
there and does not read would hold the socket, and what is buffered for it, for as long as it likes.
"""

from __future__ import annotations

from typing import Any, cast

from uvicorn.protocols.websockets.websockets_sansio_impl import WebSocketsSansIOProtocol

from perdure.server.connection import TRANSPORT

__all__ = ["WebSocketProtocol"]

LAST_WORDS = 2.0
"""Seconds that a client has to take a close frame."""


class WebSocketProtocol(WebSocketsSansIOProtocol):
    """uvicorn's protocol, with an end to every connection."""

    async def run_asgi(self) -> None:
        """Run the app for this connection."""
        extensions = cast("dict[str, Any]", self.scope.get("extensions"))
        extensions[TRANSPORT] = {"abort": self.transport.abort}
        await super().run_asgi()
        self._cut_soon(self.close_timeout)

    def keepalive_timeout(self) -> None:
        """The client did not answer a ping."""
        super().keepalive_timeout()
        self._cut_soon(LAST_WORDS)

    def shutdown(self) -> None:
        """The server stops."""
        super().shutdown()
        self._cut_soon(LAST_WORDS)

    def _cut_soon(self, seconds: float) -> None:
        if not self.disconnected:
            self.loop.call_later(seconds, self.transport.abort)
