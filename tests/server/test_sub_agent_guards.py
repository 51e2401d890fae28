"""Who is let in to a sub-agent: what the agents above it say, and the app's own hooks."""

from pathlib import Path
from typing import Any

import pytest

from perdure import App, IncomingRequest, Refuse, Think
from tests.requirements.marker import requirement
from tests.support import Doing, ErrorLog, do, serving
from tests.support.serving import serving_app

pytestmark = pytest.mark.anyio


class Child(Doing, Think):
    model = "demo"


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
