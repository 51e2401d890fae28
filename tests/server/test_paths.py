"""Other paths than the usual ones: a prefix of one's own, and URLs that the application maps to agents."""

from pathlib import Path
from typing import Any

import pytest
from starlette.responses import PlainTextResponse, Response

from perdure import Agent, App, ConfigurationError, IncomingRequest, Refuse, Think
from perdure.testing import ScriptedModel, say
from tests.requirements import requirement
from tests.support import ErrorLog, serving_app

pytestmark = pytest.mark.anyio


class Chat(Think):
    model = ScriptedModel([[say("Hello.")], [say("Again.")]])

    async def on_request(self, request: Any) -> Response:
        return PlainTextResponse(f"{self.name}: {request.path_params['path']}")


class Other(Agent):
    """Not served."""


def identity(name: str) -> dict[str, Any]:
    return {"type": "cf_agent_identity", "name": name, "agent": "chat"}


@pytest.mark.parametrize("prefix", ["api/v1/agents", "/api/v1/agents/", "api//v1/agents"])
async def test_a_prefix_of_several_segments(tmp_path: Path, prefix: str) -> None:
    async with serving_app(App(Chat, data=tmp_path, prefix=prefix)) as server:
        assert identity("room") in await (await server.connect("/api/v1/agents/chat/room")).opened()
        assert (await server.get("/api/v1/agents/chat/room/get-messages")).json() == []
        assert (await server.get("/api/v1/agents/chat/room/a/b")).text == "room: a/b"
        for path in ("/agents/chat/room", "/api/v1/agents", "/api/v1/agents/chat", "/api/agents/chat/room"):
            assert (await server.get(path)).status_code == 404
        assert (await server.get("/api/v1/agents/nothing/room")).status_code == 400
        assert (await (await server.connect("/agents/chat/room")).ended())[0] == 4404


@pytest.mark.parametrize("prefix", ["", "/", "//", "a?b", "a b", "a#b", "a%20b"])
def test_an_unusable_prefix_is_an_error(prefix: str) -> None:
    with pytest.raises(ConfigurationError, match="prefix"):
        App(Chat, prefix=prefix)


async def test_the_page_is_told_the_prefix(tmp_path: Path) -> None:
    async with serving_app(App(Chat, data=tmp_path, prefix="/api/chat/")) as server:
        assert (await server.get("/playground.json")).json()["prefix"] == "api/chat"


def by_user(request: IncomingRequest) -> tuple[type[Agent], str] | None:
    if request.path == "/user" or request.path.startswith("/user/"):
        return Chat, request.query.get("user", "nobody")
    return None


@requirement("protocol:8")
@pytest.mark.parametrize("is_async", [False, True])
async def test_a_url_of_the_applications_own_leads_to_an_agent_that_says_its_name(
    tmp_path: Path, is_async: bool
) -> None:
    async def by_user_later(request: IncomingRequest) -> tuple[type[Agent], str] | None:
        return by_user(request)

    async with serving_app(App(Chat, data=tmp_path, route=by_user_later if is_async else by_user)) as server:
        tab = await server.connect("/user?user=ada&_pk=1")
        assert identity("ada") in await tab.opened()
        await tab.ask("r1", "Hi")
        await tab.done("r1")
        for path in (
            "/user/get-messages?user=ada",
            "/user/deep/get-messages?user=ada",
            "/agents/chat/ada/get-messages",
        ):
            assert [message["role"] for message in (await server.get(path)).json()] == ["user", "assistant"]
        assert (await server.get("/user/get-messages?user=eve")).json() == []
        assert (await server.get("/user/settings?user=eve")).text == "eve: user/settings"
        assert identity("nobody") in await (await server.connect("/user/any/path")).opened()


async def test_what_the_function_does_not_know_is_not_an_agents(tmp_path: Path) -> None:
    asked: list[str] = []

    def note(request: IncomingRequest) -> None:
        asked.append(request.path)

    async with serving_app(App(Chat, data=tmp_path, route=note)) as server:
        assert (await server.get("/elsewhere")).status_code == 404
        assert (await server.get("/health")).status_code == 200
        assert (await (await server.connect("/elsewhere")).ended())[0] == 4404
        assert identity("room") in await (await server.connect("/agents/chat/room")).opened()
        assert (await server.get("/agents/chat")).status_code == 404
        assert (await server.get("/agents")).status_code == 404
    assert asked == ["/elsewhere", "/elsewhere"], "agents' own paths are not asked about"


async def test_hooks_and_cors_hold_for_such_urls_too(tmp_path: Path) -> None:
    def hook(request: IncomingRequest) -> Refuse | None:
        assert request.class_name == "Chat"
        return Refuse(403) if request.agent_name == "eve" else None

    app = App(Chat, data=tmp_path, route=by_user, cors=True, on_before_connect=hook, on_before_request=hook)
    async with serving_app(app) as server:
        assert (await (await server.connect("/user?user=eve")).ended())[0] == 4403
        refused = await server.get("/user/get-messages?user=eve")
        assert (refused.status_code, refused.headers["access-control-allow-origin"]) == (403, "*")
        preflight = await server.request("OPTIONS", "/user/get-messages?user=eve")
        assert (preflight.status_code, preflight.headers["access-control-allow-origin"]) == (200, "*")
        foreign = {"Origin": "https://evil.example"}
        tab = await server.connect("/user?user=ada", additional_headers=foreign)
        assert (await tab.ended())[0] == 4403


@pytest.mark.parametrize(
    "place", [(Other, "x"), (Chat, ""), (Chat, "a/b"), (Chat, "x" * 513), (Chat, "é" * 257), "chat/x", 5]
)
async def test_a_function_that_names_no_agent_is_an_error_in_the_log(tmp_path: Path, log: ErrorLog, place: Any) -> None:
    async with serving_app(App(Chat, data=tmp_path, route=lambda request: place)) as server:
        response = await server.get("/elsewhere")
        assert (response.status_code, response.text) == (500, "Internal Server Error")
        assert await (await server.connect("/elsewhere")).ended() == (1011, "Internal Server Error")
        assert identity("room") in await (await server.connect("/agents/chat/room")).opened()
    log.expect("No agent could be found for /elsewhere")


async def test_health_tells_how_the_server_is_and_no_names(tmp_path: Path) -> None:
    async with serving_app(App(Chat, data=tmp_path)) as server:
        first = (await server.get("/health")).json()
        assert (first["status"], first["agents"]) == ("ok", 0)
        await (await server.connect("/agents/chat/secret-name")).opened()
        response = await server.get("/health", headers={"Host": "10.1.2.3:8000", "Origin": "https://probe.example"})
        assert response.status_code == 200, "whoever probes may not know the server's names"
        health = response.json()
        assert health.keys() == {"status", "version", "agents", "uptime"}
        assert health["agents"] == 1
        assert health["uptime"] > first["uptime"]
        assert "secret-name" not in response.text


async def test_a_server_without_its_data_says_so_and_comes_back(tmp_path: Path, log: ErrorLog) -> None:
    (tmp_path / "data").write_text("in the way")
    app = App(Chat, data=tmp_path / "data")

    async def mounted(scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] != "lifespan":
            await app(scope, receive, send)

    async with serving_app(mounted) as server:
        response = await server.get("/health")
        assert (response.status_code, response.json()) == (503, {"status": "unavailable"})
        assert str(tmp_path) not in (await server.get("/agents/chat/room/get-messages")).text
        assert (await (await server.connect("/agents/chat/room")).ended())[0] == 1013
        log.expect("The app cannot start")
        (tmp_path / "data").unlink()
        assert (await server.get("/health")).status_code == 200
        assert identity("room") in await (await server.connect("/agents/chat/room")).opened()
        await app.stop()
        assert (await server.get("/health")).status_code == 503, "what was stopped stays so"
