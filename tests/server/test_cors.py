"""CORS: which answers get the headers, and that nothing is woken for a preflight."""

import contextlib
from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any

import pytest
from starlette.responses import Response, StreamingResponse
from websockets.asyncio.client import connect

from perdure import App, IncomingRequest, Refuse, Think
from perdure.testing import ScriptedModel
from tests.requirements import requirement
from tests.support import ErrorLog, Serving, serving_app

pytestmark = pytest.mark.anyio

FOREIGN = {"Origin": "https://chat.example"}
EVERYBODY = {
    "access-control-allow-origin": "*",
    "access-control-allow-methods": "GET, POST, HEAD, OPTIONS",
    "access-control-allow-headers": "*",
    "access-control-max-age": "86400",
}


class Room(Think):
    model = ScriptedModel([])
    woken: list[str] = []

    def on_start(self) -> None:
        self.woken.append(self.name)

    async def on_request(self, request: Any) -> Response:
        match request.path_params["path"]:
            case "stream":
                return StreamingResponse(iter([b"a", b"b"]))
            case "fail":
                raise RuntimeError("secret")
        return Response(request.method)


@contextlib.asynccontextmanager
async def room(data: Path, **options: Any) -> AsyncGenerator[Serving]:
    Room.woken = []
    async with serving_app(App(Room, data=data, **options)) as server:
        yield server


def cors_of(response: Any) -> dict[str, str]:
    return {name: value for name, value in response.headers.items() if name.startswith("access-control-")}


@requirement("protocol:12")
async def test_a_preflight_is_answered_without_waking_the_agent(tmp_path: Path) -> None:
    asked: list[IncomingRequest] = []
    async with room(tmp_path, cors=True, on_before_request=asked.append) as server:
        asking = {**FOREIGN, "Access-Control-Request-Method": "POST", "Access-Control-Request-Headers": "x-key"}
        for path in ("/agents/room/r", "/agents/room/r/get-messages", "/agents/room/r/any/path"):
            response = await server.request("OPTIONS", path, headers=asking)
            assert (response.status_code, response.content) == (200, b"")
            assert cors_of(response) == EVERYBODY
    assert (Room.woken, asked) == ([], [])


async def test_every_answer_of_an_agent_has_the_headers(tmp_path: Path, log: ErrorLog) -> None:
    def hook(request: IncomingRequest) -> Refuse | None:
        return Refuse(401) if "refuse" in request.query else None

    async with room(tmp_path, cors=True, on_before_request=hook) as server:
        expected = {
            "/agents/room/r/get-messages": 200,
            "/agents/room/r/stream": 200,
            "/agents/room/r?refuse=1": 401,
            "/agents/room/r/fail": 500,
        }
        for path, status in expected.items():
            response = await server.get(path, headers=FOREIGN)
            assert (response.status_code, cors_of(response)) == (status, EVERYBODY), path
        too_long = await server.request("POST", "/agents/room/r", headers=FOREIGN, content=b"x" * (2**24 + 1))
        assert (too_long.status_code, cors_of(too_long)) == (413, EVERYBODY)
    log.expect("Room.on_request failed")


async def test_what_is_no_agent_has_none(tmp_path: Path) -> None:
    async with room(tmp_path, cors=True) as server:
        for path, status in {"/agents/unknown/x": 400, "/agents/room": 404, "/health": 200, "/else": 404}.items():
            for method in ("GET", "OPTIONS"):
                response = await server.request(method, path, headers=FOREIGN)
                assert cors_of(response) == {}, path
            assert (await server.get(path)).status_code == status


async def test_a_set_of_headers_is_used_as_it_is(tmp_path: Path) -> None:
    given = {"Access-Control-Allow-Origin": "https://chat.example", "Access-Control-Allow-Credentials": "true"}
    async with room(tmp_path, cors=given) as server:
        preflight = await server.request("OPTIONS", "/agents/room/r", headers=FOREIGN)
        answer = await server.get("/agents/room/r/get-messages", headers=FOREIGN)
        for response in (preflight, answer):
            assert response.status_code == 200
            assert cors_of(response) == {name.lower(): value for name, value in given.items()}


async def test_the_origin_that_cors_names_may_ask_and_no_other(tmp_path: Path) -> None:
    async with room(tmp_path, cors={"access-control-allow-origin": "https://chat.example"}) as server:
        assert (await server.get("/agents/room/r", headers=FOREIGN)).status_code == 200
        refused = await server.get("/agents/room/r", headers={"Origin": "https://evil.example"})
        assert refused.status_code == 403
        assert cors_of(refused) == {}


async def test_cors_opens_no_websocket(tmp_path: Path) -> None:
    async with room(tmp_path, cors=True) as server:
        code, reason = await (await server.tab(agent="room", additional_headers=FOREIGN)).ended()
        assert code == 4403
        assert "--allow-origin" in reason
        async with connect(f"ws://127.0.0.1:{server.port}/agents/room/r", proxy=None) as socket:
            assert socket.response is not None
            names = [name.lower() for name, _ in socket.response.headers.raw_items()]
            assert "upgrade" in names
            assert not [name for name in names if name.startswith("access-control-")]


async def test_cors_does_not_open_the_server_to_other_host_names(tmp_path: Path) -> None:
    async with room(tmp_path, cors=True) as server:
        assert (await server.get("/agents/room/r", headers={"Host": "evil.example"})).status_code == 403


async def test_without_cors_options_go_to_the_agent_and_nothing_has_headers(tmp_path: Path) -> None:
    async with room(tmp_path) as server:
        response = await server.request("OPTIONS", "/agents/room/r")
        assert (response.text, cors_of(response)) == ("OPTIONS", {})
        assert (await server.get("/agents/room/r", headers=FOREIGN)).status_code == 403
    assert Room.woken == ["r"]
