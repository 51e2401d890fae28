"""A browser tab reduced to its WebSocket: what it sends and all that it is sent."""

from __future__ import annotations

import asyncio
import itertools
import json
from collections.abc import Callable, Iterable
from typing import Any

from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed
from websockets.frames import Frame as WireFrame
from websockets.frames import Opcode

__all__ = ["PATIENCE", "Frame", "Tab", "chat_request", "chunks_of", "text_of", "user_message"]

Frame = dict[str, Any]

PATIENCE = 20
"""Seconds after which a frame that a test waits for is missing."""

_ids = itertools.count(1)


def user_message(text: str, identifier: str | None = None) -> Frame:
    """A user message as the hook posts it."""
    return {"id": identifier or f"u{next(_ids)}", "role": "user", "parts": [{"type": "text", "text": text}]}


def chunks_of(frames: Iterable[Frame], request: str) -> list[Frame]:
    """The chunks of a request among ``frames``, in order of arrival."""
    return [
        json.loads(frame["body"])
        for frame in frames
        if frame.get("id") == request and frame["type"] == "cf_agent_use_chat_response" and "seq" in frame
    ]


def text_of(chunks: Iterable[Frame]) -> str:
    """The text that these chunks spell."""
    return "".join(chunk["delta"] for chunk in chunks if chunk["type"] == "text-delta")


def chat_request(request: Any, body: str, method: str = "POST") -> Frame:
    """A chat request with any body."""
    return {"type": "cf_agent_use_chat_request", "id": request, "init": {"method": method, "body": body}}


def _text(frame: Frame | str | bytes) -> Any:
    """A frame as a browser writes it; what is no object, as it is."""
    return json.dumps(frame, ensure_ascii=False) if isinstance(frame, dict) else frame


class Tab:
    """One connection. Everything that arrives is kept in ``frames``."""

    def __init__(self, socket: ClientConnection, *, reading: bool = True) -> None:
        self.frames: list[Frame] = []
        self.closed: tuple[int, str] | None = None
        self._socket = socket
        self._changed = asyncio.Event()
        self._reading = asyncio.Event()
        if reading:
            self._reading.set()
        self._reader = asyncio.create_task(self._read())

    @classmethod
    async def open(cls, url: str, *, reading: bool = True, **options: Any) -> Tab:
        """Connect. With ``reading=False`` nothing is read until :meth:`read_on`."""
        return cls(await connect(url, max_size=None, proxy=None, **options), reading=reading)

    async def _read(self) -> None:
        try:
            while True:
                await self._reading.wait()
                self.frames.append(json.loads(await self._socket.recv()))
                self._changed.set()
        except ConnectionClosed:
            pass
        close = self._socket.close_code or 0, self._socket.close_reason or ""
        self.closed = close
        self._changed.set()

    # ── sending ─────────────────────────────────────────────────────

    async def send(self, frame: Frame | str | bytes) -> None:
        await self._socket.send(_text(frame))

    async def ask(self, request: str, *messages: Frame | str, trigger: str = "submit-message", **body: Any) -> None:
        """Post a conversation whose last message is to be answered."""
        posted = [user_message(message) if isinstance(message, str) else message for message in messages]
        await self.send(chat_request(request, _text({"messages": posted, "trigger": trigger, **body})))

    async def cancel(self, request: str) -> None:
        await self.send({"type": "cf_agent_chat_request_cancel", "id": request})

    async def clear(self) -> None:
        await self.send({"type": "cf_agent_chat_clear"})

    async def probe(self, probe: str | None = None) -> Frame:
        """Ask for a stream to attach to; gives the answer."""
        sent = {"type": "cf_agent_stream_resume_request"}
        start = len(self.frames)
        await self.send(sent if probe is None else {**sent, "probeId": probe})
        return await self.next(
            lambda frame: frame["type"].startswith("cf_agent_stream_") and frame.get("probeId") == probe, since=start
        )

    async def ack(self, request: str) -> None:
        await self.send({"type": "cf_agent_stream_resume_ack", "id": request})

    async def close(self) -> None:
        self.read_on()
        await self._socket.close()
        await self._reader

    def read_on(self) -> None:
        """Begin to read, or go on with it."""
        self._reading.set()
        self._socket.transport.resume_reading()

    def stop_reading(self) -> None:
        """Read nothing more, until :meth:`read_on`."""
        self._reading.clear()
        self._socket.transport.pause_reading()

    def write(self, data: bytes) -> None:
        """Bytes as they are, past the WebSocket."""
        self._socket.transport.write(data)

    def write_frame(self, *frames: Frame | str) -> None:
        """Send frames in one piece, at once: no other task runs before they are on their way."""
        texts: list[str] = [_text(frame) for frame in frames]
        self.write(b"".join(WireFrame(Opcode.TEXT, text.encode()).serialize(mask=True) for text in texts))

    async def send_together(self, *frames: Frame | str) -> None:
        """Send frames in one piece, so that the server has the last when it handles the first."""
        self.write_frame(*frames)

    def drop(self) -> None:
        """Cut the line without a goodbye."""
        self._socket.transport.abort()

    # ── receiving ───────────────────────────────────────────────────

    async def changed(self) -> None:
        """Returns once another frame is here, or the connection was closed."""
        self._changed.clear()
        await self._changed.wait()

    async def next(self, wanted: Callable[[Frame], bool] = lambda frame: True, *, since: int | None = None) -> Frame:
        """The first frame from now on (or from index ``since``) that is wanted."""
        index = len(self.frames) if since is None else since
        async with asyncio.timeout(PATIENCE):
            while True:
                while index < len(self.frames):
                    if wanted(self.frames[index]):
                        return self.frames[index]
                    index += 1
                assert self.closed is None, f"the connection was closed: {self.closed}"
                self._changed.clear()
                await self._changed.wait()

    async def seen(self, wanted: Callable[[Frame], bool]) -> Frame:
        """The first frame of all that is wanted."""
        return await self.next(wanted, since=0)

    async def opened(self) -> list[Frame]:
        """What a new connection is greeted with, up to the list of MCP servers."""
        last = await self.seen(lambda frame: frame["type"] == "cf_agent_mcp_servers")
        return self.frames[: self.frames.index(last) + 1]

    async def done(self, request: str) -> Frame:
        """The terminal frame of a request."""
        return await self.seen(lambda frame: frame.get("id") == request and frame.get("done") is True)

    def kinds(self, since: int = 0) -> list[str]:
        """The types of all frames so far, from index ``since``."""
        return [frame["type"] for frame in self.frames[since:]]

    def of(self, request: str) -> list[Frame]:
        """All frames of a request so far."""
        return [frame for frame in self.frames if frame.get("id") == request]

    async def delta(self, request: str, text: str) -> Frame:
        """The frame of a text delta."""
        return await self.seen(
            lambda frame: frame.get("id") == request and f'"delta":"{text}"' in frame.get("body", "")
        )

    async def ended(self) -> tuple[int, str]:
        """Close code and reason, once the server has closed the connection."""
        async with asyncio.timeout(PATIENCE):
            while self.closed is None:
                self._changed.clear()
                await self._changed.wait()
        return self.closed

    async def settle(self) -> None:
        """Returns once all that was sent to this tab before is here: the server has answered a request that is none.

        The answer is taken out again. No state of the agent depends on it, unlike a probe.
        """
        request = f"settle-{next(_ids)}"
        await self.send(chat_request(request, "", "GET"))
        self.frames.remove(await self.done(request))
