"""A real server on a free port, in the event loop of the test."""

from __future__ import annotations

import asyncio
import contextlib
import socket
from collections.abc import AsyncGenerator, Sequence
from pathlib import Path
from typing import Any

import httpx2
import uvicorn

from perdure import Agent, App, Limits
from tests.support.tabs import Tab

__all__ = ["Serving", "serving"]


class Serving:
    """A running server."""

    def __init__(self, port: int, client: httpx2.AsyncClient) -> None:
        self.port = port
        self._client = client
        self._open = contextlib.AsyncExitStack()

    async def tab(self, name: str = "room", agent: str = "agent", **options: Any) -> Tab:
        """Open a connection to an agent."""
        tab = await Tab.open(f"ws://127.0.0.1:{self.port}/agents/{agent}/{name}", **options)
        self._open.push_async_callback(tab.close)
        return tab

    async def get(self, path: str, **options: Any) -> httpx2.Response:
        """An HTTP request."""
        return await self._client.get(f"http://127.0.0.1:{self.port}{path}", **options)

    async def stored(self, name: str = "room", agent: str = "agent") -> list[dict[str, Any]]:
        """The conversation as ``get-messages`` gives it."""
        response = await self.get(f"/agents/{agent}/{name}/get-messages")
        assert response.status_code == 200, response.text
        return response.json()

    async def close(self) -> None:
        await self._open.aclose()


@contextlib.asynccontextmanager
async def serving(
    *agents: type[Agent],
    data: Path | str,
    limits: Limits | None = None,
    hosts: Sequence[str] = (),
    sub_agents: Sequence[type[Agent]] = (),
) -> AsyncGenerator[Serving]:
    """Serve ``agents`` from the folder ``data``."""
    app = App(*agents, sub_agents=sub_agents, data=data, limits=limits, allowed_hosts=hosts)
    config = uvicorn.Config(
        app,
        port=0,
        ws="websockets-sansio",
        ws_max_size=app.limits.frame,
        ws_per_message_deflate=False,
        log_level="error",
    )
    server = _Server(config)
    listener = config.bind_socket()
    task = asyncio.create_task(server.serve(sockets=[listener]))
    await asyncio.wait([task, asyncio.ensure_future(server.up.wait())], return_when=asyncio.FIRST_COMPLETED)
    async with httpx2.AsyncClient(timeout=20) as client:
        running = Serving(listener.getsockname()[1], client)
        try:
            yield running
        finally:
            await running.close()
            server.should_exit = True
            await task


class _Server(uvicorn.Server):
    """Says when it listens."""

    def __init__(self, config: uvicorn.Config) -> None:
        super().__init__(config)
        self.up = asyncio.Event()

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        self.up.set()
