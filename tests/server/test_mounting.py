"""The app inside another app: Starlette and FastAPI, under a prefix, with and without its start and stop wired."""

import asyncio
import contextlib
from collections.abc import AsyncGenerator, Callable
from pathlib import Path
from typing import Any

import pytest
from fastapi import FastAPI
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.middleware.gzip import GZipMiddleware
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Mount, Route
from starlette.types import ASGIApp

from perdure import App, Think
from perdure.storage.sqlite import SqliteStore
from perdure.testing import Gate, ScriptedModel, pause, say
from tests.support import chunks_of, serving_app, text_of

pytestmark = pytest.mark.anyio


def chat(*steps: Any) -> type[Think]:
    class Chat(Think):
        model = ScriptedModel(steps)

        async def on_request(self, request: Any) -> Response:
            return PlainTextResponse(f"{self.name}: {request.path_params['path']} at {request.url.path}")

    return Chat


def in_starlette(app: App, at: str, **options: Any) -> ASGIApp:
    return Starlette(routes=[Route("/", lambda request: PlainTextResponse("host")), Mount(at, app=app)], **options)


def in_fastapi(app: App, at: str, **options: Any) -> ASGIApp:
    outer = FastAPI(**options)

    @outer.get("/")
    def root() -> str:
        return "host"

    outer.mount(at, app)
    return outer


Framework = Callable[..., ASGIApp]
both = pytest.mark.parametrize("framework", [in_starlette, in_fastapi])


@both
@pytest.mark.parametrize("at", ["/chat", "/deep/er", "/with%20space"])
async def test_a_mounted_app_chats(tmp_path: Path, framework: Framework, at: str) -> None:
    app = App(chat([say("Hello.")]), data=tmp_path)
    decoded = at.replace("%20", " ")
    async with serving_app(framework(app, decoded, lifespan=app.lifespan)) as server:
        tab = await server.connect(f"{at}/agents/chat/a%20b")
        assert {"type": "cf_agent_identity", "name": "a%20b", "agent": "chat"} in await tab.opened()
        await tab.ask("r1", "Hi")
        await tab.done("r1")
        assert text_of(chunks_of(tab.frames, "r1")) == "Hello."
        stored = (await server.get(f"{at}/agents/chat/a%20b/get-messages")).json()
        assert [message["role"] for message in stored] == ["user", "assistant"]
        response = await server.get(f"{at}/agents/chat/a%20b/tail/x")
        assert response.text == f"a%20b: tail/x at {decoded}/agents/chat/a b/tail/x"
        assert (await server.get(f"{at}/health")).json()["status"] == "ok"
        assert (await server.get(f"{at}/agents/none/x")).status_code == 400
        assert "host" in (await server.get("/")).text
        assert (await server.get("/agents/chat/a%20b/get-messages")).status_code == 404


@both
async def test_an_app_starts_with_its_first_request_when_nobody_starts_it(tmp_path: Path, framework: Framework) -> None:
    app = App(chat([say("Hello.")]), data=tmp_path)
    async with serving_app(framework(app, "/chat")) as server:
        assert not (tmp_path / "perdure.db").exists()
        tabs = await asyncio.gather(*(server.connect("/chat/agents/chat/room") for _ in range(5)))
        for tab in tabs:
            await tab.opened()
        await app.stop()


@both
async def test_the_lifespan_starts_and_stops(tmp_path: Path, framework: Framework) -> None:
    gate = Gate()
    kind = chat([say("Half"), pause(gate)], [say("Whole.")])
    app = App(kind, data=tmp_path)
    async with serving_app(framework(app, "/chat", lifespan=app.lifespan)) as server:
        assert (tmp_path / "perdure.db").exists()
        tab = await server.connect("/chat/agents/chat/room")
        await tab.ask("r1", "Hi")
        await tab.delta("r1", "Half")
    store = await SqliteStore.open(tmp_path)  # the folder is free: the app has stopped
    await store.close()
    async with serving_app(App(kind, data=tmp_path)) as server:
        stored = await server.stored(agent="chat")
        assert stored[1]["parts"][-1]["text"] == "Half", "the turn that ran was kept as far as it was said"


@both
async def test_within_a_lifespan_of_the_hosts_own(tmp_path: Path, framework: Framework) -> None:
    app = App(chat(), data=tmp_path)
    order: list[str] = []

    @contextlib.asynccontextmanager
    async def lifespan(outer: Any) -> AsyncGenerator[None]:
        order.append("begin")
        async with app.lifespan(outer):
            yield
        order.append("end")

    async with serving_app(framework(app, "/chat", lifespan=lifespan)) as server:
        await (await server.connect("/chat/agents/chat/room")).opened()
    assert order == ["begin", "end"]


async def test_behind_a_middleware_that_wraps_send(tmp_path: Path) -> None:
    app = App(chat([say("Hello.")]), data=tmp_path)
    outer = in_starlette(app, "/chat", lifespan=app.lifespan, middleware=[Middleware(GZipMiddleware, minimum_size=1)])
    async with serving_app(outer) as server:
        tab = await server.connect("/chat/agents/chat/room")
        await tab.ask("r1", "Hi")
        await tab.done("r1")
        response = await server.get("/chat/agents/chat/room/get-messages", headers={"accept-encoding": "gzip"})
        assert response.headers["content-encoding"] == "gzip"
        assert len(response.json()) == 2


async def test_two_apps_in_one(tmp_path: Path) -> None:
    one, two = App(chat(), data=tmp_path / "one"), App(chat(), data=tmp_path / "two", prefix="bots")

    @contextlib.asynccontextmanager
    async def lifespan(outer: Any) -> AsyncGenerator[None]:
        async with one.lifespan(), two.lifespan():
            yield

    outer = Starlette(routes=[Mount("/one", app=one), Mount("/two", app=two)], lifespan=lifespan)
    async with serving_app(outer) as server:
        await (await server.connect("/one/agents/chat/room")).opened()
        await (await server.connect("/two/bots/chat/room")).opened()
        assert (await (await server.connect("/two/agents/chat/room")).ended())[0] == 4404


async def test_a_stopped_app_tells_its_tabs_to_come_back(tmp_path: Path) -> None:
    app = App(chat(), data=tmp_path)
    async with serving_app(in_starlette(app, "/chat")) as server:
        tabs = [await server.connect(f"/chat/agents/chat/{name}") for name in "abc"]
        for tab in tabs:
            await tab.opened()
        await app.stop()
        for tab in tabs:
            assert (await tab.ended())[0] == 1012
        late = await server.connect("/chat/agents/chat/a")
        assert (await late.ended())[0] == 1013
        await app.start()
        await (await server.connect("/chat/agents/chat/a")).opened()
        await app.stop()
