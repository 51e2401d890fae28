"""The host, with small agents on a real store."""

import asyncio
import json
import logging
from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest

from perdure import BadRequest, ModelRejected, StorageError, Think
from perdure.agent.connection import ConnectionRequest
from perdure.host.bus import LocalBus
from perdure.host.host import Host
from perdure.host.placement import AlwaysMine
from perdure.protocol.names import Address
from perdure.storage.contract import CloseTurn, LoadAgent, LoadPath, OpenTurn
from perdure.storage.sqlite import SqliteStore
from perdure.testing import Gate, ScriptedModel, fail, pause, say
from tests.host.sinks import RecordingSink
from tests.host.stores import MoodyStore
from tests.requirements import requirement

REQUEST = ConnectionRequest("/agents/agent/room", {}, {})

pytestmark = pytest.mark.anyio


class Tab(RecordingSink):
    """A connection to an agent."""

    def __init__(self, bus: LocalBus, name: str = "room") -> None:
        super().__init__()
        self._bus = bus
        self.peer = bus.attach(Address("agent", name), self, REQUEST)

    def post(self, frame: dict[str, Any]) -> None:
        self._bus.post(self.peer, json.dumps(frame))

    def ask(self, request: str, message: str) -> None:
        """Post a message that is to be answered."""
        posted = {"id": message, "role": "user", "parts": [{"type": "text", "text": "hi"}]}
        init = {"method": "POST", "body": json.dumps({"messages": [posted]})}
        self.post({"type": "cf_agent_use_chat_request", "id": request, "init": init})

    def probe(self, probe: str) -> None:
        self.post({"type": "cf_agent_stream_resume_request", "probeId": probe})

    def leave(self) -> None:
        self._bus.detach(self.peer)

    async def opened(self) -> list[str]:
        """Ids of the conversation that it was greeted with."""
        await self.seen(type="cf_agent_mcp_servers")
        greeting = next(frame for frame in self.frames if frame.get("connect"))
        return [message["id"] for message in greeting["messages"]]

    def deltas(self, request: str) -> list[str]:
        bodies = [json.loads(frame["body"]) for frame in self.frames if frame.get("id") == request and "seq" in frame]
        return [body["delta"] for body in bodies if "delta" in body]


class World:
    """A host on a store."""

    def __init__(self, store: MoodyStore, *steps: Any, kind: type[Think] | None = None, **others: type[Think]) -> None:
        class Agent(Think):
            model = ScriptedModel(steps)

        self.model = Agent.model
        self.store = store
        self.bus = LocalBus()
        self.host = Host({"agent": kind or Agent, **others}, store, self.bus, AlwaysMine(store.epoch))

    def tab(self, name: str = "room") -> Tab:
        return Tab(self.bus, name)

    async def path(self, name: str = "room") -> list[str]:
        return [row.id for row in await self.store.read(LoadPath(f"agent/{name}"))]


Make = Callable[..., World]


@pytest.fixture
async def store() -> AsyncIterator[MoodyStore]:
    store = MoodyStore(await SqliteStore.temporary())
    yield store
    await store.close()


@pytest.fixture
async def world(store: MoodyStore) -> AsyncIterator[Make]:
    worlds: list[World] = []

    def make(*steps: Any, **options: Any) -> World:
        worlds.append(World(store, *steps, **options))
        return worlds[-1]

    yield make
    for made in worlds:
        await made.host.close()


# ── events ──────────────────────────────────────────────────────────


async def test_a_message_is_answered_and_stored(world: Make) -> None:
    it = world(say("Hel", "lo"))
    tab = it.tab()
    tab.ask("R1", "u1")
    end = await tab.seen(id="R1", done=True)
    assert (end["outcome"], end["messageIds"]) == ("completed", ["u1"])
    assert tab.deltas("R1") == ["Hel", "lo"]
    path = await it.path()
    assert path[0] == "u1"
    assert [
        message["id"] for message in json.loads(await it.bus.call(Address("agent", "room"), "get-messages"))
    ] == path


async def test_events_during_waking_keep_their_order(world: Make, store: MoodyStore) -> None:
    it = world()
    store.readable.clear()
    first = it.tab()
    first.probe("P1")
    second = it.tab()
    first.post({"type": "nonsense"})
    first.probe("P2")
    second.leave()
    third = it.tab()
    assert first.frames == []
    store.readable.set()
    await third.opened()
    assert first.types == [
        *("cf_agent_chat_messages", "cf_agent_identity", "cf_agent_mcp_servers"),
        *("cf_agent_stream_resume_none", "cf_agent_stream_resume_none"),
    ]
    assert [frame["probeId"] for frame in first.frames[3:]] == ["P1", "P2"]
    assert second.frames == []


async def test_an_agent_is_made_once_for_all_its_connections_and_one_for_each_name(world: Make) -> None:
    made: list[str] = []

    class Agent(Think):
        def __init__(self) -> None:
            made.append("agent")

    it = world(kind=Agent)
    for name in ("room", "room", "hall"):
        await it.tab(name).opened()
    assert len(made) == 2


@requirement("engine:4")
async def test_a_turn_that_raises_ends_with_an_error_and_the_queue_runs_on(world: Make) -> None:
    gate = Gate()
    it = world([pause(gate), fail(ModelRejected("quota", status=429))], [fail(LookupError("a bug"))], say("Here."))
    tab = it.tab()
    for number in (1, 2, 3):
        tab.ask(f"R{number}", f"u{number}")
    await gate.reached()
    gate.open()
    ends = [await tab.seen(id=f"R{number}", done=True) for number in (1, 2, 3)]
    assert [end["outcome"] for end in ends] == ["error", "error", "completed"]
    assert (await tab.seen(id="R1", error=True))["body"] == "quota"
    assert "a bug" not in ends[1]["body"], "what the user's code raised goes to the log"
    assert tab.deltas("R3") == ["Here."]


async def test_agents_do_not_wait_for_each_other(world: Make) -> None:
    gate = Gate()
    it = world([pause(gate)], say("Here."))
    room, hall = it.tab("room"), it.tab("hall")
    room.ask("R1", "u1")
    await gate.reached()
    hall.ask("R1", "u1")
    await hall.seen(id="R1", done=True)
    assert "done" not in {key for frame in room.frames for key, value in frame.items() if value is True}


# ── failures ────────────────────────────────────────────────────────


async def test_a_wake_that_fails_hangs_up_and_the_next_connection_tries_again(
    world: Make, store: MoodyStore, caplog: pytest.LogCaptureFixture
) -> None:
    it = world(say("Here."))
    store.unreadable = True
    tab = it.tab()
    tab.ask("R1", "u1")
    assert await tab.ended() == (1011, "The agent's data could not be stored or read. Reconnect to see what is kept.")
    assert tab.frames == []
    assert "the disk is broken" in caplog.text
    with pytest.raises(StorageError, match="agent/room could not be brought into memory"):
        await it.bus.call(Address("agent", "room"), "get-messages")
    store.unreadable = False
    again = it.tab()
    assert await again.opened() == []
    again.ask("R1", "u1")
    await again.seen(id="R1", outcome="completed")
    tab.post({"type": "cf_agent_chat_clear"})
    tab.leave()
    assert len(await it.path()) == 2, "a frame of a connection that was hung up on is nothing"


async def test_a_class_that_cannot_be_made_fails_its_own_agents_only(world: Make) -> None:
    class Broken(Think):
        def __init__(self) -> None:
            raise LookupError("no database")

    it = world(broken=Broken)
    sink = RecordingSink()
    it.bus.attach(Address("broken", "room"), sink, REQUEST)
    assert (await sink.ended())[0] == 1011
    await it.tab().opened()


async def test_a_failed_commit_drops_the_agent_and_who_comes_back_sees_what_is_stored(
    world: Make, store: MoodyStore
) -> None:
    it = world(say("Hel", "lo"), say("Again."))
    tab, other = it.tab(), it.tab()
    await other.opened()
    store.refuses = lambda operation: isinstance(operation, CloseTurn)
    tab.ask("R1", "u1")
    assert (await tab.ended())[0] == (await other.ended())[0] == 1011
    assert tab.deltas("R1") == ["Hel", "lo"], "what needs no commit was shown"
    ends = [frame for frame in tab.frames + other.frames if frame.get("done")]
    assert [frame["outcome"] for frame in ends] == ["error", "error"], "nothing that waits for it was"
    assert "cf_agent_chat_messages" not in tab.types[1:], "nor shown a message that is not stored"
    store.refuses = lambda operation: False
    again = it.tab()
    assert (await again.opened())[0] == "u1"
    await it.bus.call(Address("agent", "room"), "get-messages")  # which waits until all is stored
    assert (await store.read(LoadAgent("agent/room"))).open_turns == []
    again.ask("R2", "u2")
    await again.seen(id="R2", outcome="completed")
    assert again.deltas("R2") == ["Again."]


async def test_a_request_whose_commit_failed_was_never_accepted(world: Make, store: MoodyStore) -> None:
    it = world(say("Here."), say("Here."))
    tab, other = it.tab(), it.tab()
    await other.opened()
    store.refuses = lambda operation: isinstance(operation, OpenTurn)
    tab.ask("R1", "u1")
    await tab.ended()
    assert not any(frame.get("messages") for frame in other.frames), "nobody saw the message"
    store.refuses = lambda operation: False
    again = it.tab()
    assert await again.opened() == []
    again.ask("R1", "u1")
    await again.seen(id="R1", outcome="completed")
    assert (await it.path())[0] == "u1"


async def test_a_failed_commit_of_one_agent_leaves_the_others_alone(world: Make, store: MoodyStore) -> None:
    gate = Gate()
    it = world([pause(gate), say("Here.")])
    hall = it.tab("hall")
    hall.ask("R1", "u1")
    await gate.reached()
    store.refuses = lambda operation: isinstance(operation, OpenTurn)
    room = it.tab("room")
    room.ask("R1", "u1")
    await room.ended()
    gate.open()
    await hall.seen(id="R1", outcome="completed")
    assert hall.closed is None


async def test_asking_while_a_commit_is_on_its_way_waits_for_it(world: Make, store: MoodyStore) -> None:
    gate = Gate()
    it = world([pause(gate)])
    tab = it.tab()
    await tab.opened()
    tab.ask("R1", "u1")
    messages = json.loads(await it.bus.call(Address("agent", "room"), "get-messages"))
    assert [message["id"] for message in messages] == await it.path() == ["u1"]
    store.refuses = lambda operation: True
    tab.ask("R2", "u2")
    with pytest.raises(StorageError, match="the disk is full"):
        await it.bus.call(Address("agent", "room"), "get-messages")
    await tab.ended()


async def test_an_agent_has_no_other_methods(world: Make) -> None:
    with pytest.raises(BadRequest, match="no method 'clear'"):
        await world().bus.call(Address("agent", "room"), "clear")


# ── connections that go, and the end ────────────────────────────────


async def test_a_turn_goes_on_when_its_connection_goes(world: Make) -> None:
    gate = Gate()
    it = world([say("Hel"), pause(gate), say("lo")])
    tab = it.tab()
    tab.ask("R1", "u1")
    await gate.reached()
    tab.leave()
    other = it.tab()
    await other.seen(type="cf_agent_stream_resuming", id="R1")
    gate.open()
    await other.seen(id="R1", done=True)
    assert len(await it.path()) == 2


async def test_closing_leaves_no_task_and_a_running_turn_as_far_as_it_went(
    world: Make, store: MoodyStore, caplog: pytest.LogCaptureFixture
) -> None:
    before = asyncio.all_tasks()
    gate = Gate()
    it = world([say("Hel"), pause(gate)])
    tab = it.tab()
    tab.ask("R1", "u1")
    tab.ask("R2", "u2")
    await gate.reached()
    it.tab("hall")
    await it.host.close()
    assert asyncio.all_tasks() == before
    assert it.model.requests[0].outcome == "closed"
    assert not [record for record in caplog.records if record.levelno >= logging.ERROR]
    await store.write("agent/room", store.epoch, [])  # the writer may be a little behind
    assert [turn.status for turn in (await store.read(LoadAgent("agent/room"))).open_turns] == ["running", "queued"]

    after = world()
    texts = json.loads(await after.bus.call(Address("agent", "room"), "get-messages"))
    assert [message["role"] for message in texts] == ["user", "assistant", "user"]
    assert texts[1]["parts"][-1] == {"type": "text", "text": "Hel", "state": "done"}


async def test_closing_while_an_agent_wakes_answers_who_asked_for_it(world: Make, store: MoodyStore) -> None:
    it = world()
    store.readable.clear()
    asking = [asyncio.ensure_future(it.bus.call(Address("agent", name), "get-messages")) for name in ("room", "hall")]
    await asyncio.sleep(0)
    await it.host.close()
    for question in asking:
        with pytest.raises(StorageError, match="could not be brought into memory"):
            await question
    store.readable.set()


async def test_a_host_can_be_closed_twice_and_hears_no_more_of_old_connections(world: Make) -> None:
    it = world()
    tab = it.tab()
    await tab.opened()
    await it.host.close()
    tab.probe("P1")
    tab.leave()
    await it.host.close()
    assert "cf_agent_stream_resume_none" not in tab.types
