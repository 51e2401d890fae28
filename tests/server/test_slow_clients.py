"""Clients that are there and read nothing: they are let go of, and cost the others nothing."""

import asyncio
import contextlib
import itertools
import json
import socket
from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any

import pytest

from perdure import Agent, App, Limits, callable
from perdure.server.transport import WebSocketProtocol
from tests.support import ErrorLog, Tab, serving_app

pytestmark = pytest.mark.anyio

KIB = 1024
PIECE = 64 * KIB

_ids = itertools.count(1)


class Loud(Agent):
    """Says a lot to everybody."""

    gone: asyncio.Event

    def on_start(self) -> None:
        type(self).gone = asyncio.Event()

    @callable
    def shout(self, number: int) -> int:
        self.broadcast(json.dumps({"type": "shout", "n": number, "text": "x" * PIECE}))
        return len(self.connections)

    def on_close(self, connection: Any) -> None:
        self.gone.set()


class Watched(WebSocketProtocol):
    """Says when a connection's socket is really closed."""

    lost: asyncio.Queue[None]

    def connection_lost(self, exc: Exception | None) -> None:
        super().connection_lost(exc)
        self.lost.put_nowait(None)


@pytest.fixture(autouse=True)
def lost() -> asyncio.Queue[None]:
    Watched.lost = asyncio.Queue()
    return Watched.lost


@contextlib.asynccontextmanager
async def silent_client(port: int) -> AsyncGenerator[None]:
    """A WebSocket that is opened and then never read from. It is closed however the test ends, before the server is."""
    loop = asyncio.get_running_loop()
    with socket.socket() as client:
        client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4 * KIB)
        client.setblocking(False)
        await loop.sock_connect(client, ("127.0.0.1", port))
        await loop.sock_sendall(
            client,
            b"GET /agents/loud/room HTTP/1.1\r\nHost: localhost\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
            b"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n",
        )
        yield


async def shout(tab: Tab, number: int) -> int:
    """Shout; gives how many hear it. An earlier reply never passes for this one's."""
    id, start = f"shout-{next(_ids)}", len(tab.frames)
    await tab.send({"type": "rpc", "id": id, "method": "shout", "args": [number]})
    return (await tab.next(lambda frame: frame.get("id") == id, since=start))["result"]


async def until_left_alone(tab: Tab) -> int:
    """Shout from when there is somebody else until there is nobody else; gives how often."""
    met = False
    for number in range(1000):
        listeners = await shout(tab, number)
        met = met or listeners == 2
        if met and listeners == 1:
            return number + 1
    raise AssertionError("the silent client is still connected")


@pytest.mark.parametrize("ws", [Watched, "websockets-sansio"])
async def test_a_client_that_reads_nothing_is_let_go_of_and_others_miss_nothing(tmp_path: Path, ws: Any) -> None:
    limits = Limits(backlog=256 * KIB, patience=0.2)
    async with serving_app(App(Loud, data=tmp_path, limits=limits), ws=ws, send_buffer=16 * KIB) as server:
        tab = await server.tab(agent="loud")
        await tab.opened()
        async with silent_client(server.port):
            times = await until_left_alone(tab)
            assert [frame["n"] for frame in tab.frames if frame["type"] == "shout"] == list(range(times))
            await Loud.gone.wait()
            back = await server.tab(agent="loud")
            await back.opened()
            assert await shout(tab, 2000) == 2


async def test_its_socket_is_closed_although_it_takes_nothing(tmp_path: Path, lost: asyncio.Queue[None]) -> None:
    limits = Limits(backlog=256 * KIB, patience=0.2)
    async with serving_app(App(Loud, data=tmp_path, limits=limits), ws=Watched, send_buffer=16 * KIB) as server:
        tab = await server.tab(agent="loud")
        async with silent_client(server.port):
            await until_left_alone(tab)
            async with asyncio.timeout(10):
                await lost.get()
            assert tab.closed is None


async def test_a_connection_that_the_agent_closes_ends_although_it_takes_nothing(
    tmp_path: Path, lost: asyncio.Queue[None]
) -> None:
    class Strict(Loud):
        @callable
        def hang_up(self) -> None:
            for connection in self.connections[1:]:
                connection.send("x" * 1024 * KIB)
                connection.close(4000, "Out.")

    Strict.__name__ = "Loud"
    limits = Limits(patience=0.2)
    async with serving_app(App(Strict, data=tmp_path, limits=limits), ws=Watched, send_buffer=16 * KIB) as server:
        tab = await server.tab(agent="loud")
        await tab.opened()
        async with silent_client(server.port):
            while await shout(tab, 1) == 1:
                pass
            await tab.send({"type": "rpc", "id": "h", "method": "hangUp", "args": []})
            async with asyncio.timeout(10):
                await lost.get()
                await Strict.gone.wait()


async def test_a_client_that_reads_slowly_is_told_before_it_is_closed(tmp_path: Path) -> None:
    limits = Limits(backlog=256 * KIB, patience=20)
    async with serving_app(App(Loud, data=tmp_path, limits=limits), ws=Watched, send_buffer=16 * KIB) as server:
        tab = await server.tab(agent="loud")
        slow = await server.tab(agent="loud", reading=False, receive_buffer=16 * KIB, max_queue=1)
        for number in range(40):
            await shout(tab, number)
        slow.read_on()
        code, reason = await slow.ended()
        assert code == 1013
        assert "reads too slowly" in reason


async def test_the_server_stops_with_a_client_that_takes_nothing(
    tmp_path: Path, lost: asyncio.Queue[None], log: ErrorLog
) -> None:
    async with serving_app(App(Loud, data=tmp_path), ws=Watched, send_buffer=16 * KIB) as server:
        tab = await server.tab(agent="loud")
        async with silent_client(server.port):
            for number in range(20):
                await shout(tab, number)
            async with asyncio.timeout(10):
                await server.stop()
            assert tab.closed is not None
            assert tab.closed[0] == 1012
