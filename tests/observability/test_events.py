"""What subscribers are told, by agents that talk to real connections."""

import asyncio
import logging
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from perdure import Agent, App, Event, ReplyStream, Think, callable, tool
from perdure.errors import ModelRejected, ModelUnreachable
from perdure.observability import Events, current_scope, emit
from perdure.testing import Gate, ScriptedModel, call, fail, pause, say
from tests.requirements import requirement
from tests.support import ErrorLog, Tab, chat_request, serving_app

pytestmark = pytest.mark.anyio


class Log:
    """Everything that happened, and a way to wait for it."""

    def __init__(self) -> None:
        self.events: list[Event] = []
        self._changed = asyncio.Event()

    def __call__(self, event: Event) -> None:
        self.events.append(event)
        self._changed.set()

    def of(self, prefix: str) -> list[tuple[str, dict[str, Any]]]:
        return [(event.type, dict(event.payload)) for event in self.events if event.type.startswith(prefix)]

    async def until(self, wanted: Callable[[Event], bool]) -> Event:
        async with asyncio.timeout(10):
            while True:
                for event in self.events:
                    if wanted(event):
                        return event
                self._changed.clear()
                await self._changed.wait()

    async def finished(self, request: str) -> Event:
        return await self.until(
            lambda event: event.type == "chat:turn:finish" and event.payload["requestId"] == request
        )


@pytest.fixture
def seen() -> Log:
    return Log()


def chat(*steps: Any, **fields: Any) -> type[Think]:
    return type("Chat", (Think,), {"model": ScriptedModel(steps), **fields})


async def test_an_event_says_what_happened_to_whom_and_when(tmp_path: Path, seen: Log) -> None:
    before = time.time() * 1000
    async with serving_app(App(chat([say("Hi.")]), data=tmp_path, on_event=seen)) as server:
        tab = await server.connect("/agents/chat/my%20room?_pk=me")
        await tab.opened()
        await tab.close()
        await seen.until(lambda event: event.type == "disconnect")
    connect, disconnect = seen.events
    assert (connect.type, connect.agent, connect.name) == ("connect", "Chat", "my%20room")
    assert connect.payload == disconnect.payload == {"connectionId": "me"}
    assert before - 1 <= connect.timestamp <= disconnect.timestamp <= time.time() * 1000 + 1


@requirement("engine:8")
async def test_a_turn_starts_once_and_finishes_once(tmp_path: Path, seen: Log) -> None:
    gate = Gate()
    kind = chat([pause(gate), say("One.")], [say("Two.")])
    async with serving_app(App(kind, data=tmp_path, on_event=seen)) as server:
        tab = await server.connect("/agents/chat/room")
        await tab.ask("r1", "First")
        await gate.reached()
        await tab.ask("r2", "Second")
        await tab.settle()
        assert [event.payload["requestId"] for event in seen.events if event.type == "chat:turn:start"] == ["r1"]
        gate.open()
        await seen.finished("r2")
    assert seen.of("chat:turn:") == [
        ("chat:turn:start", {"requestId": "r1", "trigger": "ws-chat", "continuation": False}),
        ("chat:turn:finish", {"requestId": "r1", "status": "completed"}),
        ("chat:turn:start", {"requestId": "r2", "trigger": "ws-chat", "continuation": False}),
        ("chat:turn:finish", {"requestId": "r2", "status": "completed"}),
    ]


@requirement("engine:8", "engine:9")
async def test_turns_of_the_servers_own_code_are_told_and_skipped_ones_are_not(tmp_path: Path, seen: Log) -> None:
    class Chat(Think):
        model = ScriptedModel([[say("Hi.")]])

        @callable
        async def go(self, text: str) -> str:
            return (await self.run_turn(text)).status

    async with serving_app(App(Chat, data=tmp_path, on_event=seen)) as server:
        tab = await server.connect("/agents/chat/room")
        for text, status in (("", "skipped"), ("hello", "completed")):
            await tab.send({"type": "rpc", "id": status, "method": "go", "args": [text]})
            reply = await tab.seen(lambda frame, id=status: frame.get("id") == id and frame["type"] == "rpc")
            assert reply["result"] == status
    turns = seen.of("chat:")
    assert [type for type, _ in turns] == ["chat:turn:start", "chat:turn:finish"]
    assert turns[0][1]["trigger"] == "programmatic"
    assert turns[0][1]["requestId"] == turns[1][1]["requestId"]


@pytest.mark.parametrize(
    ("step", "stage", "error"),
    [
        ([say("Half"), fail(ModelUnreachable("the line broke"))], "stream", "the line broke"),
        ([fail(ModelRejected("no such model"))], "stream", "no such model"),
    ],
)
@requirement("engine:42")
async def test_a_failed_turn_is_told(tmp_path: Path, seen: Log, step: Any, stage: str, error: str) -> None:
    async with serving_app(App(chat(step), data=tmp_path, on_event=seen)) as server:
        tab = await server.connect("/agents/chat/room")
        await tab.ask("r1", "Go")
        await seen.finished("r1")
    assert seen.of("message:") == [("message:error", {"requestId": "r1", "error": error})]
    failed = {"requestId": "r1", "stage": stage, "messagesPersisted": True, "error": error}
    assert seen.of("chat:request") == [("chat:request:failed", failed)]
    assert seen.of("chat:turn:finish") == [("chat:turn:finish", {"requestId": "r1", "status": "error"})]


@requirement("engine:42")
async def test_a_failed_turn_of_the_servers_own_code_is_told_and_keeps_its_part(tmp_path: Path, seen: Log) -> None:
    class Chat(Think):
        model = ScriptedModel([[say("Half"), fail(ModelUnreachable("the line broke"))]])

        @callable
        async def go(self) -> list[str]:
            result = await self.run_turn("Hi")
            return [result.status, self.messages[-1]["parts"][-1]["text"]]

    async with serving_app(App(Chat, data=tmp_path, on_event=seen)) as server:
        tab = await server.connect("/agents/chat/room")
        reply = await rpc(tab, "go")
    assert reply["result"] == ["error", "Half"]
    ((_, failed),) = seen.of("chat:request")
    assert (failed["stage"], failed["error"]) == ("stream", "the line broke")


async def test_a_turn_that_fails_before_it_streams_is_told(tmp_path: Path, seen: Log, log: ErrorLog) -> None:
    def get_tools(self: Any) -> Any:
        raise RuntimeError("the password is hunter2")

    async with serving_app(App(chat(get_tools=get_tools), data=tmp_path, on_event=seen)) as server:
        tab = await server.connect("/agents/chat/room")
        await tab.ask("r1", "Go")
        await seen.finished("r1")
    ((_, failed),) = seen.of("chat:request")
    assert failed["stage"] == "turn"
    assert "hunter2" not in failed["error"]
    log.expect("Turn r1 failed")


@pytest.mark.parametrize("body", ["{", '{"messages":5}', ""])
async def test_a_request_that_cannot_be_read_is_told(tmp_path: Path, seen: Log, body: str) -> None:
    async with serving_app(App(chat(), data=tmp_path, on_event=seen)) as server:
        tab = await server.connect("/agents/chat/room")
        await tab.send(chat_request("r1", body))
        await seen.until(lambda event: event.type == "chat:request:failed")
    ((_, failed),) = seen.of("chat:")
    assert (failed["requestId"], failed["stage"], failed["messagesPersisted"]) == ("r1", "parse", False)
    assert failed["error"]


async def test_a_stopped_turn_with_an_open_call_tells_of_the_repair(tmp_path: Path, seen: Log) -> None:
    @tool
    async def forever() -> None:
        """Never returns."""
        await asyncio.Event().wait()

    kind = chat([call("forever", id="c1")], get_tools=lambda self: [forever])
    async with serving_app(App(kind, data=tmp_path, on_event=seen)) as server:
        tab = await server.connect("/agents/chat/room")
        await tab.ask("r1", "Go")
        await tab.seen(lambda frame: '"tool-input-available"' in frame.get("body", ""))
        await tab.cancel("r1")
        finish = await seen.finished("r1")
    assert finish.payload["status"] == "aborted"
    assert seen.of("chat:transcript") == [("chat:transcript:repaired", {"requestId": "r1", "toolCallIds": ["c1"]})]


class Working(Agent):
    initial_state = {"n": 0}

    @callable
    def bump(self) -> None:
        self.set_state({"n": self.state["n"] + 1})

    @callable
    def breaks(self) -> None:
        raise ValueError("no such thing")

    @callable
    async def counts(self) -> Any:
        for n in range(2):
            yield n

    @callable
    def streams(self, replies: ReplyStream) -> None:
        replies.end(1)

    def hidden(self) -> None: ...


async def rpc(tab: Tab, method: str) -> dict[str, Any]:
    await tab.send({"type": "rpc", "id": method, "method": method, "args": []})
    return await tab.seen(lambda frame: frame.get("id") == method and frame.get("done") is not False)


async def test_calls_and_state_are_told(tmp_path: Path, seen: Log) -> None:
    async with serving_app(App(Working, data=tmp_path, on_event=seen)) as server:
        tab = await server.connect("/agents/working/room")
        for method in ("bump", "counts", "streams", "breaks", "hidden", "absent"):
            await rpc(tab, method)
        await tab.send({"type": "cf_agent_state", "state": {"n": 9}})
        await seen.until(lambda event: len(seen.of("state")) == 2)
    assert seen.of("rpc") == [
        ("rpc", {"method": "bump"}),
        ("rpc", {"method": "counts", "streaming": True}),
        ("rpc", {"method": "streams", "streaming": True}),
        ("rpc", {"method": "breaks"}),
        ("rpc:error", {"method": "breaks", "error": "no such thing"}),
        ("rpc:error", {"method": "hidden", "error": "Method hidden is not callable"}),
        ("rpc:error", {"method": "absent", "error": "Method absent does not exist"}),
    ]
    assert seen.of("state") == [("state:update", {}), ("state:update", {})]


async def test_nothing_that_was_said_is_in_an_event(tmp_path: Path, seen: Log) -> None:
    secret = "correct horse battery staple"

    @tool
    async def keep(what: str) -> str:
        """Keep."""
        return secret

    steps = [call("keep", {"what": secret})], [say(secret)]
    kind = chat(*steps, initial_state={"x": secret}, get_tools=lambda self: [keep])
    async with serving_app(App(kind, data=tmp_path, on_event=seen)) as server:
        tab = await server.connect("/agents/chat/room")
        await tab.ask("r1", secret)
        await seen.finished("r1")
    assert len(seen.events) >= 3
    assert secret not in repr(seen.events)


async def test_a_subscriber_that_fails_disturbs_nobody(tmp_path: Path, seen: Log, log: ErrorLog) -> None:
    def broken(event: Event) -> None:
        raise RuntimeError("subscriber is broken")

    app = App(chat([say("Hi.")]), data=tmp_path, on_event=broken)
    app.events.subscribe(seen)
    async with serving_app(app) as server:
        tab = await server.connect("/agents/chat/room")
        await tab.ask("r1", "Go")
        assert (await tab.done("r1"))["outcome"] == "completed"
        await seen.finished("r1")
    log.expect("A subscriber failed at the event")


async def test_events_of_several_agents_are_told_apart(tmp_path: Path, seen: Log) -> None:
    class Parent(Think):
        model = ScriptedModel([])

    async with serving_app(App(Parent, Working, data=tmp_path, on_event=seen)) as server:
        one, two = await server.connect("/agents/parent/one"), await server.connect("/agents/working/two")
        await one.opened()
        await two.opened()
        await rpc(two, "bump")
    assert {(event.agent, event.name) for event in seen.events if event.type == "connect"} == {
        ("Parent", "one"),
        ("Working", "two"),
    }
    assert {(event.agent, event.name) for event in seen.events if event.type == "rpc"} == {("Working", "two")}


def test_subscribing_can_be_undone() -> None:
    told: list[str] = []
    events = Events()
    assert not events
    undo = events.subscribe(lambda event: told.append(event.type))
    assert events
    events.publish("a", "Agent", "x", {})
    undo()
    undo()
    events.publish("b", "Agent", "x", {})
    assert told == ["a"]
    assert not events


def test_a_subscriber_may_leave_while_it_is_told(caplog: pytest.LogCaptureFixture) -> None:
    events = Events()
    told: list[str] = []

    def once(event: Event) -> None:
        told.append(event.type)
        undo()

    undo = events.subscribe(once)
    events.subscribe(lambda event: told.append(f"second {event.type}"))
    events.publish("a", "Agent", "x", {})
    events.publish("b", "Agent", "x", {})
    assert told == ["a", "second a", "second b"]
    assert not [record for record in caplog.records if record.levelno >= logging.ERROR]


def test_emitting_outside_of_any_agents_work_does_nothing() -> None:
    assert current_scope.get() is None
    emit("chat:turn:start", requestId="x")
