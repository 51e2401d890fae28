"""HTTP requests that an agent answers itself, and the history that it cannot hide."""

import asyncio
import hashlib
from pathlib import Path
from typing import Any

import pytest
from starlette.exceptions import HTTPException
from starlette.responses import JSONResponse, PlainTextResponse, Response, StreamingResponse

from perdure import Agent, App, Limits, Think
from perdure.testing import ScriptedModel, say
from tests.requirements import requirement
from tests.support import ErrorLog, serving_app

pytestmark = pytest.mark.anyio


class Plain(Agent):
    """Says nothing of HTTP."""


class Echo(Think):
    """Answers every request itself."""

    model = ScriptedModel([])
    initial_state = {"requests": 0}

    async def on_request(self, request: Any) -> Response:
        self.set_state({"requests": self.state["requests"] + 1})
        body = await request.body()
        return JSONResponse(
            {
                "agent": self.name,
                "method": request.method,
                "path": request.path_params["path"],
                "url": request.url.path,
                "query": dict(request.query_params),
                "type": request.headers.get("content-type"),
                "body": hashlib.sha256(body).hexdigest(),
                "requests": self.state["requests"],
            },
            status_code=201,
            headers={"x-made-by": "echo"},
        )


@requirement("protocol:11")
async def test_the_default_answer_is_not_implemented(tmp_path: Path) -> None:
    async with serving_app(App(Plain, Echo, data=tmp_path)) as server:
        for method in ("GET", "POST", "DELETE", "OPTIONS"):
            for path in ("/agents/plain/x", "/agents/plain/x/some/path", "/agents/plain/x/"):
                response = await server.request(method, path)
                assert (response.status_code, response.text) == (404, "Not implemented")


@requirement("protocol:11")
@pytest.mark.parametrize("method", ["GET", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"])
async def test_a_request_reaches_the_agent_whole(tmp_path: Path, method: str) -> None:
    body = bytes(range(256)) * 5000
    async with serving_app(App(Echo, data=tmp_path)) as server:
        response = await server.request(
            method, "/agents/echo/a%20b/p%2Fq/r?x=1&y=%26", content=body, headers={"content-type": "application/x-y"}
        )
        assert response.status_code == 201
        assert response.headers["x-made-by"] == "echo"
        assert response.json() == {
            "agent": "a%20b",
            "method": method,
            "path": "p%2Fq/r",
            "url": "/agents/echo/a b/p/q/r",
            "query": {"x": "1", "y": "&"},
            "type": "application/x-y",
            "body": hashlib.sha256(body).hexdigest(),
            "requests": 1,
        }


async def test_request_and_connection_are_about_the_same_agent(tmp_path: Path) -> None:
    async with serving_app(App(Echo, data=tmp_path)) as server:
        tab = await server.tab(agent="echo")
        await tab.opened()
        await server.get("/agents/echo/room")
        await tab.seen(lambda frame: frame == {"type": "cf_agent_state", "state": {"requests": 1}})


@requirement("protocol:10")
async def test_history_is_answered_at_every_path_before_the_agent_is_asked(tmp_path: Path) -> None:
    class Chatty(Echo):
        model = ScriptedModel([[say("Hello.")]])

    async with serving_app(App(Chatty, data=tmp_path)) as server:
        tab = await server.tab(agent="chatty")
        await tab.ask("r1", "Hi")
        await tab.done("r1")
        stored = await server.stored(agent="chatty")
        assert [message["role"] for message in stored] == ["user", "assistant"]
        for path in ("/get-messages", "/get-messages/", "/deep/in/there/get-messages", "/get-messages?x=1"):
            assert (await server.get(f"/agents/chatty/room{path}")).json() == stored
        assert (await server.request("POST", "/agents/chatty/room/x/get-messages", content=b"x")).json() == stored
        assert (await server.get("/agents/chatty/room/get-messages/not")).status_code == 201


async def test_an_agent_that_does_not_chat_has_no_history(tmp_path: Path) -> None:
    async with serving_app(App(Plain, data=tmp_path)) as server:
        response = await server.get("/agents/plain/x/get-messages")
        assert (response.status_code, response.text) == (404, "Not implemented")


async def test_a_body_is_a_stream(tmp_path: Path) -> None:
    taken: list[bytes] = []
    first_half, rest = asyncio.Event(), asyncio.Event()

    class Taking(Agent):
        async def on_request(self, request: Any) -> Response:
            async for chunk in request.stream():
                taken.append(chunk)
                first_half.set()
            return PlainTextResponse(b"".join(taken))

    async def body() -> Any:
        yield b"first"
        await rest.wait()
        yield b"second"

    async with serving_app(App(Taking, data=tmp_path)) as server:
        asking = asyncio.create_task(server.request("POST", "/agents/taking/x", content=body()))
        await first_half.wait()
        assert taken == [b"first"]
        rest.set()
        assert (await asking).text == "firstsecond"


async def test_an_answer_is_a_stream(tmp_path: Path) -> None:
    arrived = asyncio.Event()

    class Giving(Agent):
        async def on_request(self, request: Any) -> Response:
            async def parts() -> Any:
                yield b"first"
                await arrived.wait()
                yield b"second"

            return StreamingResponse(parts())

    async with serving_app(App(Giving, data=tmp_path)) as server:
        reader, writer = await asyncio.open_connection("127.0.0.1", server.port)
        writer.write(b"GET /agents/giving/x HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
        async with asyncio.timeout(10):
            await reader.readuntil(b"first")
            arrived.set()
            assert b"second" in await reader.read()
        writer.close()
        await writer.wait_closed()


class Failing(Agent):
    async def on_request(self, request: Any) -> Any:
        match request.path_params["path"]:
            case "raise":
                raise RuntimeError("the password is hunter2")
            case "http":
                raise HTTPException(418, "No coffee here.", headers={"x-pot": "tea"})
            case "nothing":
                return None
            case "late":

                def parts() -> Any:
                    yield b"x"
                    raise RuntimeError("the password is hunter2")

                return StreamingResponse(parts())
        return PlainTextResponse("fine")


async def test_what_an_agent_raises_stays_inside(tmp_path: Path, log: ErrorLog) -> None:
    async with serving_app(App(Failing, data=tmp_path)) as server:
        for path in ("raise", "nothing"):
            response = await server.get(f"/agents/failing/x/{path}")
            assert (response.status_code, response.text) == (500, "Internal Server Error")
        response = await server.get("/agents/failing/x/http")
        assert (response.status_code, response.text, response.headers["x-pot"]) == (418, "No coffee here.", "tea")
        cut = await server.raw(b"GET /agents/failing/x/late HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
        assert b"hunter2" not in cut
        assert not cut.endswith(b"0\r\n\r\n"), "a broken answer must not look complete"
        assert (await server.get("/agents/failing/x")).text == "fine"
    log.expect("Failing.on_request failed")
    log.expect("Exception in ASGI application")


async def test_a_synchronous_method_answers_as_well(tmp_path: Path) -> None:
    class Sync(Agent):
        def on_request(self, request: Any) -> Response:  # pyright: ignore[reportIncompatibleMethodOverride]
            return PlainTextResponse(self.name)

    async with serving_app(App(Sync, data=tmp_path)) as server:
        assert (await server.get("/agents/sync/me")).text == "me"


@pytest.mark.parametrize("announced", [True, False])
async def test_a_body_that_is_too_large_is_refused(tmp_path: Path, announced: bool) -> None:
    taken: list[int] = []

    class Taking(Agent):
        async def on_request(self, request: Any) -> Response:
            nonlocal taken
            async for chunk in request.stream():
                taken += [len(chunk)]
            return Response()

    async def in_parts() -> Any:
        for _ in range(10):
            yield b"x" * 1000

    app = App(Taking, data=tmp_path, limits=Limits(body=5000))
    async with serving_app(app) as server:
        fits = await server.request("POST", "/agents/taking/x", content=b"x" * 5000)
        assert (fits.status_code, sum(taken)) == (200, 5000)
        taken.clear()
        content = b"x" * 5001 if announced else in_parts()
        response = await server.request("POST", "/agents/taking/x", content=content)
        assert response.status_code == 413
        assert "5000" in response.text
        assert sum(taken) <= (0 if announced else 5000)


async def test_a_client_that_goes_away_in_the_middle_harms_nobody(tmp_path: Path) -> None:
    gone = asyncio.Event()

    class Patient(Agent):
        async def on_request(self, request: Any) -> Response:
            if request.method == "POST":
                try:
                    await request.body()
                finally:
                    gone.set()
            return PlainTextResponse("here")

    async with serving_app(App(Patient, data=tmp_path)) as server:
        _, writer = await asyncio.open_connection("127.0.0.1", server.port)
        writer.write(b"POST /agents/patient/x HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100\r\n\r\nhalf")
        await writer.drain()
        writer.close()
        async with asyncio.timeout(10):
            await gone.wait()
        assert (await server.get("/agents/patient/x")).text == "here"
