"""The apps of the how-to pages on serving do what the pages say."""

import importlib
import io
import json
import logging
from pathlib import Path
from typing import Any

import pytest

from tests.support import serving_app

pytestmark = pytest.mark.anyio


@pytest.fixture(autouse=True)
def data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("PERDURE_DATA", str(tmp_path))
    return tmp_path


def snippet(name: str) -> Any:
    """The module as it is when it is imported with this test's data folder."""
    return importlib.reload(importlib.import_module(f"docs_src.{name}"))


async def test_the_app_with_its_own_paths() -> None:
    async with serving_app(snippet("serve_routes").app) as server:
        tab = await server.connect("/user", additional_headers={"X-User": "ada"})
        assert (await tab.opened())[1]["name"] == "ada"
        assert (await (await server.connect("/api/v1/assistant/room")).opened())[1]["name"] == "room"
        assert (await server.get("/user/get-messages")).json() == []


async def test_the_agent_that_answers_requests() -> None:
    async with serving_app(snippet("serve_requests").app) as server:
        response = await server.request("POST", "/agents/notes/room/notes", json="Buy milk")
        assert (response.status_code, response.json()) == (201, ["Buy milk"])
        assert (await server.get("/agents/notes/room/notes")).status_code == 404


@pytest.mark.parametrize("name", ["mount_fastapi", "mount_starlette"])
async def test_the_mounted_apps(name: str, data: Path) -> None:
    async with serving_app(snippet(name).app) as server:
        assert (data / "perdure.db").exists()
        assert (await (await server.connect("/chat/agents/assistant/my-chat")).opened())[1]["name"] == "my-chat"


async def test_the_app_that_people_sign_in_to() -> None:
    async with serving_app(snippet("secure_hooks").app) as server:
        await (await server.connect("/agents/assistant/ada?token=t0ps3cret")).opened()
        assert await (await server.connect("/agents/assistant/ada")).ended() == (4401, "Sign in first.")
        assert (await (await server.connect("/agents/assistant/eve?token=t0ps3cret")).ended())[0] == 4403
        assert (await server.get("/agents/assistant/ada/get-messages")).status_code == 401
        assert (await server.get("/agents/assistant/ada/get-messages?token=t0ps3cret")).json() == []


async def test_the_conversation_that_some_may_only_watch() -> None:
    async with serving_app(snippet("secure_chat").app) as server:
        patient = await server.connect("/agents/clinic/room")
        viewer = await server.connect("/agents/clinic/room?role=viewer")
        await viewer.ask("V1", "Hello")
        assert (await viewer.done("V1"))["error"] is True
        await patient.ask("R1", "Hello")
        assert (await viewer.done("R1"))["outcome"] == "completed"


async def test_the_app_whose_events_are_counted() -> None:
    module = snippet("observe_events")
    async with serving_app(module.app) as server:
        tab = await server.connect("/agents/assistant/room")
        await tab.ask("r1", "Hello")
        await tab.done("r1")
        await tab.settle()
    assert module.counts["connect"] == module.counts["chat:turn:start"] == module.counts["chat:turn:finish"] == 1


def test_the_handler_of_the_logs(monkeypatch: pytest.MonkeyPatch) -> None:
    stream = io.StringIO()
    monkeypatch.setattr("sys.stderr", stream)
    root = logging.getLogger()
    monkeypatch.setattr(root, "handlers", [])
    monkeypatch.setattr(root, "level", root.level)
    snippet("observe_logs")
    logging.getLogger("x").info("said")
    assert json.loads(stream.getvalue())["message"] == "said"


def test_the_traced_agent_allows_it() -> None:
    traced = snippet("observe_spans").Traced
    assert (traced.store_messages, traced.store_tools) == (True, True)
