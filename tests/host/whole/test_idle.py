"""Agents that nothing happens to leave memory; their connections notice nothing."""

import asyncio
import gc
import json
import logging
import sqlite3
import weakref
from pathlib import Path
from typing import Any

import pytest

from perdure import Agent, App, ConfigurationError, Connection, ModelUnreachable, Think, callable
from perdure.host.engine import Engine
from perdure.testing import FakeClock, Gate, ScriptedModel, fail, pause, say
from tests.requirements import requirement
from tests.support import ErrorLog, Serve, chunks_of, user_message
from tests.support.hosting import Hosting, Line, hosting

pytestmark = pytest.mark.anyio


class Room(Agent):
    """Counts how often it came into memory, and what happened to it there."""

    woken: list[weakref.ref[Agent]]
    events: list[str]

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        cls.woken, cls.events = [], []

    def on_start(self) -> None:
        self.woken.append(weakref.ref(self))
        self.events.append(f"start with {len(self.connections)}")

    def on_connect(self, connection: Connection) -> None:
        self.events.append(f"connect {connection.id}")

    def on_message(self, connection: Connection, text: str) -> None:
        self.events.append(f"message {connection.id} {text}")

    @callable
    def ping(self) -> str:
        return "pong"

    @callable
    def all(self) -> list[Any]:
        return [[c.id, c.readonly, c.protocol, c.request.query.get("role"), c.state] for c in self.connections]

    @callable
    def shout(self, text: str) -> None:
        self.broadcast(json.dumps({"shout": text}))


def a_room() -> type[Room]:
    return type("Room", (Room,), {})


def in_memory(room: type[Room]) -> int:
    """How many agents of the class there are."""
    gc.collect()
    return sum(ref() is not None for ref in room.woken)


async def pass_idle(host: Hosting, seconds: float = 60) -> None:
    """Let so much time pass that what is idle has left."""
    for _ in range(6):
        await host.advance(seconds / 4)


# ── leaving ─────────────────────────────────────────────────────────


async def test_an_idle_agent_leaves_memory_and_its_connections_stay_open() -> None:
    room = a_room()
    async with hosting(room) as host:
        lines = [host.line(agent="room", _pk=f"p{number}") for number in range(3)]
        for line in lines:
            await line.call("ping")
        frames = [list(line.frames) for line in lines]
        await pass_idle(host)
        assert in_memory(room) == 0
        assert [line.closed for line in lines] == [None, None, None]
        assert [line.frames for line in lines] == frames


async def test_an_agent_is_not_let_go_before_its_time_and_every_event_starts_it_anew() -> None:
    room = a_room()
    async with hosting(room) as host:
        line = host.line(agent="room")
        for _ in range(8):
            await host.advance(15)
            await host.advance(15)
            await host.advance(15)
            await line.call("ping")
        assert len(room.woken) == 1


async def test_agents_without_connections_leave_as_well() -> None:
    room = a_room()
    async with hosting(room) as host:
        line = host.line(agent="room")
        await line.call("ping")
        line.leave()
        await pass_idle(host)
        assert in_memory(room) == 0


async def test_agents_stay_when_the_app_says_never() -> None:
    room = a_room()
    async with hosting(room, idle_seconds=None) as host:
        await host.line(agent="room").call("ping")
        await host.advance(1e7)
        assert in_memory(room) == 1


@pytest.mark.parametrize("seconds", [0, -1, float("nan")])
def test_a_time_that_is_none_is_refused(seconds: float) -> None:
    with pytest.raises(ConfigurationError, match="idle_seconds"):
        App(Room, idle_seconds=seconds)


# ── coming back ─────────────────────────────────────────────────────


@requirement("protocol:27")
async def test_the_next_message_wakes_it_and_it_knows_its_connections_again() -> None:
    class Guarded(Room):
        def on_connect(self, connection: Connection) -> None:
            connection.state = {"seen": [1, 2.5, None, "é"]}

        def is_readonly(self, connection: Connection) -> bool:
            return connection.request.query.get("role") == "guest"

        def sends_protocol_messages(self, connection: Connection) -> bool:
            return connection.request.query.get("role") != "bot"

        @callable
        def free(self, id: str) -> None:
            for connection in self.connections:
                connection.readonly = connection.readonly and connection.id != id

    async with hosting(Guarded) as host:
        guest = host.line(agent="guarded", _pk="g", role="guest")
        freed = host.line(agent="guarded", _pk="f", role="guest")
        bot = host.line(agent="guarded", _pk="b", role="bot")
        nameless = host.line(agent="guarded")
        before = await guest.call("all")
        await guest.call("free", "f")
        await nameless.call("ping")
        sent = [len(line.frames) for line in (freed, bot)]
        await pass_idle(host)
        assert in_memory(Guarded) == 0

        after = await guest.call("all")
        assert len(Guarded.woken) == 2
        assert after == [[*row[:1], row[1] and row[0] != "f", *row[2:]] for row in before]
        assert [row[:4] for row in after[:3]] == [
            ["g", True, True, "guest"],
            ["f", False, True, "guest"],
            ["b", False, False, "bot"],
        ]
        assert all(row[4] == {"seen": [1, 2.5, None, "é"]} for row in after)
        assert after[3][0] == before[3][0], "also an id that the server made stays"
        assert [len(line.frames) for line in (freed, bot)] == sent, "waking says nothing to anybody"

        guest.post({"type": "cf_agent_state", "state": {"by": "guest"}})
        await guest.seen(lambda frame: frame["type"] == "cf_agent_state_error")
        freed.post({"type": "cf_agent_state", "state": {"by": "freed"}})
        await guest.seen(lambda frame: frame["type"] == "cf_agent_state" and frame["state"] == {"by": "freed"})
        assert not any(frame["type"] == "cf_agent_state" for frame in bot.frames)


async def test_on_start_finds_the_connections_and_can_speak_to_them() -> None:
    class Greeter(Room):
        def on_start(self) -> None:
            super().on_start()
            self.broadcast(json.dumps({"back": len(self.connections)}))

    async with hosting(Greeter) as host:
        first, second = (host.line(agent="greeter") for _ in range(2))
        await first.call("ping")
        await second.call("ping")
        await pass_idle(host)
        await first.call("ping")
        await second.seen(lambda frame: frame.get("back") == 2)


async def test_a_connection_that_comes_wakes_it_for_the_others_too() -> None:
    room = a_room()
    async with hosting(room) as host:
        old = host.line(agent="room", _pk="old")
        await old.call("ping")
        await pass_idle(host)
        new = host.line(agent="room", _pk="new")
        assert [row[0] for row in await new.call("all")] == ["old", "new"]
        await new.call("shout", "hello")
        await old.seen(lambda frame: frame.get("shout") == "hello")
        assert room.events.count("connect old") == 1


async def test_everything_that_arrives_while_it_wakes_is_handled_in_order() -> None:
    room = a_room()
    async with hosting(room) as host:
        line = host.line(agent="room", _pk="p")
        await line.call("ping")
        await pass_idle(host)
        for number in range(20):
            line.post(f"text {number}")
        await line.call("ping")
        messages = [event for event in room.events if event.startswith("message")]
        assert sorted(messages, key=lambda event: int(event.rsplit(" ", 1)[1])) == messages
        assert len(messages) == 20


@pytest.mark.parametrize("hears", [True, False])
async def test_a_connection_that_goes_wakes_it_only_to_be_told(hears: bool) -> None:
    gone = Gate()

    class Listening(Room):
        def on_close(self, connection: Connection) -> None:
            self.events.append(f"close {connection.id} {connection.state} of {len(self.connections)}")
            gone.open()

    room = Listening if hears else a_room()
    name = room.__name__.lower()
    async with hosting(room) as host:
        line, other = host.line(agent=name, _pk="p"), host.line(agent=name, _pk="q")
        await line.call("ping")
        await other.call("ping")
        await pass_idle(host)
        line.leave()
        if hears:
            await gone.passed()
            assert room.events[-1] == "close p None of 1"
        else:
            for _ in range(20):
                await asyncio.sleep(0)
            assert len(room.woken) == 1
        assert [row[0] for row in await other.call("all")] == ["q"]


async def test_what_is_stored_is_there_again() -> None:
    class Keeper(Room):
        initial_state = {"count": 0}

        @callable
        def more(self) -> int:
            self.set_state({"count": self.state["count"] + 1})
            self.configure({"last": self.state["count"]})
            return self.get_config()["last"]

    async with hosting(Keeper) as host:
        line = host.line(agent="keeper")
        for count in range(1, 5):
            assert await line.call("more") == count
            await pass_idle(host)
        assert len(Keeper.woken) == 4


async def test_a_timer_wakes_it_and_it_reaches_its_connections() -> None:
    class Clerk(Room):
        @callable
        def remind(self, seconds: float) -> None:
            self.schedule(seconds, "shout", "time")

    async with hosting(Clerk) as host:
        line = host.line(agent="clerk")
        await line.call("remind", 1_000)
        await pass_idle(host)
        assert in_memory(Clerk) == 0
        await host.advance(910)
        await line.seen(lambda frame: frame.get("shout") == "time")
        assert len(Clerk.woken) == 2
        await pass_idle(host)
        assert in_memory(Clerk) == 0, "nothing is left to do, so it sleeps"


# ── staying ─────────────────────────────────────────────────────────


async def test_an_agent_with_a_call_that_runs_stays() -> None:
    gate = Gate()

    class Busy(Room):
        @callable
        async def wait(self) -> str:
            await gate.passed()
            return "done"

    async with hosting(Busy) as host:
        line = host.line(agent="busy")
        waiting = asyncio.create_task(line.call("wait"))
        await pass_idle(host, 600)
        assert in_memory(Busy) == 1
        gate.open()
        assert await waiting == "done"
        await pass_idle(host)
        assert in_memory(Busy) == 0


async def test_an_agent_whose_last_write_is_not_stored_stays() -> None:
    class Keeper(Room):
        @callable
        def put(self, value: int) -> int:
            self.set_state(value)
            return value

    async with hosting(Keeper) as host:
        line = host.line(agent="keeper")
        await line.call("ping")
        host.store.hold()
        putting = asyncio.create_task(line.call("put", 7))
        await pass_idle(host)
        assert in_memory(Keeper) == 1
        host.store.release()
        assert await putting == 7
        await pass_idle(host)
        assert in_memory(Keeper) == 0
        line.frames.clear()
        assert (await host.line(agent="keeper").seen(lambda frame: frame["type"] == "cf_agent_state"))["state"] == 7


@pytest.mark.parametrize("state", [object(), {1: "a"}, (1, 2), {"deep": [{"set": {1}}]}, b"bytes"])
async def test_an_agent_stays_whose_connections_hold_what_would_not_come_back(state: Any) -> None:
    class Holder(Room):
        def on_connect(self, connection: Connection) -> None:
            connection.state = state

    async with hosting(Holder) as host:
        line = host.line(agent="holder")
        await line.call("ping")
        await pass_idle(host)
        assert in_memory(Holder) == 1
        line.leave()
        await pass_idle(host)
        assert in_memory(Holder) == 0


# ── conversations, over real sockets ────────────────────────────────


async def pass_time(clock: FakeClock) -> None:
    """As :func:`pass_idle`, for a server with an ``idle_seconds`` of 60."""
    for _ in range(6):
        await clock.sleeping(2)
        clock.advance(15)
    await clock.sleeping(2)


class Chat(Think):
    """Counts how often it came into memory."""

    starts: int

    def on_start(self) -> None:
        type(self).starts += 1


def a_chat(model: ScriptedModel) -> type[Chat]:
    return type("Agent", (Chat,), {"model": model, "starts": 0})


@requirement("engine:28")
async def test_a_conversation_goes_on_after_the_agent_left_memory(serve: Serve) -> None:
    model = ScriptedModel([say("One."), say("Two.")])
    chat, clock = a_chat(model), FakeClock()
    server = await serve(chat, engine=Engine(clock=clock))
    tab, other = await server.tab(), await server.tab()
    await tab.ask("r1", user_message("First?", "u1"))
    await tab.done("r1")
    await other.done("r1")
    seen = len(tab.frames), len(other.frames)

    await pass_time(clock)
    stored = await server.stored()
    assert chat.starts == 2
    assert len(model.requests) == 1, "no turn ran because of it"
    assert (len(tab.frames), len(other.frames)) == seen

    await pass_time(clock)
    await tab.ask("r2", *stored, user_message("Second?", "u2"))
    await other.done("r2")
    assert chat.starts == 3
    assert [message["role"] for message in model.requests[1].messages] == ["user", "assistant", "user"]
    assert "".join(c["delta"] for c in chunks_of(other.frames, "r2") if c["type"] == "text-delta") == "Two."
    assert len(await server.stored()) == 4
    assert not [frame for frame in tab.frames[3:] if frame["type"] in {"cf_agent_identity", "cf_agent_mcp_servers"}]


async def test_a_request_that_comes_again_after_that_is_known(serve: Serve) -> None:
    model = ScriptedModel([say("One.")])
    chat, clock = a_chat(model), FakeClock()
    server = await serve(chat, engine=Engine(clock=clock))
    tab = await server.tab()
    question = user_message("First?", "u1")
    await tab.ask("r1", question)
    await tab.done("r1")
    await pass_time(clock)
    await tab.ask("r1", question)
    await tab.settle()
    assert chat.starts == 2
    assert len(model.requests) == 1
    assert len(await server.stored()) == 2


@requirement("fault:RS-13")
async def test_a_turn_keeps_its_agent_for_as_long_as_it_runs_and_leaves_nothing_behind(
    serve: Serve, tmp_path: Path
) -> None:
    gate = Gate()
    model = ScriptedModel([say("Old."), [say("Sl"), pause(gate), say("ow.")]])
    chat, clock = a_chat(model), FakeClock()
    server = await serve(chat, engine=Engine(clock=clock))
    tab = await server.tab()
    await tab.ask("r1", "First?")
    await tab.done("r1")
    await tab.ask("r2", *await server.stored(), "Second?")
    await tab.delta("r2", "Sl")
    for _ in range(60):
        await pass_time(clock)
    late = await server.tab()
    await late.probe("p")
    await late.ack("r2")
    await late.delta("r2", "Sl")
    gate.open()
    await late.done("r2")
    assert "".join(c["delta"] for c in chunks_of(late.frames, "r2") if c["type"] == "text-delta") == "Slow."
    assert chat.starts == 1
    await pass_time(clock)
    await tab.settle()
    assert chat.starts == 2
    await server.stop()

    connection = sqlite3.connect(tmp_path / "perdure.db")
    assert connection.execute("select count(*) from chunk").fetchone() == (0,)
    assert connection.execute("select count(*) from turn where closing is null").fetchone() == (0,)
    connection.close()


async def test_a_failed_turn_is_still_shown_to_those_who_come_later(serve: Serve) -> None:
    model = ScriptedModel([[say("Half"), fail(ModelUnreachable("The line broke."))]])
    chat, clock = a_chat(model), FakeClock()
    server = await serve(chat, engine=Engine(clock=clock))
    tab = await server.tab()
    await tab.ask("r1", "First?")
    await tab.done("r1")
    await pass_time(clock)
    late = await server.tab()
    offer = await late.probe("p")
    assert (offer["type"], offer["id"]) == ("cf_agent_stream_resuming", "r1")
    await late.ack("r1")
    end = await late.done("r1")
    assert end["error"] is True
    assert "The line broke." in end["body"]
    assert chat.starts == 2


async def test_leaving_is_told_in_the_log_for_those_who_look(caplog: pytest.LogCaptureFixture, log: ErrorLog) -> None:
    caplog.set_level(logging.DEBUG, "perdure.host")
    async with hosting(a_room()) as host:
        line: Line = host.line(agent="room")
        await line.call("ping")
        await pass_idle(host)
    assert any("room/room left memory; 1 connections stay open" in record.message for record in caplog.records)
