"""A real server on a free port, in the event loop of the test."""

from __future__ import annotations

import asyncio
import contextlib
import re
import socket
from collections.abc import AsyncGenerator, Callable, Sequence
from pathlib import Path
from typing import Any

import httpx2
import uvicorn
from starlette.types import ASGIApp

from perdure import Agent, App, Limits
from perdure.host.engine import Engine
from perdure.server.transport import WebSocketProtocol
from tests.support.engines import default_engine
from tests.support.tabs import PATIENCE, Tab

__all__ = ["Serving", "serving", "serving_app"]


class Serving:
    """A running server."""

    def __init__(self, port: int, client: httpx2.AsyncClient, server: uvicorn.Server, task: asyncio.Task[None]) -> None:
        self.port = port
        self._client = client
        self._server = server
        self._task = task
        self._open = contextlib.AsyncExitStack()

    async def tab(self, name: str = "room", agent: str = "agent", **options: Any) -> Tab:
        """Open a connection to an agent."""
        return await self.connect(f"/agents/{agent}/{name}", **options)

    async def connect(
        self, path: str, host: str = "127.0.0.1", *, receive_buffer: int | None = None, **options: Any
    ) -> Tab:
        """Open a connection to any path, under any host name; ``receive_buffer`` is in bytes."""
        line = socket.socket()
        if receive_buffer is not None:
            line.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer)
        line.setblocking(False)
        await asyncio.get_running_loop().sock_connect(line, ("127.0.0.1", self.port))
        tab = await Tab.open(f"ws://{host}:{self.port}{path}", sock=line, **options)
        self._open.push_async_callback(tab.close)
        return tab

    async def get(self, path: str, **options: Any) -> httpx2.Response:
        """An HTTP request."""
        return await self.request("GET", path, **options)

    async def request(self, method: str, path: str, **options: Any) -> httpx2.Response:
        """An HTTP request with any method."""
        return await self._client.request(method, f"http://127.0.0.1:{self.port}{path}", **options)

    async def raw(self, request: bytes, until: str = "") -> bytes:
        """Send bytes that no HTTP client would send.

        Args:
            request: The bytes.
            until: Pattern that ends the answer. Without one, the server ends it.
        """
        reader, writer = await asyncio.open_connection("127.0.0.1", self.port)
        writer.write(request)
        answer = b""
        async with asyncio.timeout(PATIENCE):
            while not (until and re.search(until.encode("latin-1"), answer, re.DOTALL)):
                answer += (piece := await reader.read(65536))
                if not piece:
                    break
        writer.close()
        await writer.wait_closed()
        return answer

    async def stored(self, name: str = "room", agent: str = "agent") -> list[dict[str, Any]]:
        """The conversation as ``get-messages`` gives it."""
        response = await self.get(f"/agents/{agent}/{name}/get-messages")
        assert response.status_code == 200, response.text
        return response.json()

    async def stop(self) -> None:
        """End the server as it ends when its process is told to: turns that run stay open in the store."""
        self._server.should_exit = True
        await self._task
        await self._open.aclose()


@contextlib.asynccontextmanager
async def serving(
    *agents: type[Agent],
    data: Path | str,
    limits: Limits | None = None,
    hosts: Sequence[str] = (),
    origins: Sequence[str] = (),
    send_buffer: int | None = None,
    sub_agents: Sequence[type[Agent]] = (),
    idle_seconds: float | None = 60.0,
    engine: Engine | None = None,
    on_event: Callable[[Any], object] | None = None,
) -> AsyncGenerator[Serving]:
    """Serve ``agents`` from the folder ``data``.

    Args:
        agents: The classes.
        data: The folder.
        limits: As for :class:`~perdure.App`, as are ``hosts``, ``origins`` and ``on_event``.
        send_buffer: Bytes that the system buffers for each connection: small, so that a slow reader is felt soon.
        idle_seconds: As for ``App``.
        engine: What to run on.
        sub_agents: Classes that are only reached below another agent.
    """
    app = App(
        *agents,
        sub_agents=sub_agents,
        data=data,
        limits=limits,
        allowed_hosts=hosts,
        allowed_origins=origins,
        on_event=on_event,
        idle_seconds=idle_seconds,
        engine=engine or default_engine(),
    )
    async with serving_app(app, ws=WebSocketProtocol, send_buffer=send_buffer, max_size=app.limits.frame) as running:
        yield running


@contextlib.asynccontextmanager
async def serving_app(
    app: ASGIApp,
    *,
    ws: Any = "websockets-sansio",
    max_size: int = 2**30,
    send_buffer: int | None = None,
    compress: bool = False,
) -> AsyncGenerator[Serving]:
    """Serve any ASGI app.

    Args:
        app: The app.
        ws: uvicorn's WebSocket protocol, by name or as a class.
        max_size: Largest frame that the server takes, in bytes.
        send_buffer: Bytes that the system buffers for each connection.
        compress: Whether frames may be compressed.
    """
    config = uvicorn.Config(
        app,
        port=0,
        ws=ws,
        ws_max_size=max_size,
        ws_per_message_deflate=compress,
        log_config=None,
        log_level="error",
    )
    server = _Server(config)
    listener = config.bind_socket()
    if send_buffer is not None:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, send_buffer)
    task = asyncio.create_task(server.serve(sockets=[listener]))
    await asyncio.wait([task, asyncio.ensure_future(server.up.wait())], return_when=asyncio.FIRST_COMPLETED)
    async with httpx2.AsyncClient(timeout=20) as client:
        running = Serving(listener.getsockname()[1], client, server, task)
        try:
            yield running
        finally:
            await running.stop()


class _Server(uvicorn.Server):
    """Says when it listens."""

    def __init__(self, config: uvicorn.Config) -> None:
        super().__init__(config)
        self.up = asyncio.Event()

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        self.up.set()
