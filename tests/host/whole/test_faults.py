"""A full disk, a locked or damaged file, a fence: a clear error for those concerned, nothing for the others."""

import asyncio
import itertools
import random
import sqlite3
import sys
from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any

import pytest
from websockets.exceptions import ConnectionClosed

from perdure import Agent, callable
from perdure.host.engine import Engine
from perdure.storage.sqlite import SqliteStore
from perdure.testing import FakeClock, Gate, ScriptedModel, pause, say
from tests.support import Doubles, ErrorLog, Serve, Tab, agent, text_of, user_message
from tests.support.hosting import hosting
from tests.support.process import ServerProcess
from tests.support.tabs import chunks_of

pytestmark = pytest.mark.anyio

STORAGE = (1011, "The agent's data could not be stored or read. Reconnect to see what is kept.")
FENCED = (1011, "The agent is served elsewhere now. Reconnect to go on.")

_ids = itertools.count(1)


async def rpc(tab: Tab, method: str, *args: Any) -> Any:
    id = f"rpc-{next(_ids)}"
    await tab.send({"type": "rpc", "id": id, "method": method, "args": list(args)})
    reply = await tab.seen(lambda frame: frame.get("id") == id)
    assert reply["success"], reply
    return reply.get("result")


# ── a disk that is full ─────────────────────────────────────────────


@pytest.fixture
async def small_disk(tmp_path: Path) -> AsyncGenerator[ServerProcess]:
    server = ServerProcess("tests.host.processes.small_disk:app", tmp_path)
    await asyncio.to_thread(server.start)
    yield server
    await asyncio.to_thread(server.kill)


async def tab_of(server: ServerProcess, name: str) -> Tab:
    return await Tab.open(f"{server.url.replace('http', 'ws')}/agents/agent/{name}")


@pytest.mark.skipif(sys.platform == "win32", reason="limits on file sizes are POSIX")
async def test_a_disk_that_fills_up_in_mid_turn_stops_those_who_write_and_nobody_else(
    small_disk: ServerProcess,
) -> None:
    writing, reading, quiet = [await tab_of(small_disk, name) for name in ("a", "a", "quiet")]
    for tab in (writing, reading, quiet):
        await tab.opened()
    assert await rpc(quiet, "remember", "seen") == "seen"
    await rpc(quiet, "go")
    await writing.ask("r1", user_message("3 3", "u1"))
    await writing.done("r1")
    stored = await asyncio.to_thread(small_disk.stored, "agent", "a")

    await rpc(quiet, "fill")
    await writing.ask("r2", *stored, user_message("200 200", "u2"))
    for tab in (writing, reading):
        assert await tab.ended() == STORAGE
        (end,) = [frame for frame in tab.frames if frame.get("done") and frame["id"] == "r2"]
        assert end["error"] is True
        assert "could not store the conversation" in end["body"]
    assert await rpc(quiet, "ping") == "pong", "whoever does not write goes on"
    assert await asyncio.to_thread(small_disk.stored, "agent", "a") == stored, "what is stored can be read"
    back = await tab_of(small_disk, "a")
    assert (await back.opened())[0]["messages"] == stored

    await quiet.send({"type": "rpc", "id": "lost", "method": "remember", "args": ["never stored"]})
    assert await quiet.ended() == STORAGE
    assert not [frame for frame in quiet.frames if frame.get("id") == "lost"], "no reply without the state behind it"

    await rpc(back, "free")
    await back.ask("r3", *stored, user_message("2 0", "u3"))
    assert (await back.done("r3"))["outcome"] == "completed"
    after = await tab_of(small_disk, "quiet")
    states = [frame["state"] for frame in await after.opened() if frame["type"] == "cf_agent_state"]
    assert states == ["seen"]


@pytest.mark.skipif(sys.platform == "win32", reason="limits on file sizes are POSIX")
async def test_a_turn_that_ran_into_a_full_disk_is_found_as_interrupted_when_there_is_room_again(
    small_disk: ServerProcess,
) -> None:
    tab, helper = await tab_of(small_disk, "a"), await tab_of(small_disk, "helper")
    await tab.ask("r1", user_message("100 500", "u1"))
    await tab.delta("r1", "99 ")
    await rpc(helper, "fill")
    await rpc(helper, "go")
    assert await tab.ended() == STORAGE
    await rpc(helper, "free")
    back = await tab_of(small_disk, "a")
    messages = (await back.opened())[0]["messages"]
    assert [message["role"] for message in messages] == ["user", "assistant"]
    assert messages[1]["parts"][-1]["text"].startswith("0 1 2 ")
    await back.probe("p")
    await back.ack("r1")
    end = await back.done("r1")
    assert end["error"] is True
    await back.ask("r2", *messages, user_message("1 1", "u2"))
    assert (await back.done("r2"))["outcome"] == "completed"


@pytest.mark.skipif(sys.platform == "win32", reason="limits on file sizes are POSIX")
async def test_while_the_disk_is_full_a_conversation_with_an_open_turn_is_shown_and_nothing_is_promised(
    small_disk: ServerProcess,
) -> None:
    tab, helper = await tab_of(small_disk, "a"), await tab_of(small_disk, "helper")
    await tab.ask("r1", user_message("100 500", "u1"))
    await tab.delta("r1", "99 ")
    await rpc(helper, "fill")
    await rpc(helper, "go")
    assert await tab.ended() == STORAGE
    shown: list[Any] = []
    for number in range(2, 4):
        back = await tab_of(small_disk, "a")
        await back.ask(f"r{number}", user_message("1 1", f"u{number}"))
        assert await back.ended() == STORAGE
        shown.append(back.frames[0]["messages"])
        # The request may come when the connection is being closed already.
        for end in back.of(f"r{number}"):
            assert end["error"] is True
            assert "could not store the conversation" in end["body"]

    await rpc(helper, "free")
    back = await tab_of(small_disk, "a")
    stored = (await back.opened())[0]["messages"]
    assert [message["role"] for message in stored] == ["user", "assistant"]
    assert shown == [stored, stored], "what was shown is what is stored once there is room"
    await back.ask("r4", *stored, user_message("1 1", "u4"))
    assert (await back.done("r4"))["outcome"] == "completed"


# ── a file that is locked ───────────────────────────────────────────


async def test_a_file_that_another_program_locks_holds_writers_up_and_fails_them_after_a_while(
    serve: Serve, tmp_path: Path, log: ErrorLog
) -> None:
    server = await serve(agent(ScriptedModel([say("One."), say("Two."), say("Three.")])))
    tab, other = await server.tab("a"), await server.tab("b")
    await other.ask("o1", "Hi")
    await other.done("o1")
    stored = await server.stored("b")
    lock = sqlite3.connect(tmp_path / "perdure.db", isolation_level=None)
    lock.execute("begin immediate")
    await tab.ask("r1", user_message("Hi", "u1"))
    assert await server.stored("b") == stored, "readers do not wait"
    fresh = await server.tab("c")
    await fresh.opened()
    assert await tab.ended() == STORAGE
    (end,) = tab.of("r1")
    assert end["error"] is True
    lock.execute("rollback")
    lock.close()

    assert await server.stored("a") == []
    back = await server.tab("a")
    await back.ask("r1", user_message("Hi", "u1"))
    assert (await back.done("r1"))["outcome"] == "completed"
    log.expect("Another program holds the file locked. Close it there.")
    if log.errors:  # what the turn had to say by then
        log.expect("as an earlier one of this agent failed")


# ── a file that is damaged ──────────────────────────────────────────


def damage(file: Path, marker: bytes) -> None:
    """Break the page that holds ``marker``: it does not say any more where the rest of the message is."""
    data = bytearray(file.read_bytes())
    page = data.index(marker) // 4096 * 4096
    data[page : page + 4] = b"\xff\xff\xff\xff"
    file.write_bytes(data)


async def test_a_damaged_page_concerns_the_agent_whose_it_is(serve: Serve, tmp_path: Path, log: ErrorLog) -> None:
    model = ScriptedModel([say("One."), say("Two."), say("Three.")])
    server = await serve(agent(model))
    for name in ("bad", "good"):
        tab = await server.tab(name)
        await tab.ask("r1", f"{name} " + f"MARK-{name}-" * 3000)
        await tab.done("r1")
    stored = await server.stored("good")
    await server.stop()
    damage(tmp_path / "perdure.db", b"MARK-bad-" * 300)

    server = await serve(agent(model))
    bad, good = await server.tab("bad"), await server.tab("good")
    assert await bad.ended() == STORAGE
    assert bad.frames == []
    answer = await server.get("/agents/agent/bad/get-messages")
    assert answer.status_code == 503
    assert "cannot be reached" in answer.text
    assert (await good.opened())[0]["messages"] == stored
    await good.ask("r2", *stored, "More?")
    assert (await good.done("r2"))["outcome"] == "completed"
    log.expect("database disk image is malformed")


# ── at wake ─────────────────────────────────────────────────────────


class Plain(Agent):
    initial_state = 0

    @callable
    def add(self, by: int) -> int:
        self.set_state(self.state + by)
        return self.state


async def test_an_agent_that_cannot_be_read_when_it_is_needed_again_closes_its_connections(log: ErrorLog) -> None:
    async with hosting(Plain) as host:
        lines = [host.line(agent="plain") for _ in range(3)]
        elsewhere = host.line("elsewhere", agent="plain")
        for line in (*lines, elsewhere):
            await line.call("add", 2)
        for _ in range(6):
            await host.advance(15)
        host.store.fail_reads("plain/room")
        lines[0].post({"type": "rpc", "id": "x", "method": "add", "args": [1]})
        assert [await line.ended() for line in lines] == [STORAGE] * 3
        assert await elsewhere.call("add", 1) == 3
        host.store.heal("plain/room")
        assert await host.line(agent="plain").call("add", 1) == 7
        log.expect("The agent plain/room is dropped from memory")


async def test_one_that_cannot_be_woken_is_tried_again_with_the_next_event(log: ErrorLog) -> None:
    class Moody(Agent):
        moods = iter([RuntimeError("bad day"), RuntimeError("bad day"), None])

        def on_start(self) -> None:
            if (mood := next(self.moods)) is not None:
                raise mood

        @callable
        def ping(self) -> str:
            return "pong"

    async with hosting(Moody) as host:
        for _ in range(2):
            line = host.line(agent="moody")
            assert await line.ended() == (1011, "The agent could not be served. See the server's log.")
        assert await host.line(agent="moody").call("ping") == "pong"
        log.expect("bad day")


async def test_a_store_that_is_closed_under_the_host_ends_connections_clearly(log: ErrorLog) -> None:
    async with hosting(Plain) as host:
        line = host.line(agent="plain")
        await line.call("add", 1)
        await host.store.close()
        line.post({"type": "rpc", "id": "x", "method": "add", "args": [1]})
        assert await line.ended() == STORAGE
        assert not [frame for frame in line.frames if frame.get("id") == "x"]
        late = host.line("late", agent="plain")
        assert await late.ended() == STORAGE
        log.expect("is closed")


# ── a fence ─────────────────────────────────────────────────────────


async def test_an_agent_that_another_process_owns_is_let_go_of_in_mid_turn(serve: Serve, log: ErrorLog) -> None:
    gate, doubles = Gate(), Doubles()
    model = ScriptedModel([[say("Half"), pause(gate), say(*("more" for _ in range(100)))], say("Fine.")])
    server = await serve(agent(model), engine=doubles.engine)
    tab, watching, other = await server.tab("a"), await server.tab("a"), await server.tab("b")
    await tab.ask("r1", "Hi")
    await tab.delta("r1", "Half")
    doubles.store.fence("agent/a")
    gate.open()
    for each in (tab, watching):
        assert await each.ended() == FENCED
        assert (await each.done("r1"))["error"] is True
    assert "Half" in text_of(chunks_of(tab.frames, "r1"))
    assert await server.stored("b") == []
    await other.ask("o1", "Hi")
    assert (await other.done("o1"))["outcome"] == "completed"
    doubles.store.heal("agent/a")
    assert [message["role"] for message in await server.stored("a")] == ["user"]
    log.expect("another process owns the agent")


# ── nothing that was seen is lost ───────────────────────────────────


@pytest.mark.parametrize("seed", range(4))
async def test_state_that_anybody_has_seen_is_never_taken_back_by_a_failing_store(seed: int, log: ErrorLog) -> None:
    rng = random.Random(seed)
    async with hosting(Plain) as host:
        seen, line = 0, host.line(agent="plain")
        for _ in range(60):
            if rng.random() < 0.2:
                host.store.fail("plain/room")
            calls = [asyncio.create_task(line.call("add", 1)) for _ in range(rng.randrange(1, 5))]
            outcomes = await asyncio.gather(*calls, return_exceptions=True)
            seen = max([seen, *(value for value in outcomes if isinstance(value, int))])
            host.store.heal("plain/room")
            if line.closed is not None:
                line = host.line(agent="plain")
                frame = await line.seen(lambda frame: frame["type"] == "cf_agent_state")
                assert frame["state"] >= seen
        assert seen > 0
        if any("dropped" in error for error in log.errors):
            log.expect("dropped")


async def converse(tab: Tab, number: int) -> bool:
    """One question on a connection that may be closed at any moment. Whether it was answered."""
    try:
        await tab.opened()
        history = [frame["messages"] for frame in tab.frames if frame["type"] == "cf_agent_chat_messages"][-1]
        await tab.ask(f"r{number}", *history, user_message(f"Question {number}", f"u{number}"))
        return (await tab.done(f"r{number}"))["outcome"] == "completed"
    except (AssertionError, ConnectionClosed):
        await tab.ended()
        return False


@pytest.mark.parametrize("seed", range(4))
async def test_messages_that_anybody_has_seen_stored_are_there_whatever_fails(
    seed: int, serve: Serve, log: ErrorLog
) -> None:
    rng, doubles = random.Random(seed), Doubles(seed)
    model = ScriptedModel([say(*(f"{number}.{part} " for part in range(80))) for number in range(100)])
    server = await serve(agent(model), engine=doubles.engine)
    shown, answered, failed = dict[str, Any](), set[str](), 0
    tab = await server.tab()
    for number in range(25):
        doubles.store.fail("agent/room", after=rng.randrange(8))
        if await converse(tab, number):
            answered.add(f"u{number}")
        doubles.store.heal("agent/room")
        for frame in tab.frames:
            if frame["type"] == "cf_agent_chat_messages":
                shown |= {message["id"]: message for message in frame["messages"]}
        if tab.closed is not None:
            failed += 1
            tab = await server.tab()
    stored = {message["id"]: message for message in await server.stored()}
    assert {id: stored.get(id) for id in shown} == shown
    assert answered <= set(stored)
    assert answered
    assert failed, "without a failure this shows nothing"
    log.expect("database or disk is full")


# ── at the start ────────────────────────────────────────────────────


async def test_timers_that_cannot_be_looked_up_are_looked_up_again(log: ErrorLog) -> None:
    """The alarm's own query fails, then does not."""

    class Clerk(Agent):
        rang = Gate()

        @callable
        def later(self) -> None:
            self.schedule(100, self.ring)

        def ring(self) -> None:
            self.rang.open()

    clock = FakeClock()
    async with hosting(Clerk, clock=clock) as host:
        await host.line(agent="clerk").call("later")
        host.store.fail_reads()
        for _ in range(12):
            await host.advance(600)
        host.store.heal()
        await host.advance(10)
        await Clerk.rang.passed()
        log.expect("The timers cannot be looked up")
        if log.errors:
            log.expect("dropped from memory")


def test_an_engine_serves_one_machine_unless_told() -> None:
    assert Engine().open_store == SqliteStore.open
