"""``perdure serve`` in a process of its own: what it says, what it writes, how it ends."""

import json
import signal
import socket
from pathlib import Path
from typing import Any

import httpx2
import pytest

from tests.cli.commands import Command, command
from tests.support import Tab

pytestmark = pytest.mark.anyio

APP = '''
import asyncio, json, logging, os, threading, time
from perdure import App, Agent, Think, callable, tool
from perdure.testing import ScriptedModel, call, say

@tool
def blocks() -> str:
    """Blocks its thread."""
    threading.Event().wait()

@tool
async def freezes() -> str:
    """Blocks the whole server."""
    logging.getLogger("my.tool").warning("freezing")
    time.sleep(1000)

@tool
async def logs() -> str:
    """Writes to the log."""
    logging.getLogger("my.tool").warning("in a tool\\x1b[31m")
    await asyncio.to_thread(logging.getLogger("my.thread").warning, "in a thread")
    return "logged"

class Agent1(Think):
    model = ScriptedModel([[call(os.environ.get("TOOL", "logs"))], [say("done")]])
    def get_tools(self):
        return [blocks, freezes, logs]
    @callable
    def shout(self) -> int:
        self.broadcast(json.dumps({"type": "shout", "text": "x" * 1_000_000}))
        return len(self.connections)

app = App(Agent1, data=os.environ.get("DATA"))
'''


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "agents_app.py").write_text(APP)
    return tmp_path


def serving(folder: Path, *options: str, **env: str) -> Any:
    return command("serve", "agents_app.py", "--port", "0", *options, cwd=folder, **env)


async def get(port: int, path: str, **headers: str) -> httpx2.Response:
    async with httpx2.AsyncClient() as client:
        return await client.get(f"http://127.0.0.1:{port}{path}", headers=headers)


async def tab(running: Command, name: str = "room") -> Tab:
    return await Tab.open(f"ws://127.0.0.1:{await running.port()}/agents/agent1/{name}")


async def test_it_says_what_it_serves_and_where(folder: Path) -> None:
    async with serving(folder, "--data", "my-data") as running:
        assert "serves Agent1 (data in my-data)" in await running.says("serves")
        assert (await get(await running.port(), "/health")).json()["status"] == "ok"
        assert await running.stop() == 0
    assert (folder / "my-data" / "perdure.db").is_file()
    assert running.err == []


@pytest.mark.parametrize("sent", [signal.SIGTERM, signal.SIGINT])
async def test_a_signal_tells_clients_to_come_back_and_ends_it(folder: Path, sent: int) -> None:
    async with serving(folder) as running:
        first, second = await tab(running), await tab(running, "other")
        await first.opened()
        await second.opened()
        assert await running.stop(sent) == 0
        assert [first.closed, second.closed] != [None, None]
        for one in (first, second):
            assert (await one.ended())[0] == 1012
            await one.close()
    assert running.err == []


@pytest.mark.parametrize("sent", [signal.SIGTERM, signal.SIGINT])
async def test_a_tool_that_hangs_in_a_thread_is_left_behind(folder: Path, sent: int) -> None:
    async with serving(folder, TOOL="blocks") as running:
        client = await tab(running)
        await client.ask("r1", "Go")
        await client.seen(lambda frame: '"tool-input-available"' in frame.get("body", ""))
        await get(await running.port(), "/agents/agent1/room/get-messages")
        assert await running.stop(sent) == 0
        await client.close()
    assert any("left behind" in line for line in running.err)
    async with serving(folder) as running:
        stored = (await get(await running.port(), "/agents/agent1/room/get-messages")).json()
    assert [message["role"] for message in stored] == ["user", "assistant"], "the turn was kept as far as it had come"


async def test_a_second_signal_ends_it_at_once(folder: Path) -> None:
    async with serving(folder, TOOL="freezes") as running:
        client = await tab(running)
        await client.ask("r1", "Go")
        await running.says("freezing")
        running.process.send_signal(signal.SIGINT)
        # The event loop is blocked: nothing but the second signal can end it soon.
        await running.says("Stopping.")
        code = await running.stop(signal.SIGINT)
        assert code == 128 + signal.SIGINT
        client.drop()
        await client.close()
    assert running.out[-1] == "Stopped at once."


async def test_a_port_in_use_is_explained(folder: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        async with command("serve", "agents_app.py", "--port", str(port), cwd=folder) as running:
            assert await running.ended() == 1
    assert running.err == [
        f"perdure: Port {port} is in use. Stop what uses it, or take another with --port (0 picks a free one)."
    ]
    assert not (folder / ".perdure").exists(), "nothing was opened for a server that cannot listen"


@pytest.mark.parametrize(
    ("options", "complaint"),
    [
        (["--host", "203.0.113.7"], "is no address of this machine"),
        (["--host", "no.such.host.invalid"], "is no address of this machine"),
        (["--port", "99999"], "Cannot listen on 127.0.0.1 port 99999"),
    ],
)
async def test_an_address_that_cannot_be_had_is_explained(folder: Path, options: list[str], complaint: str) -> None:
    async with command("serve", "agents_app.py", *options, cwd=folder) as running:
        assert await running.ended() == 1
    assert len(running.err) == 1
    assert complaint in running.err[0]


async def test_a_data_folder_in_use_is_explained(folder: Path) -> None:
    async with serving(folder, "--data", "shared") as first:
        await first.port()
        async with serving(folder, "--data", "shared") as second:
            assert await second.ended() == 1
        assert len(second.err) == 1
        assert "in use by another perdure process" in second.err[0]
        assert "--data" in second.err[0]
        assert second.out == []


async def test_a_data_folder_that_cannot_be_made_is_explained(folder: Path) -> None:
    async with serving(folder, "--data", "agents_app.py") as running:
        assert await running.ended() == 1
    assert len(running.err) == 1
    assert running.err[0].startswith("perdure: The data folder")


async def test_a_target_that_is_none_is_explained(folder: Path) -> None:
    async with command("serve", "nothing.py", cwd=folder) as running:
        assert await running.ended() == 1
    assert running.err == ["perdure: There is no file 'nothing.py' here."]


async def test_hosts_and_origins_are_let_in_by_options(folder: Path) -> None:
    async with serving(folder, "--allow-host", "chat.example", "--allow-origin", "https://page.example") as running:
        port = await running.port()
        assert (await get(port, "/agents/agent1/x", Host="chat.example")).status_code == 404
        assert (await get(port, "/agents/agent1/x", Host="other.example")).status_code == 403
        assert (await get(port, "/agents/agent1/x", Origin="https://page.example")).status_code == 404
        assert (await get(port, "/agents/agent1/x", Origin="https://other.example")).status_code == 403


async def test_a_proxy_may_take_something_off_the_path(folder: Path) -> None:
    async with serving(folder, "--root-path", "/behind/proxy") as running:
        port = await running.port()
        assert (await get(port, "/agents/agent1/x/get-messages")).json() == []
        client = await tab(running)
        assert (await client.opened())[1]["name"] == "room"
        await client.close()


async def test_logs_say_whose_they_are(folder: Path) -> None:
    async with serving(folder) as running:
        client = await tab(running)
        await client.ask("r1", "Go")
        await client.done("r1")
        await client.close()
        await running.stop()
    lines = [line for line in running.err if " my." in line]
    assert len(lines) == 2
    for line in lines:
        assert "[agent=agent1/room turn=r1]: in a t" in line


async def test_logs_as_json_are_one_object_a_line(folder: Path) -> None:
    async with serving(folder, "--log-format", "json", "--log-level", "info") as running:
        client = await tab(running)
        await client.ask("r1", "Go")
        await client.done("r1")
        await client.send({"type": "rpc", "id": "1", "method": "shout", "args": ["too", "many"]})
        await client.seen(lambda frame: frame.get("id") == "1")
        await client.close()
        await running.stop()
    records = [json.loads(line) for line in running.err]
    for text in ("in a tool\x1b[31m", "in a thread"):
        (record,) = [record for record in records if record["message"] == text]
        assert (record["agent"], record["turn"], record["level"]) == ("agent1/room", "r1", "warning")
    (failed,) = [record for record in records if "shout failed" in record["message"]]
    assert "TypeError" in failed["error"]
    assert "turn" not in failed
    assert failed["agent"] == "agent1/room"


async def test_a_client_that_reads_nothing_costs_little_memory_and_disturbs_nobody(folder: Path) -> None:
    async with serving(folder) as running:
        client, silent = await tab(running), await tab(running)
        await client.opened()
        await silent.opened()
        before = resident_kib(running.process.pid)
        silent.stop_reading()
        listeners, said = 2, 0
        while listeners == 2 or said < 200:
            assert said < 5000, "the silent client is let go of"
            await client.send({"type": "rpc", "id": str(said), "method": "shout", "args": []})
            reply = await client.next(lambda frame, id=str(said): frame.get("id") == id, since=2 * said)
            listeners, said = reply["result"], said + 1
        assert len([frame for frame in client.frames if frame["type"] == "shout"]) == said
        grown = resident_kib(running.process.pid) - before
        assert grown < 64 * 1024, f"{said} MB were said; the server grew by {grown} KiB"
        client.drop()
        silent.drop()
        await client.close()
        await silent.close()


def resident_kib(pid: int) -> int:
    status = Path(f"/proc/{pid}/status").read_text("utf-8")
    return next(int(line.split()[1]) for line in status.splitlines() if line.startswith("VmRSS:"))


async def test_help_and_version() -> None:
    async with command("--version") as version, command("serve", "--help") as help:
        assert await version.ended() == 0
        assert version.out[0].startswith("perdure ")
        assert await help.ended() == 0
    shown = "\n".join(help.out)
    for option in ("--host", "--port", "--data", "--allow-host", "--allow-origin", "--log-format", "--root-path"):
        assert option in shown
    assert "--listener" not in shown
