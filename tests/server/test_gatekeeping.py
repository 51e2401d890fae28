"""The application's hooks: who may connect, who may ask, and what becomes of those who may not."""

import asyncio
import contextlib
from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any

import pytest
from starlette.responses import JSONResponse, PlainTextResponse, RedirectResponse, Response, StreamingResponse

from perdure import Agent, App, ConfigurationError, Connection, IncomingRequest, Refuse, Think, callable
from perdure.testing import ScriptedModel
from tests.requirements import requirement
from tests.support import ErrorLog, Serving, Tab, serving_app

pytestmark = pytest.mark.anyio


class Door(Think):
    """Says who came."""

    model = ScriptedModel([])
    woken: list[str] = []

    def on_start(self) -> None:
        self.woken.append(self.name)

    def on_connect(self, connection: Connection) -> None:
        connection.send(f'{{"type":"user","user":"{connection.request.headers.get("x-user", "")}"}}')

    async def on_request(self, request: Any) -> Response:
        return JSONResponse({"user": request.headers.get("x-user"), "asked": request.path_params["path"]})


@contextlib.asynccontextmanager
async def guarded(data: Path, **options: Any) -> AsyncGenerator[Serving]:
    Door.woken = []
    async with serving_app(App(Door, data=data, **options)) as server:
        yield server


def allow(request: IncomingRequest) -> None:
    return None


async def test_hooks_see_the_whole_request_and_which_agent_it_is_for(tmp_path: Path) -> None:
    seen: list[IncomingRequest] = []
    async with guarded(tmp_path, on_before_connect=seen.append, on_before_request=seen.append) as server:
        tab = await server.connect("/agents/door/a%20b/deep?token=t%201&x=&_pk=me", additional_headers={"X-Key": "k"})
        await tab.opened()
        await server.request("PUT", "/agents/door/a%20b/deep?token=t", headers={"X-Key": "k"})
    connecting, asking = seen
    assert (connecting.class_name, connecting.agent_name) == ("Door", "a%20b")
    assert (connecting.path, connecting.method) == ("/agents/door/a%20b/deep", "GET")
    assert connecting.query == {"token": "t 1", "x": "", "_pk": "me"}
    assert connecting.headers["x-key"] == asking.headers["x-key"] == "k"
    assert connecting.client == "127.0.0.1"
    assert (asking.method, asking.query) == ("PUT", {"token": "t"})


@requirement("protocol:7")
async def test_the_connection_learns_its_query_and_its_id(tmp_path: Path) -> None:
    class Asked(Agent):
        def on_connect(self, connection: Connection) -> None:
            query = dict(connection.request.query)
            connection.send(f'{{"type":"seen","id":"{connection.id}","page":"{query["page"]}"}}')

    async with serving_app(App(Asked, data=tmp_path)) as server:
        tab = await server.connect("/agents/asked/room?_pk=my-id&page=a%26b%3Dc")
        seen = await tab.seen(lambda frame: frame["type"] == "seen")
    assert seen == {"type": "seen", "id": "my-id", "page": "a&b=c"}


@pytest.mark.parametrize("is_async", [False, True])
async def test_a_hook_that_says_nothing_lets_in(tmp_path: Path, is_async: bool) -> None:
    async def allow_later(request: IncomingRequest) -> None:
        await asyncio.sleep(0)

    hook = allow_later if is_async else allow
    async with guarded(tmp_path, on_before_connect=hook, on_before_request=hook) as server:
        await (await server.tab(agent="door")).opened()
        assert (await server.get("/agents/door/room/get-messages")).json() == []


@pytest.mark.parametrize(
    ("refusal", "code", "reason"),
    [
        (Refuse(401, "Sign in first."), 4401, "Sign in first."),
        (Refuse(404), 4404, "Connection rejected (404)"),
        (Refuse(4123, "No."), 4123, "No."),
        (Refuse(1008, "Never."), 1008, "Never."),
        (Refuse(503, "Later."), 1013, "Later."),
        (Refuse(500), 1011, "Connection rejected (500)"),
        (Refuse(403, "é" * 100), 4403, "é" * 61),
        (PlainTextResponse("Who are you?", 401), 4401, "Who are you?"),
        (JSONResponse({"error": "x"}, 403), 4403, "Connection rejected (403)"),
        (RedirectResponse("/login"), 1008, "Connection rejected (307)"),
        (StreamingResponse(iter(()), 429), 4429, "Connection rejected (429)"),
    ],
)
@requirement("protocol:16")
async def test_a_refused_socket_is_accepted_and_closed(tmp_path: Path, refusal: Any, code: int, reason: str) -> None:
    async with guarded(tmp_path, on_before_connect=lambda request: refusal) as server:
        tab = await server.tab(agent="door")
        assert await tab.ended() == (code, reason)
        assert tab.frames == []
    assert Door.woken == [], "a refused connection wakes no agent"


@pytest.mark.parametrize(
    ("refusal", "status", "body"),
    [
        (Refuse(401, "Sign in first."), 401, "Sign in first."),
        (Refuse(4404, "Gone."), 404, "Gone."),
        (Refuse(4123, "No."), 403, "No."),
        (Refuse(1008), 403, "Forbidden"),
        (Refuse(503, "Later."), 503, "Later."),
        (JSONResponse({"error": "x"}, 402), 402, '{"error":"x"}'),
    ],
)
async def test_a_refused_request_is_answered(tmp_path: Path, refusal: Any, status: int, body: str) -> None:
    async with guarded(tmp_path, on_before_request=lambda request: refusal) as server:
        for path in ("/agents/door/room/get-messages", "/agents/door/room", "/agents/door/room/else"):
            response = await server.get(path)
            assert (response.status_code, response.text) == (status, body)
        await (await server.tab(agent="door")).opened()
    assert Door.woken == ["room"], "only the connection woke the agent"


async def test_each_hook_guards_its_own_kind_of_request(tmp_path: Path) -> None:
    async with guarded(tmp_path, on_before_connect=lambda request: Refuse(401)) as server:
        assert (await server.get("/agents/door/room/get-messages")).status_code == 200
        assert (await (await server.tab(agent="door")).ended())[0] == 4401


async def test_what_a_hook_found_out_reaches_the_agent(tmp_path: Path) -> None:
    def sign_in(request: IncomingRequest) -> IncomingRequest:
        return request.with_headers({"X-User": request.query["token"].upper()})

    async with guarded(tmp_path, on_before_connect=sign_in, on_before_request=sign_in) as server:
        forged = {"X-User": "ROOT"}
        tab = await server.connect("/agents/door/room?token=ada", additional_headers=forged)
        assert await tab.seen(lambda frame: frame["type"] == "user") == {"type": "user", "user": "ADA"}
        response = await server.get("/agents/door/room/who?token=eve", headers=forged)
        assert response.json() == {"user": "EVE", "asked": "who"}


@pytest.mark.parametrize("result", ["yes", True, 401, RuntimeError("the password is hunter2")])
async def test_a_hook_that_fails_keeps_out_and_says_nothing_of_the_inside(
    tmp_path: Path, log: ErrorLog, result: Any
) -> None:
    async def broken(request: IncomingRequest) -> Any:
        if isinstance(result, Exception):
            raise result
        return result

    async with guarded(tmp_path, on_before_connect=broken, on_before_request=broken) as server:
        response = await server.get("/agents/door/room/get-messages")
        assert (response.status_code, response.text) == (500, "Internal Server Error")
        assert await (await server.tab(agent="door")).ended() == (1011, "Internal Server Error")
    log.expect("A hook failed for a request to Door/room")
    assert Door.woken == []


async def test_hooks_are_asked_about_agents_only(tmp_path: Path) -> None:
    asked: list[IncomingRequest] = []
    async with guarded(tmp_path, on_before_connect=asked.append, on_before_request=asked.append) as server:
        for path in ("/", "/health", "/agents", "/agents/door", "/agents/nothing/x"):
            await server.get(path)
        assert (await (await server.connect("/agents/nothing/x")).ended())[0] == 4404
    assert asked == []


@requirement("protocol:16")
async def test_the_capnweb_transport_is_refused_for_good(tmp_path: Path) -> None:
    async with guarded(tmp_path) as server:
        tab = await server.connect("/agents/door/room?__agents_transport=capnweb")
        code, reason = await tab.ended()
        assert 4000 <= code <= 4999
        assert "capnweb" in reason
        await (await server.connect("/agents/door/room?__agents_transport=websocket")).opened()


async def test_headers_of_the_originals_inside_do_not_come_in(tmp_path: Path) -> None:
    seen: list[IncomingRequest] = []
    arrived: list[dict[str, str]] = []

    class Inside(Agent):
        def on_connect(self, connection: Connection) -> None:
            arrived.append(dict(connection.request.headers))

        def on_request(self, request: Any) -> Response:
            arrived.append(dict(request.headers))
            return Response()

    internal = {"X-Agents-Lifecycle-Props": "e30=", "x-cf-agents-subagent-url": "http://x/", "x-mine": "1"}
    app = App(Inside, data=tmp_path, on_before_connect=seen.append, on_before_request=seen.append)
    async with serving_app(app) as server:
        await (await server.tab(agent="inside", additional_headers=internal)).opened()
        await server.get("/agents/inside/room/x", headers=internal)
        await server.request("POST", "/agents/inside/room/get-messages", headers=internal)
    headers = [*arrived, *(request.headers for request in seen)]
    assert len(headers) == 6
    for found in headers:
        assert found["x-mine"] == "1"
        assert not [name for name in found if "lifecycle" in name or "subagent" in name]


async def test_a_client_that_gives_up_during_the_hook_harms_nobody(tmp_path: Path) -> None:
    asked, decide = asyncio.Event(), asyncio.Event()

    async def slow(request: IncomingRequest) -> None:
        if request.query.get("slow"):
            asked.set()
            await decide.wait()

    async with guarded(tmp_path, on_before_connect=slow) as server:
        impatient = asyncio.create_task(Tab.open(f"ws://127.0.0.1:{server.port}/agents/door/room?slow=1"))
        await asked.wait()
        impatient.cancel()
        await asyncio.wait([impatient])
        decide.set()
        await (await server.tab(agent="door")).opened()


@pytest.mark.parametrize("status", [0, 200, 302, 399, 600, 1000, 1007, 1009, 3000, 3999, 5000])
def test_a_refusal_with_a_status_that_refuses_nothing_is_an_error(status: int) -> None:
    with pytest.raises(ConfigurationError, match="400 to 599"):
        Refuse(status)


class ReadAndWrite(Agent):
    """Connections with ``?view`` may only read."""

    initial_state = {"n": 0}

    def is_readonly(self, connection: Connection) -> bool:
        return "view" in connection.request.query

    def sends_protocol_messages(self, connection: Connection) -> bool:
        return "quiet" not in connection.request.query

    @callable
    def add(self, by: int) -> int:
        self.set_state({"n": self.state["n"] + by})
        return self.state["n"]

    @callable
    def read(self) -> int:
        return self.state["n"]

    @callable
    def lock(self, locked: bool) -> None:
        for connection in self.connections:
            connection.readonly = locked


async def rpc(tab: Tab, call: str, method: str, *args: Any) -> dict[str, Any]:
    await tab.send({"type": "rpc", "id": call, "method": method, "args": list(args)})
    return await tab.seen(lambda frame: frame["type"] == "rpc" and frame["id"] == call)


def states(tab: Tab) -> list[Any]:
    return [frame["state"] for frame in tab.frames if frame["type"] == "cf_agent_state"]


@requirement("protocol:26")
async def test_a_readonly_connection_reads_and_changes_nothing(tmp_path: Path) -> None:
    async with serving_app(App(ReadAndWrite, data=tmp_path)) as server:
        viewer = await server.connect("/agents/read-and-write/room?view=1")
        editor = await server.connect("/agents/read-and-write/room")
        await viewer.opened()
        await editor.opened()
        await viewer.send({"type": "cf_agent_state", "state": {"n": 666}})
        error = await viewer.seen(lambda frame: frame["type"] == "cf_agent_state_error")
        assert error == {"type": "cf_agent_state_error", "error": "Connection is readonly"}
        refused = await rpc(viewer, "1", "add", 1)
        assert refused == {"type": "rpc", "id": "1", "success": False, "error": "Connection is readonly"}
        assert (await rpc(viewer, "2", "read"))["result"] == 0
        assert (await rpc(editor, "3", "add", 5))["result"] == 5
        await viewer.seen(lambda frame: frame == {"type": "cf_agent_state", "state": {"n": 5}})
        assert states(viewer) == [{"n": 0}, {"n": 5}]


@requirement("protocol:27")
async def test_readonly_can_be_switched_and_is_looked_up_for_each_connection(tmp_path: Path) -> None:
    async with serving_app(App(ReadAndWrite, data=tmp_path)) as server:
        viewer = await server.connect("/agents/read-and-write/room?view=1&_pk=same")
        assert not (await rpc(viewer, "1", "add", 1))["success"]
        await rpc(viewer, "2", "lock", False)
        assert (await rpc(viewer, "3", "add", 1))["result"] == 1
        await rpc(viewer, "4", "lock", True)
        assert not (await rpc(viewer, "5", "add", 1))["success"]
        again = await server.connect("/agents/read-and-write/room?_pk=same")
        assert (await rpc(again, "6", "add", 1))["result"] == 2, "the same id may write when it comes as a writer"


@requirement("protocol:21")
async def test_a_connection_without_protocol_messages_still_calls(tmp_path: Path) -> None:
    async with serving_app(App(ReadAndWrite, data=tmp_path)) as server:
        quiet = await server.connect("/agents/read-and-write/room?quiet=1")
        loud = await server.connect("/agents/read-and-write/room")
        await loud.opened()
        assert (await rpc(quiet, "1", "add", 2))["result"] == 2
        await loud.seen(lambda frame: frame == {"type": "cf_agent_state", "state": {"n": 2}})
        assert (await rpc(quiet, "2", "read"))["result"] == 2
        assert {frame["type"] for frame in quiet.frames} == {"rpc"}
