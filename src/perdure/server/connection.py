"""One WebSocket connection: frames in, in order; frames out, in order, without ever making the sender wait."""

from __future__ import annotations

import logging
from collections import deque

from starlette.types import Receive, Send

from perdure.agent.connection import ConnectionRequest
from perdure.host.bus import Bus
from perdure.host.tasks import Tasks
from perdure.protocol.names import Address
from perdure.server.limits import Limits

__all__ = ["Connection", "refuse"]

logger = logging.getLogger(__name__)

REASON_BYTES = 123
"""Longest reason of a close frame, in UTF-8 (RFC 6455 §5.5.1)."""

CLOSED_SLOW = 1013
"""Close code for a connection that reads too slowly: clients reconnect and replay."""


class Connection:
    """The server's end of one WebSocket. A task for sending exists only while there is something to send."""

    def __init__(self, receive: Receive, send: Send, tasks: Tasks, limits: Limits) -> None:
        self._receive = receive
        self._send = send
        self._tasks = tasks
        self._limits = limits
        self._queue: deque[str] = deque()
        self._backlog = 0
        """Characters in ``_queue``."""
        self._sending = False
        self._closing: tuple[int, str] | None = None

    async def run(self, bus: Bus, address: Address, request: ConnectionRequest) -> None:
        """Serve the connection until it ends."""
        await self._receive()
        await self._send({"type": "websocket.accept"})
        peer = bus.attach(address, self, request)
        try:
            while (message := await self._receive())["type"] == "websocket.receive":
                text = message.get("text")
                bus.post(peer, text if text is not None else message.get("bytes", b""))
        finally:
            bus.detach(peer)
            self._queue.clear()

    # ── sink ────────────────────────────────────────────────────────

    def send(self, frame: str) -> None:
        """Queue a frame."""
        if self._closing is not None:
            return
        # The frame that goes next may have any size: a large conversation is no slow reader.
        if self._queue and self._backlog - len(self._queue[0]) > self._limits.backlog:
            logger.warning("Closed a connection that reads too slowly: %d characters wait for it", self._backlog)
            self._queue.clear()
            self.close(CLOSED_SLOW, "The connection reads too slowly; reconnect to go on.")
            return
        self._queue.append(frame)
        self._backlog += len(frame)
        self._wake()

    def close(self, code: int, reason: str) -> None:
        """Close the connection, after what is queued."""
        if self._closing is None:
            self._closing = (code, reason)
            self._wake()

    def _wake(self) -> None:
        if not self._sending:
            self._sending = True
            self._tasks.spawn(self._drain(), "send to a connection")

    async def _drain(self) -> None:
        try:
            while self._queue:
                frame = self._queue.popleft()
                self._backlog -= len(frame)
                await self._send({"type": "websocket.send", "text": frame})
            if self._closing is not None:
                code, reason = self._closing
                await self._send({"type": "websocket.close", "code": code, "reason": _fitting(reason)})
        except (OSError, RuntimeError):
            # The client went away in mid-frame, or the server closed the socket by itself for a frame that it does not
            # take (ASGI servers answer RuntimeError then). The reader is told as well, and ends the connection.
            self._queue.clear()
        finally:
            self._sending = False


async def refuse(receive: Receive, send: Send, code: int, reason: str) -> None:
    """Refuse a WebSocket for good: clients go on retrying after an HTTP error, but not after these close codes."""
    await receive()
    await send({"type": "websocket.accept"})
    await send({"type": "websocket.close", "code": code, "reason": _fitting(reason)})


def _fitting(reason: str) -> str:
    """As much of ``reason`` as a close frame holds."""
    return reason.encode()[:REASON_BYTES].decode(errors="ignore")
