"""``perdure dev``: a server that starts again when its code changes."""

import asyncio
import signal
from pathlib import Path

import httpx2
import pytest

from tests.cli.commands import command
from tests.support import Tab

pytestmark = pytest.mark.anyio

APP = """
from starlette.responses import PlainTextResponse
from perdure import App, Agent

class Some(Agent):
    initial_state = {"version": 0}
    def on_request(self, request):
        return PlainTextResponse("ANSWER")

app = App(Some)
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "app.py").write_text(APP.replace("ANSWER", "one"))
    return tmp_path


async def answer(port: int) -> str:
    async with httpx2.AsyncClient(timeout=20) as client:
        return (await client.get(f"http://127.0.0.1:{port}/agents/some/x")).text


async def test_a_change_is_served_by_the_next_request_on_the_same_port_and_data(folder: Path) -> None:
    async with command("dev", "app.py", "--port", "0", cwd=folder) as running:
        port = await running.port()
        assert await answer(port) == "one"
        tab = await Tab.open(f"ws://127.0.0.1:{port}/agents/some/x")
        await tab.send({"type": "cf_agent_state", "state": {"version": 7}})
        await tab.opened()
        (folder / "app.py").write_text(APP.replace("ANSWER", "three"))
        await running.says("app.py changed; starting again.")
        assert (await tab.ended())[0] == 1012
        assert await running.port(times=2) == port
        assert await answer(port) == "three"
        again = await Tab.open(f"ws://127.0.0.1:{port}/agents/some/x")
        assert {"type": "cf_agent_state", "state": {"version": 7}} in await again.opened()
        await asyncio.gather(tab.close(), again.close())
        assert await running.stop(signal.SIGINT) == 0
    assert [line for line in running.err if "in use" in line] == [], "the old server gave its folder free first"


async def test_who_asks_in_between_waits_instead_of_being_refused(folder: Path) -> None:
    async with command("dev", "app.py", "--port", "0", cwd=folder) as running:
        port = await running.port()
        (folder / "app.py").write_text("import time\ntime.sleep(0.5)\n" + APP.replace("ANSWER", "late"))
        await running.says("starting again")
        assert await answer(port) == "late"


async def test_a_mistake_in_the_code_is_shown_and_waited_out(folder: Path) -> None:
    async with command("dev", "app.py", "--port", "0", cwd=folder) as running:
        port = await running.port()
        (folder / "app.py").write_text("this is no Python\n")
        await running.says("SyntaxError")
        await running.says("waiting for a change")
        (folder / "app.py").write_text(APP.replace("ANSWER", "mended"))
        assert await answer(port) == "mended"


async def test_options_reach_the_server(folder: Path) -> None:
    options = ["--data", "elsewhere", "--allow-host", "chat.example", "--log-format", "json"]
    async with command("dev", "app.py", "--port", "0", *options, cwd=folder) as running:
        port = await running.port()
        async with httpx2.AsyncClient() as client:
            response = await client.get(f"http://127.0.0.1:{port}/agents/some/x", headers={"Host": "chat.example"})
        assert response.text == "one"
    assert (folder / "elsewhere" / "perdure.db").is_file()


@pytest.mark.parametrize("sent", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
async def test_the_server_ends_with_it(folder: Path, sent: int) -> None:
    async with command("dev", "app.py", "--port", "0", cwd=folder) as running:
        port = await running.port()
        assert await running.stop(sent) == 0
        with pytest.raises(ConnectionRefusedError):
            await asyncio.open_connection("127.0.0.1", port)
    async with command("serve", "app.py", "--port", "0", cwd=folder) as next_one:
        await next_one.port()


async def test_the_server_ends_when_it_is_killed(folder: Path) -> None:
    async with command("dev", "app.py", "--port", "0", cwd=folder) as running:
        await running.port()
        assert await running.stop(signal.SIGKILL) == -signal.SIGKILL
    async with command("serve", "app.py", "--port", "0", cwd=folder) as next_one:
        await next_one.port()


async def test_a_port_in_use_is_explained_before_anything_starts(folder: Path) -> None:
    async with command("dev", "app.py", "--port", "0", cwd=folder) as running:
        port = await running.port()
        async with command("dev", "app.py", "--port", str(port), cwd=folder) as second:
            assert await second.ended() == 1
        assert len(second.err) == 1
        assert f"Port {port} is in use" in second.err[0]
