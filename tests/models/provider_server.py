"""A small HTTP server that plays a model provider: it records what it is asked and answers by script."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from typing import Any, Literal


@dataclass
class Asked:
    """One request as it arrived."""

    method: str
    target: str
    headers: list[tuple[str, str]]
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)


@dataclass
class Reply:
    """One answer. ``end`` says what follows the body: its regular end, a reset, or nothing until the client leaves.

    Status 0 resets the connection instead of answering.
    """

    body: bytes | list[bytes] = b""
    status: int = 200
    headers: dict[str, str] = field(default_factory=lambda: {"content-type": "text/event-stream"})
    end: Literal["regular", "reset", "silence"] = "regular"


class ProviderServer:
    """Answers the requests in the order of ``replies``; the last reply serves all that follow."""

    def __init__(self) -> None:
        self.port = 0
        self.asked: list[Asked] = []
        self.replies: list[Reply] = []
        self.connections = 0
        self.client_left = asyncio.Event()
        """Set when a client closes its connection in the middle of an answer."""
        self.answering = asyncio.Event()
        """Set when the body of an answer has been sent up to its end."""

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def script(self, *replies: Reply) -> None:
        self.replies = list(replies)

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        with suppress(ConnectionError, asyncio.IncompleteReadError):
            while True:
                await self._answer(reader, writer)
        writer.close()

    async def _answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
        method, target, _ = head[0].split(" ")
        headers = [(name.lower(), value) for name, _, value in (line.partition(": ") for line in head[1:] if line)]
        length = int(dict(headers).get("content-length", 0))
        self.asked.append(Asked(method, target, headers, await reader.readexactly(length)))
        reply = self.replies.pop(0) if len(self.replies) > 1 else self.replies[0]
        if not reply.status:
            writer.transport.abort()
            raise ConnectionResetError
        lines = [f"HTTP/1.1 {reply.status} OK", "transfer-encoding: chunked"]
        lines += [f"{name}: {value}" for name, value in reply.headers.items()]
        writer.write("\r\n".join(lines).encode() + b"\r\n\r\n")
        for piece in [reply.body] if isinstance(reply.body, bytes) else reply.body:
            if piece:
                writer.write(b"%x\r\n%s\r\n" % (len(piece), piece))
                await writer.drain()
        self.answering.set()
        match reply.end:
            case "regular":
                writer.write(b"0\r\n\r\n")
                await writer.drain()
            case "reset":
                writer.transport.abort()
                raise ConnectionResetError
            case "silence":
                with suppress(ConnectionError):
                    await reader.read(1)
                self.client_left.set()
                raise ConnectionResetError


@asynccontextmanager
async def provider_server() -> AsyncIterator[ProviderServer]:
    server = ProviderServer()
    listener = await asyncio.start_server(server.serve, "127.0.0.1", 0)
    server.port = listener.sockets[0].getsockname()[1]
    async with listener:
        yield server


def sse(*values: Any, name: str = "") -> bytes:
    """Values as server-sent events; a string is sent as it is."""
    event = f"event: {name}\n" if name else ""
    return "".join(f"{event}data: {v if isinstance(v, str) else json.dumps(v)}\n\n" for v in values).encode()


def delta(content: str | None = None, *, finish: str | None = None, **fields: Any) -> dict[str, Any]:
    """One chat completion chunk."""
    if content is not None:
        fields["content"] = content
    return {
        "id": "chatcmpl-1",
        "object": "chat.completion.chunk",
        "created": 1700000000,
        "model": "m",
        "choices": [{"index": 0, "delta": fields, "finish_reason": finish}],
    }


def call(index: int | None, call_id: str | None = None, name: str | None = None, arguments: str | None = None) -> Any:
    """The delta of one tool call."""
    function = {"name": name, "arguments": arguments}
    made = {"index": index, "id": call_id, "function": {k: v for k, v in function.items() if v is not None}}
    return {key: value for key, value in made.items() if value is not None}


USAGE = {
    "id": "chatcmpl-1",
    "object": "chat.completion.chunk",
    "created": 1700000000,
    "model": "m",
    "choices": [],
    "usage": {
        "prompt_tokens": 11,
        "completion_tokens": 7,
        "total_tokens": 18,
        "prompt_tokens_details": {"cached_tokens": 4},
        "completion_tokens_details": {"reasoning_tokens": 3},
    },
}


def completion(*values: Any) -> Reply:
    """A complete streamed chat completion: ``values`` are chunks or texts."""
    chunks = [delta(v) if isinstance(v, str) else v for v in values]
    if not any(c["choices"] and c["choices"][0]["finish_reason"] for c in chunks):
        chunks.append(delta(finish="stop"))
    return Reply(sse(*chunks, "[DONE]"))


def refused(status: int, body: Any, **headers: str) -> Reply:
    """An HTTP error."""
    content = body if isinstance(body, bytes) else json.dumps(body).encode()
    return Reply(content, status, {"content-type": "application/json", **headers})


def named(headers: Iterable[tuple[str, str]], keep: Callable[[str], bool]) -> list[tuple[str, str]]:
    """The headers whose names ``keep`` accepts, in a fixed order."""
    return sorted((name, value) for name, value in headers if keep(name))
