"""One WebSocket connection: frames in, in order; frames out, in order, without ever making the sender wait."""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Callable
from typing import Any

from starlette.types import Receive, Scope, Send

from perdure.agent.connection import ConnectionRequest
from perdure.host.bus import Bus
from perdure.host.tasks import Tasks
from perdure.protocol.names import Address
from perdure.server.limits import Limits
from perdure.server.rate import TokenBucket

__all__ = ["TRANSPORT", "Connection", "refuse"]

logger = logging.getLogger(__name__)

POLICY = 1008
"""Close code for a connection that floods: clients do not come back by themselves."""
TOO_LARGE = 1009
"""Close code for a frame that is too large."""
SLOW = 1013
"""Close code for a connection that reads too slowly: clients reconnect and replay."""

TRANSPORT = "perdure.transport"
"""Name of the ASGI extension of a server that can do more: ``abort()`` cuts the connection, ``write(text)`` sends a
frame at once, or says false when it must wait."""

REASON_BYTES = 123
"""Longest reason of a close frame, in UTF-8 (RFC 6455 §5.5.1)."""


class Connection:
    """The server's end of one WebSocket. A task for sending exists only while there is something to send."""

    def __init__(self, scope: Scope, receive: Receive, send: Send, tasks: Tasks, limits: Limits) -> None:
        extensions: dict[str, dict[str, Any]] = scope.get("extensions") or {}
        offer = extensions.get(TRANSPORT, {})
        self._abort: Callable[[], None] | None = offer.get("abort")
        self._write: Callable[[str], bool] | None = offer.get("write")
        self._receive = receive
        self._send = send
        self._tasks = tasks
        self._limits = limits
        self._queue: deque[str] = deque()
        self._backlog = 0
        """Characters in ``_queue``."""
        self._reader: asyncio.Task[Any] | None = None
        self._writer: asyncio.Task[Any] | None = None
        self._sending = False
        self._closing: tuple[int, str] | None = None
        self._deadline: asyncio.TimerHandle | None = None
        self._given_up = False

    async def run(self, bus: Bus, address: Address, request: ConnectionRequest) -> None:
        """Serve the connection until it ends."""
        self._reader = asyncio.current_task()
        try:
            await self._receive()
            await self._send({"type": "websocket.accept"})
        except OSError:
            return  # it went away while it was being let in
        peer = bus.attach(address, self, request)
        try:
            await self._read(lambda message: bus.post(peer, message))
        except asyncio.CancelledError:
            if not self._given_up or self._reader is None or self._reader.uncancel() > 0:
                raise
        finally:
            bus.detach(peer)
            self._queue.clear()
            if self._deadline is not None:
                self._deadline.cancel()

    async def _read(self, take: Callable[[str | bytes], None]) -> None:
        clock = asyncio.get_running_loop().time
        bucket = TokenBucket(self._limits.rate, self._limits.burst, clock())
        while (event := await self._receive())["type"] == "websocket.receive":
            text = event.get("text")
            message: str | bytes = text if text is not None else event.get("bytes") or b""
            if self._closing is not None:
                continue  # what was on its way when the connection was closed
            if _is_longer(message, self._limits.frame):
                self.close(TOO_LARGE, f"The frame is larger than {self._limits.frame} bytes.")
            elif not bucket.take(clock()):
                logger.warning("Closed a connection that sends too many frames")
                self.close(POLICY, f"More than {self._limits.rate:g} frames per second.")
            else:
                take(message)

    # ── sink ────────────────────────────────────────────────────────

    def send(self, frame: str) -> None:
        """Queue a frame."""
        if self._closing is not None:
            return
        if self._write is not None and not self._sending and self._write(frame):
            return
        # The frame that goes next may have any size: a large conversation is no slow reader.
        if self._queue and self._backlog - len(self._queue[0]) > self._limits.backlog:
            logger.warning("Closed a connection that reads too slowly: %d characters wait for it", self._backlog)
            self._queue.clear()
            self.close(SLOW, "The connection reads too slowly; reconnect to go on.")
            return
        self._queue.append(frame)
        self._backlog += len(frame)
        self._wake()

    def close(self, code: int, reason: str) -> None:
        """Close the connection, after what is queued. A client that does not even take that is cut off."""
        if self._closing is None:
            self._closing = (code, reason)
            self._deadline = asyncio.get_running_loop().call_later(self._limits.patience, self._give_up)
            self._wake()

    def _wake(self) -> None:
        if not self._sending:
            self._sending = True
            self._tasks.spawn(self._drain(), "send to a connection")

    async def _drain(self) -> None:
        self._writer = asyncio.current_task()
        try:
            while self._queue:
                frame = self._queue.popleft()
                self._backlog -= len(frame)
                await self._send({"type": "websocket.send", "text": frame})
            if self._closing is not None:
                await self._send(_close_frame(*self._closing))
        except (OSError, RuntimeError):
            # The client went away in mid-frame, or the server closed the socket by itself for a frame that it does not
            # take (ASGI servers answer RuntimeError then). The reader is told as well, and ends the connection.
            self._queue.clear()
        finally:
            self._sending = False
            self._writer = None

    def _give_up(self) -> None:
        """Cut the connection: nothing gets through to the client, not even the end."""
        self._given_up = True
        self._queue.clear()
        if self._abort is not None:
            self._abort()
        for task in (self._writer, self._reader):
            if task is not None:
                task.cancel()


async def refuse(receive: Receive, send: Send, code: int, reason: str) -> None:
    """Refuse a WebSocket for good: clients go on retrying after an HTTP error, but not after these close codes."""
    try:
        await receive()
        await send({"type": "websocket.accept"})
        await send(_close_frame(code, reason))
    except OSError:
        pass  # it did not wait for the answer


def _close_frame(code: int, reason: str) -> dict[str, Any]:
    cut = reason.encode(errors="replace")[:REASON_BYTES].decode(errors="ignore")
    return {"type": "websocket.close", "code": code, "reason": cut}


def _is_longer(message: str | bytes, limit: int) -> bool:
    """Whether a message has more bytes than ``limit``; counts them only where the characters do not tell."""
    if len(message) > limit or isinstance(message, bytes):
        return len(message) > limit
    return 4 * len(message) > limit and not message.isascii() and len(message.encode()) > limit
