"""The WebSocket protocol class that ``perdure serve`` gives to uvicorn.

It encodes a frame once for all sockets that it goes to, and writes what came together in one piece, without a task for
each. It closes quietly on text that is none. And it cuts clients that take nothing any more: uvicorn's own class waits
until all it has written was taken, so a client that is there and does not read would hold its socket, and what is
buffered for it, for as long as it likes.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any, ClassVar, cast

from uvicorn.protocols.websockets.websockets_sansio_impl import WebSocketsSansIOProtocol
from websockets.frames import CloseCode, Frame, Opcode
from websockets.protocol import State

from perdure.server.connection import TRANSPORT

__all__ = ["WebSocketProtocol"]

LAST_WORDS = 2.0
"""Seconds that a client has to take a close frame."""
PIECE = 64 * 1024
"""Bytes that are gathered for one write, and of a frame that is kept encoded until the next one."""


class WebSocketProtocol(WebSocketsSansIOProtocol):
    """uvicorn's protocol with a short way for frames, and an end to every connection."""

    _encoded: ClassVar[tuple[str, bytes]] = ("", b"")
    """The frame that was written last, by whichever connection, and its bytes."""
    _piece: list[bytes]
    """Encoded frames that wait for the event loop to go on."""
    _size = 0
    """Bytes of them."""
    _cutting: asyncio.TimerHandle | None = None
    """When the connection is cut, if it has not ended by itself by then."""

    async def run_asgi(self) -> None:
        """Run the app for this connection."""
        offer: dict[str, Any] = {"abort": self.cut}
        if not self.config.ws_per_message_deflate:
            offer["write"] = self.write
        cast("dict[str, Any]", self.scope.get("extensions"))[TRANSPORT] = offer
        await super().run_asgi()
        self._cut_soon(self.close_timeout)

    def write(self, text: str) -> bool:
        """Write a text frame, with all that is written before the event loop goes on. False when that cannot be: the
        client reads too slowly, or has gone."""
        if self._size > PIECE or not self._is_open() or not self.writable.is_set():
            return False
        known, data = WebSocketProtocol._encoded
        if known is not text:
            data = Frame(Opcode.TEXT, text.encode(errors="replace")).serialize(mask=False)
            WebSocketProtocol._encoded = (text, data) if len(data) <= PIECE else ("", b"")
        if self._size:
            self._piece.append(data)
        else:
            self._piece = [data]
            self.loop.call_soon(self._flush)
        self._size += len(data)
        return True

    def _flush(self) -> None:
        if self._size and self._is_open():
            self.transport.write(b"".join(self._piece))
        self._piece, self._size = [], 0

    def _is_open(self) -> bool:
        return self.conn.state is State.OPEN and not self.disconnected

    def send_receive_event_to_app(self) -> None:
        """A message is whole. uvicorn would log text that is none as an error of its own, with a traceback."""
        if self.curr_msg_data_type == "text" and not self.close_sent and not _is_text(self.frames):
            self.frames = []
            if self.conn.state is State.OPEN:  # else the client has closed it right behind the frame
                self.conn.send_close(CloseCode.INVALID_DATA, "The frame is no valid UTF-8.")
                self.handle_parser_exception()
        else:
            super().send_receive_event_to_app()

    def cut(self) -> None:
        """End the connection now, whatever the client has not taken."""
        if not self.disconnected:
            self.transport.abort()

    def keepalive_timeout(self) -> None:
        """The client did not answer a ping."""
        super().keepalive_timeout()
        self._cut_soon(LAST_WORDS)

    def shutdown(self) -> None:
        """The server stops."""
        self._flush()
        super().shutdown()
        self._cut_soon(LAST_WORDS)

    def connection_lost(self, exc: Exception | None) -> None:
        """The connection has gone."""
        super().connection_lost(exc)
        if self._cutting is not None:
            # It would keep all of the connection in memory until it is due.
            self._cutting.cancel()
            self._cutting = None

    def _cut_soon(self, seconds: float) -> None:
        if self.disconnected or (self._cutting is not None and self._cutting.when() <= self.loop.time() + seconds):
            return
        if self._cutting is not None:
            self._cutting.cancel()
        self._cutting = self.loop.call_later(seconds, self.cut)


def _is_text(pieces: Sequence[bytes]) -> bool:
    try:
        b"".join(pieces).decode()
    except UnicodeDecodeError:
        return False
    return True
