"""Log records: whose work wrote them, and how they look."""

import asyncio
import io
import json
import logging
import threading
from collections.abc import Generator
from pathlib import Path
from typing import Any

import pytest

from perdure import Agent, App, Connection, Think, callable, tool
from perdure.observability import Events, Scope, in_turn, within
from perdure.observability.logs import WorkFilter, log_handler
from perdure.testing import ScriptedModel, call, say
from tests.support import serving_app

pytestmark = pytest.mark.anyio

SCOPE = Scope(agent="Chat", name="room", key="chat/room", events=Events())


class Records(logging.Handler):
    """Collects records with whose they are."""

    def __init__(self) -> None:
        super().__init__()
        self.addFilter(WorkFilter())
        self.found: list[tuple[str, Any, Any]] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.found.append((record.getMessage(), record.__dict__["agent"], record.__dict__["turn"]))


@pytest.fixture
def records() -> Generator[Records]:
    handler = Records()
    mine = logging.getLogger("mine")
    mine.setLevel(logging.INFO)
    mine.addHandler(handler)
    yield handler
    mine.removeHandler(handler)


log = logging.getLogger("mine")


@tool
async def writes() -> str:
    """Writes to the log."""
    log.info("async tool")
    await asyncio.to_thread(log.info, "thread of a tool")
    return "done"


@tool
def writes_in_thread() -> str:
    """Writes to the log from a worker thread."""
    assert threading.current_thread() is not threading.main_thread()
    log.info("sync tool")
    return "done"


async def test_every_record_of_an_agents_work_says_whose_it_is(tmp_path: Path, records: Records) -> None:
    class Chat(Think):
        model = ScriptedModel([[call("writes"), call("writes_in_thread")], [say("Hi.")]])

        def on_start(self) -> None:
            log.info("start")

        def on_connect(self, connection: Connection) -> None:
            log.info("connect")

        def get_tools(self) -> Any:
            log.info("tools")
            return [writes, writes_in_thread]

        async def on_chat_response(self, response: Any) -> None:
            log.info("response")

        async def on_request(self, request: Any) -> Any:
            log.info("request")
            return await super().on_request(request)

        @callable
        async def work(self) -> None:
            log.info("call")

    async with serving_app(App(Chat, data=tmp_path)) as server:
        tab = await server.connect("/agents/chat/room")
        await tab.ask("r1", "Go")
        await tab.done("r1")
        await tab.send({"type": "rpc", "id": "1", "method": "work", "args": []})
        await tab.seen(lambda frame: frame.get("id") == "1")
        await server.get("/agents/chat/other/x")
        log.info("outside")
    turn = {("chat/room", "r1")}
    found = {text: {(agent, turn) for said, agent, turn in records.found if said == text} for text, *_ in records.found}
    assert found == {
        "start": {("chat/room", None), ("chat/other", None)},
        "connect": {("chat/room", None)},
        "tools": turn,
        "async tool": turn,
        "thread of a tool": turn,
        "sync tool": turn,
        "response": turn,
        "call": {("chat/room", None)},
        "request": {("chat/other", None)},
        "outside": {(None, None)},
    }


async def test_work_that_one_agent_gives_another_is_the_others(tmp_path: Path, records: Records) -> None:
    """Two agents in one process: what runs for one never carries the name of the other."""

    class Noisy(Agent):
        @callable
        async def work(self, other: asyncio.Event | None = None) -> None:
            for _ in range(5):
                log.info("%s", self.name)
                await asyncio.sleep(0)

    async with serving_app(App(Noisy, data=tmp_path)) as server:
        tabs = [await server.connect(f"/agents/noisy/{name}") for name in "ab"]
        for tab in tabs:
            await tab.send({"type": "rpc", "id": "1", "method": "work", "args": []})
        for tab in tabs:
            await tab.seen(lambda frame: frame.get("id") == "1")
    assert {(text, agent) for text, agent, _ in records.found} == {("a", "noisy/a"), ("b", "noisy/b")}


def written(format: Any, *args: Any, **options: Any) -> str:
    stream = io.StringIO()
    handler = log_handler(format, stream)
    logger = logging.Logger("some.part")
    logger.addHandler(handler)
    logger.error(*args, **options)
    return stream.getvalue()


def test_text_names_agent_and_turn() -> None:
    with within(SCOPE), in_turn("r1"):
        assert written("text", "Hello %s", "you").endswith(" ERROR some.part [agent=chat/room turn=r1]: Hello you\n")
    with within(SCOPE):
        assert " [agent=chat/room]: x" in written("text", "x")
    assert " ERROR some.part: x" in written("text", "x")


def test_json_is_one_object_a_line_whatever_is_logged() -> None:
    nasty = 'a "quote"\nnew line \x1b[31m \ud800 ☃'
    with within(SCOPE), in_turn("r1"):
        line = written("json", "%s", nasty, extra={"size": 5, "odd": object(), "agent": "chat/other"})
    assert line.count("\n") == 1
    assert line.isascii()
    record = json.loads(line)
    assert record["message"] == nasty
    assert (record["level"], record["logger"], record["turn"]) == ("error", "some.part", "r1")
    assert record["agent"] == "chat/other", "who logs for another agent may say so"
    assert record["size"] == 5
    assert "object object" in record["odd"]
    assert record["time"].endswith("+00:00")


def test_json_tells_of_exceptions() -> None:
    try:
        raise ValueError("what went wrong")
    except ValueError:
        record = json.loads(written("json", "It failed", exc_info=True))
    assert "ValueError: what went wrong" in record["error"]
    assert "Traceback" in record["error"]
    assert "agent" not in record


def test_a_turn_without_an_agent_is_nobodys() -> None:
    with in_turn("r1"):
        assert "turn" not in json.loads(written("json", "x"))
