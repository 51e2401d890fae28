"""Sub-agents as clients reach them: their addresses, their own sockets, and who lets them in."""

import json
import os
from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from starlette.requests import Request
from starlette.responses import Response
from websockets.exceptions import ConnectionClosed

from perdure import Agent, App, ConfigurationError, IncomingRequest, Refuse, Think
from perdure.testing import Gate, ScriptedModel, pause, say
from tests.requirements.marker import requirement
from tests.support import Doing, ErrorLog, Serving, Tab, chunks_of, do, serving
from tests.support.serving import serving_app

pytestmark = pytest.mark.anyio

NUL = "%00"


class Parent(Doing, Think):
    model = "demo"


class Child(Doing, Think):
    model = "demo"


class Plain(Agent):
    initial_state = {"n": 1}


def of_type(tab: Tab, kind: str) -> list[dict[str, Any]]:
    return [frame for frame in tab.frames if frame["type"] == kind]


async def close_of(server: Serving, path: str) -> tuple[int, str]:
    """How a connection to a path of a parent is closed."""
    return await (await server.tab(path, agent="parent")).ended()


# ── addresses ───────────────────────────────────────────────────────


@requirement("protocol:13")
@pytest.mark.parametrize(
    ("segment", "name"),
    [("c", "c"), ("a%2Fb%20c%3F%C3%A9", "a/b c?é"), ("..%2F..%2Fx", "../../x"), ("a%252Fb", "a%2Fb")],
)
async def test_a_childs_socket_tells_its_own_class_and_decoded_name(tmp_path: Path, segment: str, name: str) -> None:
    async with serving(Parent, data=tmp_path, sub_agents=[Child]) as server:
        tab = await server.tab(f"p/sub/child/{segment}", agent="parent")
        opening = await tab.opened()
        assert [frame["type"] for frame in opening][:2] == ["cf_agent_chat_messages", "cf_agent_identity"]
        assert opening[1] == {"type": "cf_agent_identity", "name": name, "agent": "child"}

        async def own_name(child: Child) -> tuple[str, Sequence[tuple[str, str]]]:
            return child.name, child.parent_path

        assert await do(tab, own_name) == (name, (("Parent", "p"),))


@requirement("fault:SC-06")
async def test_names_that_look_alike_are_different_children_and_stay_in_the_data_folder(tmp_path: Path) -> None:
    names = ["a", "A", "a%2Fb", "a%252Fb", "..%2Fa", "a%2Fsub%2Fchild%2Fb", "%27%3B--"]
    paths = [f"p/sub/child/{name}" for name in names] + [
        "P/sub/child/a",
        "p%2Fsub/sub/child/a",
        "p/sub/child/a/sub/child/b",
    ]
    async with serving(Parent, data=tmp_path / "data", sub_agents=[Child]) as server:
        for path in paths:
            tab = await server.tab(path, agent="parent")
            await tab.ask("R1", f"I am {path}")
            await tab.done("R1")
        for path in paths:
            stored = await server.stored(path, agent="parent")
            assert [part["text"] for part in stored[0]["parts"]] == [f"I am {path}"]
        assert await server.stored("p", agent="parent") == []
    assert os.listdir(tmp_path) == ["data"]


async def test_a_child_of_a_child_is_reached_and_what_is_on_the_way_comes_to_be(tmp_path: Path) -> None:
    async with serving(Parent, data=tmp_path, sub_agents=[Child, Plain]) as server:
        tab = await server.tab("p/sub/child/c/sub/plain/x", agent="parent")
        opening = await tab.opened()
        assert opening[0] == {"type": "cf_agent_identity", "name": "x", "agent": "plain", "stateFollows": True}

        async def children(parent: Parent) -> list[str]:
            return [child.name for child in await parent.list_sub_agents()]

        assert await do(await server.tab("p", agent="parent"), children) == ["c"]
        assert await do(await server.tab("p/sub/child/c", agent="parent"), children) == ["x"]


async def test_a_root_class_can_be_a_child_but_a_sub_agent_class_no_root(tmp_path: Path) -> None:
    async with serving(Parent, data=tmp_path, sub_agents=[Child]) as server:
        assert await server.stored("p/sub/parent/q", agent="parent") == []
        assert (await (await server.tab("c", agent="child")).ended())[0] == 4404
        assert (await server.get("/agents/child/c/get-messages")).status_code == 400
        assert (await server.get("/agents/child/c/sub/parent/q/get-messages")).status_code == 400
        listed = (await server.get("/playground.json")).json()["agents"]
        assert [agent["path"] for agent in listed] == ["parent"]


@requirement("fault:SC-06")
@pytest.mark.parametrize(
    "path", ["p/sub/unknown/c", "p/sub/child/c/sub/unknown/x", "p/sub/child/%zz", "p/sub/child/%ff"]
)
async def test_an_unknown_class_below_an_agent_is_not_answered_by_the_agent(tmp_path: Path, path: str) -> None:
    async with serving(Parent, data=tmp_path, sub_agents=[Child]) as server:
        response = await server.get(f"/agents/parent/{path}/get-messages")
        assert (response.status_code, response.text) == (404, "Not Found")
        assert (await close_of(server, path))[0] == 4404


@requirement("fault:SC-06")
@pytest.mark.parametrize("path", [f"p/sub/child/a{NUL}", f"p/sub/child/{'n' * 513}", "p" + "/sub/child/c" * 5])
async def test_a_child_that_cannot_be_is_refused(tmp_path: Path, path: str) -> None:
    async with serving(Parent, data=tmp_path, sub_agents=[Child]) as server:
        assert (await server.get(f"/agents/parent/{path}/get-messages")).status_code == 400
        assert (await close_of(server, path))[0] == 4400
        assert (await server.get("/agents/parent/p/get-messages")).json() == []


@pytest.mark.parametrize("name", ["Sub", "SUB", "sub_"])
def test_a_class_whose_name_is_the_marker_is_refused(tmp_path: Path, name: str) -> None:
    marker = type(name, (Think,), {})
    with pytest.raises(ConfigurationError, match="/sub/"):
        App(marker, data=tmp_path)
    with pytest.raises(ConfigurationError, match="/sub/"):
        App(Parent, sub_agents=[marker], data=tmp_path)


def test_a_class_may_be_given_as_a_root_and_as_a_sub_agent_but_names_must_differ(tmp_path: Path) -> None:
    assert list(App(Parent, sub_agents=[Parent, Child], data=tmp_path).agents) == ["parent"]
    with pytest.raises(ConfigurationError, match="rename one"):
        App(Parent, sub_agents=[type("Parent", (Think,), {})], data=tmp_path)


# ── sockets of its own ──────────────────────────────────────────────


@requirement("protocol:14", "fault:SA-12")
async def test_parent_and_child_stream_each_to_its_own_sockets(tmp_path: Path) -> None:
    gates = {"parent": Gate(), "child": Gate()}

    class Speaking(Doing, Think):
        async def get_model(self) -> Any:
            who = "child" if self.parent_path else "parent"
            return ScriptedModel([[say(f"{who} begins"), pause(gates[who]), say(" and ends")]])

    async with serving(Speaking, data=tmp_path) as server:
        above = await server.tab("p", agent="speaking")
        below = await server.tab("p/sub/speaking/c", agent="speaking")
        await above.ask("RP", "go")
        await gates["parent"].reached()
        assert await below.probe("x") == {"type": "cf_agent_stream_resume_none", "reason": "idle", "probeId": "x"}
        await below.ask("RC", "go")
        await gates["child"].reached()
        for path, request in (("p", "RP"), ("p/sub/speaking/c", "RC")):
            assert (await (await server.tab(path, agent="speaking")).probe())["id"] == request

        async def speak_up(agent: Speaking) -> None:
            agent.set_state({"by": agent.name})
            agent.broadcast(f'{{"type":"app","by":"{agent.name}"}}')

        for tab in (above, below):
            await do(tab, speak_up)
        await below.cancel("RP")  # not the child's: nothing happens
        for gate in gates.values():
            gate.open()
        assert (await above.done("RP"))["outcome"] == "completed"
        assert (await below.done("RC"))["outcome"] == "completed"
        for tab in (above, below):
            await tab.settle()

        assert {frame["by"] for frame in of_type(above, "app")} == {"p"}
        assert {frame["by"] for frame in of_type(below, "app")} == {"c"}
        assert [frame["state"] for frame in of_type(above, "cf_agent_state")] == [{"by": "p"}]
        assert [frame["state"] for frame in of_type(below, "cf_agent_state")] == [{"by": "c"}]
        assert not [frame for frame in above.frames if frame.get("id") == "RC"]
        assert not [frame for frame in below.frames if frame.get("id") == "RP"]
        said = "".join(chunk.get("delta", "") for chunk in chunks_of(below.frames, "RC"))
        assert said == "child begins and ends"
        for tab, name in ((above, "p"), (below, "c")):
            assert [frame["name"] for frame in of_type(tab, "cf_agent_identity")] == [name]


async def test_a_child_outlives_a_restart_with_all_that_is_its_own(tmp_path: Path) -> None:
    async with serving(Parent, data=tmp_path, sub_agents=[Child]) as server:
        tab = await server.tab("p/sub/child/c", agent="parent")
        await tab.ask("R1", "remember me")
        await tab.done("R1")
        said = await server.stored("p/sub/child/c", agent="parent")
    async with serving(Parent, data=tmp_path, sub_agents=[Child]) as server:
        assert await server.stored("p/sub/child/c", agent="parent") == said

        async def children(parent: Parent) -> list[tuple[str, str]]:
            return [(child.kind, child.name) for child in await parent.list_sub_agents()]

        assert await do(await server.tab("p", agent="parent"), children) == [("Child", "c")]


# ── who is let in ───────────────────────────────────────────────────


class Guard(Doing, Think):
    """Lets in whoever the test says."""

    model = "demo"
    asked: list[tuple[str, str, str, str, str]] = []

    async def on_before_sub_agent(self, request: Any, kind: str, name: str) -> Any:
        self.asked.append((self.name, kind, name, request.path, request.query.get("token", "")))
        match request.query.get("token"):
            case "raise":
                raise RuntimeError("secret")
            case "odd":
                return False
            case "good":
                return None
            case status:
                return Refuse(int(status or 401), "Not you.")


@pytest.fixture
def asked() -> list[tuple[str, str, str, str, str]]:
    Guard.asked = []
    return Guard.asked


@requirement("fault:SC-06")
@pytest.mark.parametrize(
    ("token", "status", "code"),
    [
        ("401", 401, 4401),
        ("403", 403, 4403),
        ("404", 404, 4404),
        ("429", 429, 4429),
        ("500", 500, 1011),
        ("503", 503, 1011),
        ("4321", 403, 4321),
        ("raise", 500, 1011),
        ("odd", 500, 1011),
    ],
)
async def test_the_parents_guard_turns_requests_and_sockets_away(
    tmp_path: Path, asked: list[Any], token: str, status: int, code: int, log: ErrorLog
) -> None:
    async with serving(Guard, data=tmp_path, sub_agents=[Child]) as server:
        reason = "Not you." if token.isdigit() else "Internal Server Error"
        response = await server.get(f"/agents/guard/g/sub/child/a%2Fb/get-messages?token={token}")
        assert (response.status_code, response.text) == (status, reason)
        tab = await server.tab(f"g/sub/child/a%2Fb?token={token}", agent="guard")
        shown = token if token.isdigit() else status
        assert await tab.ended() == (code, f"Sub-agent connection rejected ({shown})")
        assert tab.frames == []
        assert asked == [
            ("g", "Child", "a/b", "/agents/guard/g/sub/child/a%2Fb/get-messages", token),
            ("g", "Child", "a/b", "/agents/guard/g/sub/child/a%2Fb", token),
        ]
        if not token.isdigit():
            log.expect("on_before_sub_agent")

        async def children(guard: Guard) -> list[Any]:
            return await guard.list_sub_agents()

        assert await do(await server.tab("g", agent="guard"), children) == []


async def test_whoever_the_guard_lets_in_is_served(tmp_path: Path, asked: list[Any]) -> None:
    async with serving(Guard, data=tmp_path, sub_agents=[Child]) as server:
        tab = await server.tab("g/sub/child/c?token=good", agent="guard")
        await tab.ask("R1", "hello")
        await tab.done("R1")
        assert (await server.get("/agents/guard/g/sub/child/c/get-messages?token=good")).status_code == 200
        assert (await server.get("/agents/guard/g/sub/child/c/elsewhere?token=good")).status_code == 404
        assert (await server.get("/agents/guard/g/get-messages")).status_code == 200
        assert len(asked) == 3


async def test_each_parent_on_the_way_is_asked_about_its_own_child_the_first_refusal_wins(
    tmp_path: Path, asked: list[Any]
) -> None:
    class Tenant(Guard):
        async def on_before_sub_agent(self, request: Any, kind: str, name: str) -> Any:
            self.asked.append((self.name, kind, name, "", ""))
            return Refuse(403) if name == "mallory" else None

    path = "sub/guard/{}/sub/child/room-7"
    async with serving(Tenant, data=tmp_path, sub_agents=[Guard, Child]) as server:
        assert (await server.get(f"/agents/tenant/acme/{path.format('mallory')}/get-messages")).status_code == 403
        assert [entry[:3] for entry in asked] == [("acme", "Guard", "mallory")]
        asked.clear()
        assert (await server.get(f"/agents/tenant/acme/{path.format('alice')}/get-messages")).status_code == 401
        assert [entry[:3] for entry in asked] == [("acme", "Guard", "alice"), ("alice", "Child", "room-7")]


async def test_a_guard_can_ask_whether_the_child_exists(tmp_path: Path) -> None:
    class Strict(Doing, Think):
        async def on_before_sub_agent(self, request: Any, kind: str, name: str) -> Refuse | None:
            return None if await self.has_sub_agent(Child, name) else Refuse(404)

    async with serving(Strict, data=tmp_path, sub_agents=[Child]) as server:
        path = "/agents/strict/s/sub/child/c/get-messages"
        assert (await server.get(path)).status_code == 404

        async def make(strict: Strict) -> None:
            await strict.sub_agent(Child, "c")

        await do(await server.tab("s", agent="strict"), make)
        assert (await server.get(path)).status_code == 200


async def test_a_parent_that_cannot_start_lets_nobody_in_for_now(tmp_path: Path, log: ErrorLog) -> None:
    class Broken(Think):
        def on_start(self) -> None:
            raise RuntimeError("no")

        def on_before_sub_agent(self, request: Any, kind: str, name: str) -> None:
            return None

    async with serving(Broken, data=tmp_path, sub_agents=[Child]) as server:
        response = await server.get("/agents/broken/b/sub/child/c/get-messages")
        assert (response.status_code, response.text) == (503, "The agent cannot be reached at the moment.")
        tab = await server.tab("b/sub/child/c", agent="broken")
        assert await tab.ended() == (1011, "Sub-agent connection rejected (503)")
        log.expect("broken/b is dropped from memory: no")


async def test_the_apps_own_hooks_are_asked_about_the_root_before_any_agent_is(
    tmp_path: Path, asked: list[Any]
) -> None:
    roots: list[tuple[str, str, str]] = []

    def hook(request: IncomingRequest) -> Any:
        roots.append((request.method, request.class_name, request.agent_name))
        return Refuse(401) if request.agent_name == "h" else request.with_headers({"x-user": "ann"})

    class Named(Guard):
        async def on_before_sub_agent(self, request: Any, kind: str, name: str) -> Any:
            self.asked.append((self.name, request.headers.get("x-user"), name, "", ""))

    app = App(Named, sub_agents=[Child], data=tmp_path, on_before_connect=hook, on_before_request=hook)
    async with serving_app(app) as server:
        for name, status in (("h", 401), ("g", 200)):
            path = f"/agents/named/{name}/sub/child/c"
            assert (await server.get(f"{path}/get-messages")).status_code == status
            tab = await server.connect(path)
            if status == 401:
                assert (await tab.ended())[0] == 4401
            else:
                await tab.opened()
        assert roots == [(method, "Named", name) for name in ("h", "g") for method in ("GET", "GET")]
        assert [entry[:3] for entry in asked] == [("g", "ann", "c")] * 2


# ── other requests ──────────────────────────────────────────────────


class Answering(Agent):
    """Answers every HTTP request with what it was sent."""

    async def on_request(self, request: Request) -> Response:
        pieces = [piece async for piece in request.stream() if piece]
        told = {"who": self.name, "path": request.path_params["path"], "method": request.method}
        headers = {"x-told": json.dumps({**told, "query": request.url.query, "pieces": len(pieces)})}
        return Response(b"".join(pieces), 201, headers)


@requirement("protocol:15")
async def test_a_body_reaches_the_child_as_a_stream_byte_for_byte(tmp_path: Path) -> None:
    sent = [bytes(range(256)) * 1000, b"\r\n\0", b"\xff" * 100_000]

    async def body() -> AsyncIterator[bytes]:
        for piece in sent:
            yield piece

    async with serving(Parent, data=tmp_path, sub_agents=[Answering]) as server:
        path = "/agents/parent/p/sub/answering/a%2Fb/files/x%2Fy?n=1"
        response = await server.request("POST", path, content=body())
        assert response.status_code == 201
        assert response.content == b"".join(sent)
        told = json.loads(response.headers["x-told"])
        assert told.pop("pieces") > 1
        assert told == {"who": "a/b", "path": "files/x%2Fy", "method": "POST", "query": "n=1"}


async def test_a_path_of_the_apps_own_leads_to_sub_agents_too(tmp_path: Path) -> None:
    def route(request: IncomingRequest) -> Any:
        return (Parent, "ann") if request.path.startswith("/user") else None

    app = App(Parent, sub_agents=[Child], data=tmp_path, route=route)
    async with serving_app(app) as server:
        tab = await server.connect("/user/sub/child/a%2Fb")
        opening = await tab.opened()
        assert opening[1] == {"type": "cf_agent_identity", "name": "a/b", "agent": "child"}
        assert (await server.get("/user/get-messages")).json() == []
        assert (await server.get("/user/sub/child/a%2Fb/get-messages")).json() == []

        async def children(parent: Parent) -> list[str]:
            return [child.name for child in await parent.list_sub_agents()]

        assert await do(await server.tab("ann", agent="parent"), children) == ["a/b"]


# ── its end ─────────────────────────────────────────────────────────


async def test_deleting_a_child_closes_the_sockets_of_it_and_of_those_below_and_of_nobody_else(tmp_path: Path) -> None:
    async with serving(Parent, data=tmp_path, sub_agents=[Child]) as server:
        above = await server.tab("p", agent="parent")
        gone = [await server.tab(f"p/sub/child/c{below}", agent="parent") for below in ("", "", "/sub/child/d")]
        other = await server.tab("p/sub/child/c2", agent="parent")
        for tab in (above, *gone, other):
            await tab.opened()
        await gone[0].ask("R1", "hello")
        await gone[0].done("R1")

        async def delete(parent: Parent) -> None:
            await parent.delete_sub_agent(Child, "c")
            await parent.delete_sub_agent(Child, "c")
            assert not await parent.has_sub_agent(Child, "c")

        await do(above, delete)
        for tab in gone:
            assert await tab.ended() == (1001, "Sub-agent deleted")
            with pytest.raises(ConnectionClosed):
                await tab.ask("R2", "are you there?")
        await other.settle()
        await above.settle()
        assert await server.stored("p/sub/child/c", agent="parent") == []


async def test_stopping_a_child_ends_its_turn_for_its_tabs_and_keeps_what_was_said(tmp_path: Path) -> None:
    gate = Gate()

    class Slow(Think):
        model = ScriptedModel([[say("half"), pause(gate), say("never")]])

    async with serving(Parent, data=tmp_path, sub_agents=[Slow]) as server:
        above = await server.tab("p", agent="parent")
        tab, watching = [await server.tab("p/sub/slow/c", agent="parent") for _ in range(2)]
        await tab.ask("R1", "go")
        await tab.ask("R2", "and go on")
        await gate.reached()
        await watching.seen(lambda frame: "and go on" in json.dumps(frame))

        async def stop(parent: Parent) -> None:
            await parent.abort_sub_agent(Slow, "c")
            await parent.abort_sub_agent(Slow, "c")
            assert await parent.has_sub_agent(Slow, "c")

        await do(above, stop)
        assert await tab.ended() == (1001, "Sub-agent stopped")
        assert [(await tab.done(request))["outcome"] for request in ("R1", "R2")] == ["aborted", "aborted"]
        stored = await server.stored("p/sub/slow/c", agent="parent")
        assert [message["parts"][-1]["text"] for message in stored] == ["go", "half", "and go on"]
        back = await server.tab("p/sub/slow/c", agent="parent")
        assert await back.probe("x") == {"type": "cf_agent_stream_resume_none", "reason": "idle", "probeId": "x"}
