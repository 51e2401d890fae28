"""The protocol class of ``perdure serve``: the same frames in the same order as uvicorn's own, only sooner."""

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest
from websockets.asyncio.client import connect
from websockets.frames import Frame, Opcode

from perdure import Agent, App, Connection, callable
from perdure.server.transport import PIECE, WebSocketProtocol
from tests.support import ErrorLog, serving_app

pytestmark = pytest.mark.anyio

KIB = 1024
both = pytest.mark.parametrize("ws", [WebSocketProtocol, "websockets-sansio"])


class Speaker(Agent):
    """Says what it is told to."""

    send_identity_on_connect = False

    def sends_protocol_messages(self, connection: Connection) -> bool:
        return False

    @callable
    def say(self, sizes: list[int], character: str = "x") -> None:
        for number, size in enumerate(sizes):
            self.broadcast(json.dumps({"type": "said", "n": number, "text": character * size}, ensure_ascii=False))

    @callable
    async def say_apart(self, times: int) -> None:
        for number in range(times):
            self.broadcast(json.dumps({"type": "said", "n": number}))
            await asyncio.sleep(0)

    @callable
    def broken_text(self) -> None:
        self.broadcast('{"type":"said","text":"\ud800"}')

    @callable
    def say_and_leave(self, times: int) -> None:
        for number in range(times):
            self.broadcast(json.dumps({"type": "said", "n": number}))
        for connection in self.connections:
            connection.close(4000, "That was all.")


SIZES = [
    pytest.param([10] * 2000, id="many small ones"),
    pytest.param([PIECE - 60, PIECE, PIECE + 1, 5, 3 * PIECE, 5], id="around the size of a piece"),
    pytest.param([1, 125, 126, 127, 128, 65_535, 65_536, 70_000], id="around the lengths of WebSocket headers"),
    pytest.param([5, 2_000_000, 5, 2_000_000, 5], id="large ones among small ones"),
]


@both
@pytest.mark.parametrize("sizes", SIZES)
@pytest.mark.parametrize("character", ["x", "☃"])
async def test_every_frame_arrives_whole_and_in_order(
    tmp_path: Path, ws: Any, sizes: list[int], character: str
) -> None:
    async with serving_app(App(Speaker, data=tmp_path), ws=ws) as server:
        tabs = [await server.tab(agent="speaker") for _ in range(3)]
        await tabs[0].send({"type": "rpc", "id": "1", "method": "say", "args": [sizes, character]})
        await tabs[0].seen(lambda frame: frame.get("id") == "1")
        for tab in tabs:
            await tab.seen(lambda frame: frame.get("n") == len(sizes) - 1)
            said = [frame for frame in tab.frames if frame["type"] == "said"]
            assert [(frame["n"], len(frame["text"])) for frame in said] == list(enumerate(sizes))
            assert all(set(frame["text"]) <= {character} for frame in said)


@both
async def test_a_reader_that_falls_behind_and_catches_up_gets_everything_in_order(tmp_path: Path, ws: Any) -> None:
    async with serving_app(App(Speaker, data=tmp_path), ws=ws, send_buffer=16 * KIB) as server:
        asking = await server.tab(agent="speaker")
        slow = await server.tab(agent="speaker", reading=False, receive_buffer=16 * KIB, max_queue=1)
        expected: list[int] = []
        for round in range(20):
            sizes = [100] * 50 if round % 2 else [20 * KIB] * 20
            await asking.send({"type": "rpc", "id": f"{round}", "method": "say", "args": [sizes]})
            await asking.seen(lambda frame, id=f"{round}": frame.get("id") == id)
            expected += range(len(sizes))
            if round == 10:
                slow.read_on()
        await asking.send({"type": "rpc", "id": "last", "method": "sayApart", "args": [100]})
        expected += range(100)
        await slow.seen(lambda frame: len([f for f in slow.frames if f["type"] == "said"]) == len(expected))
        assert [frame["n"] for frame in slow.frames if frame["type"] == "said"] == expected


@both
async def test_what_was_said_before_a_close_arrives_before_it(tmp_path: Path, ws: Any) -> None:
    async with serving_app(App(Speaker, data=tmp_path), ws=ws) as server:
        asking, other = await server.tab(agent="speaker"), await server.tab(agent="speaker")
        await asking.send({"type": "rpc", "id": "1", "method": "sayAndLeave", "args": [500]})
        for tab in (asking, other):
            assert await tab.ended() == (4000, "That was all.")
            assert [frame["n"] for frame in tab.frames if frame["type"] == "said"] == list(range(500))


async def test_text_that_has_no_bytes_is_mended_and_ends_no_connection(tmp_path: Path) -> None:
    async with serving_app(App(Speaker, data=tmp_path), ws=WebSocketProtocol) as server:
        tab = await server.tab(agent="speaker")
        await tab.send({"type": "rpc", "id": "1", "method": "brokenText", "args": []})
        assert await tab.seen(lambda frame: frame["type"] == "said") == {"type": "said", "text": "?"}
        await tab.seen(lambda frame: frame.get("id") == "1")


async def test_compression_that_was_agreed_on_is_used(tmp_path: Path) -> None:
    async with serving_app(App(Speaker, data=tmp_path), ws=WebSocketProtocol, compress=True) as server:
        address = f"ws://127.0.0.1:{server.port}/agents/speaker/x"
        async with connect(address, proxy=None, compression="deflate") as socket:
            assert socket.response is not None
            assert "permessage-deflate" in socket.response.headers["Sec-WebSocket-Extensions"]
            await socket.send(json.dumps({"type": "rpc", "id": "1", "method": "say", "args": [[10_000] * 3]}))
            said = [json.loads(await socket.recv()) for _ in range(3)]
            assert [(frame["n"], len(frame["text"])) for frame in said] == [(0, 10_000), (1, 10_000), (2, 10_000)]


async def test_cutting_a_connection_that_has_gone_does_nothing() -> None:
    cuts: list[Any] = []
    gone = asyncio.Event()

    async def app(scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] == "websocket":
            cuts.append(scope["extensions"]["perdure.transport"]["abort"])
            await receive()
            await send({"type": "websocket.accept"})
            await send({"type": "websocket.send", "text": "x" * 8_000_000})

    class Watched(WebSocketProtocol):
        def connection_lost(self, exc: Exception | None) -> None:
            super().connection_lost(exc)
            gone.set()

    async with serving_app(app, ws=Watched) as server:
        async with connect(f"ws://127.0.0.1:{server.port}/", proxy=None, max_size=None) as socket:
            assert len(await socket.recv()) == 8_000_000
        async with asyncio.timeout(10):
            await gone.wait()
        await asyncio.sleep(0)  # asyncio lets go of the transport one step after it has said so
        cuts[0]()


async def test_frames_go_out_in_the_last_moment_before_the_server_stops(tmp_path: Path) -> None:
    class Parting(Speaker):
        def on_message(self, connection: Connection, text: str) -> None:
            for number in range(10):
                connection.send(json.dumps({"type": "said", "n": number}))
            for protocol in live:
                protocol.shutdown()

    live: list[WebSocketProtocol] = []

    class Listed(WebSocketProtocol):
        def connection_made(self, transport: Any) -> None:
            super().connection_made(transport)
            live.append(self)

    async with serving_app(App(Parting, data=tmp_path), ws=Listed) as server:
        tab = await server.tab(agent="parting")
        await tab.send("go")
        assert (await tab.ended())[0] == 1012
        assert [frame["n"] for frame in tab.frames if frame["type"] == "said"] == list(range(10))


@pytest.mark.parametrize(
    "pieces", [[b"\xff"], [b'{"a":"', b"\xf0\x9f\x90", b'"}'], [b"\xed\xa0\x80"], [b"{}", b"\xc3"]]
)
async def test_text_that_is_no_utf8_closes_the_connection_that_sent_it_and_is_no_error_of_the_server(
    tmp_path: Path, log: ErrorLog, pieces: list[bytes]
) -> None:
    async with serving_app(App(Speaker, data=tmp_path), ws=WebSocketProtocol) as server:
        tab, other = await server.tab(agent="speaker"), await server.tab(agent="speaker")
        for number, piece in enumerate(pieces):
            opcode = Opcode.CONT if number else Opcode.TEXT
            tab.write(Frame(opcode, piece, fin=number == len(pieces) - 1).serialize(mask=True))
        tab.write_frame("{}")
        code, reason = await tab.ended()
        assert code == 1007
        assert "UTF-8" in reason
        await other.send({"type": "rpc", "id": "1", "method": "say", "args": [[3]]})
        await other.seen(lambda frame: frame.get("id") == "1")
    assert log.errors == []
