"""One agent in memory: mailbox, timers, and what becomes of it after a failure."""

import asyncio
import logging
from collections.abc import AsyncIterator
from typing import Any

import pytest

from perdure.agent.connection import ConnectionRequest
from perdure.errors import StorageError
from perdure.host.bus import LocalBus
from perdure.host.clock import SystemClock
from perdure.host.resident import Resident
from perdure.observability.events import Events
from perdure.observability.scope import Scope
from perdure.protocol.names import Address
from perdure.storage.contract import CloseTurn, LoadValue, PutValue
from perdure.storage.sqlite import SqliteStore
from tests.host.sinks import RecordingSink
from tests.host.stores import MoodyStore

REQUEST = ConnectionRequest("/agents/agent/room", {}, {})

pytestmark = pytest.mark.anyio


class Awake:
    """Stands for an agent: keeps what happens to it."""

    def __init__(self) -> None:
        self.events: list[str] = []


class _Keeper:
    """Keeps nobody: writes down who was dropped."""

    def __init__(self, dropped: list[Resident]) -> None:
        self._dropped = dropped

    def dropped(self, resident: Resident, error: BaseException) -> None:
        self._dropped.append(resident)

    def alarm(self, key: str, due_ms: int | None) -> None: ...


class Room:
    """A resident whose agent wakes when the test says so."""

    def __init__(self, store: MoodyStore) -> None:
        self.store = store
        self.bus = LocalBus()
        self.dropped: list[Resident] = []
        self.resident = Resident(
            Scope(agent="Agent", name="room", key="agent/room", events=Events()),
            store,
            store.epoch,
            self.bus,
            SystemClock(),
            _Keeper(self.dropped),
        )
        self.agent = Awake()
        self.woken = asyncio.Event()

    def wake(self) -> None:
        async def waking(_: Resident) -> Any:
            await self.woken.wait()
            return self.agent

        self.resident.wake(waking)

    def post(self, event: str) -> None:
        self.resident.post(lambda agent: agent.events.append(event))  # type: ignore[attr-defined]

    async def stored(self, key: str) -> str | None:
        """A value, once all that was written is stored."""
        await self.store.write("agent/room", self.store.epoch, [])
        return await self.store.read(LoadValue("agent/room", "test", key))


@pytest.fixture
async def store() -> AsyncIterator[MoodyStore]:
    store = MoodyStore(await SqliteStore.temporary())
    yield store
    await store.close()


@pytest.fixture
async def room(store: MoodyStore) -> AsyncIterator[Room]:
    room = Room(store)
    yield room
    await room.resident.close()


def put(key: str) -> list[PutValue]:
    return [PutValue("test", key, "1")]


async def turn() -> None:
    """Let callbacks run that are due."""
    for _ in range(5):
        await asyncio.sleep(0)


# ── events ──────────────────────────────────────────────────────────


async def test_events_while_it_wakes_happen_afterwards_in_their_order(room: Room) -> None:
    room.post("before")
    room.wake()
    await turn()
    room.post("while")
    assert room.agent.events == []
    room.woken.set()
    assert await room.resident.agent() is room.agent
    room.post("after")
    assert room.agent.events == ["before", "while", "after"]


async def test_an_event_that_is_caused_by_one_that_waited_goes_behind_the_others(room: Room) -> None:
    def first(agent: Any) -> None:
        agent.events.append("first")
        room.post("caused")

    room.resident.post(first)
    room.post("second")
    room.wake()
    room.woken.set()
    await room.resident.agent()
    assert room.agent.events == ["first", "second", "caused"]


async def test_an_event_that_goes_wrong_ends_nothing(room: Room, caplog: pytest.LogCaptureFixture) -> None:
    def wrong(agent: Any) -> None:
        raise LookupError("no such thing")

    room.resident.post(wrong)
    room.post("a")
    room.wake()
    room.woken.set()
    await room.resident.agent()
    room.resident.post(wrong)
    room.post("b")
    assert room.agent.events == ["a", "b"]
    assert [record.getMessage() for record in caplog.records] == ["An event of the agent agent/room failed"] * 2
    assert room.dropped == []


async def test_a_wake_that_fails_drops_it(room: Room, caplog: pytest.LogCaptureFixture) -> None:
    async def failing(_: Resident) -> Any:
        raise RuntimeError("no database")

    room.post("never")
    room.resident.wake(failing)
    assert await room.resident.agent() is None
    assert room.dropped == [room.resident]
    assert "no database" in caplog.text


async def test_who_asks_for_an_agent_that_was_closed_while_it_woke_is_told_that_it_will_not_come(room: Room) -> None:
    asking = asyncio.ensure_future(room.resident.agent())
    room.wake()
    await room.resident.close()
    assert await asking is None
    before = Room(room.store)
    asking = asyncio.ensure_future(before.resident.agent())
    await turn()
    before.wake()
    await before.resident.close()
    assert await asking is None, "also when it had not begun to wake"


# ── writes ──────────────────────────────────────────────────────────


async def test_a_frame_waits_for_the_writes_before_it_and_for_no_checkpoint(room: Room) -> None:
    sink = RecordingSink()
    room.bus.serve(_NoAgents())
    peer = room.bus.attach(Address("agent", "room"), sink, REQUEST)
    checkpoint = room.resident.checkpoint(put("a"))
    room.resident.send((peer,), '{"type":"first"}')
    assert sink.types == ["first"]
    assert not checkpoint.done()
    room.resident.write(put("b"))
    room.resident.send((peer,), '{"type":"second"}')
    assert sink.types == ["first"]
    await room.resident.settled()
    await turn()
    assert sink.types == ["first", "second"]
    assert await room.stored("b") == "1"


@pytest.mark.parametrize("kind", ["write", "checkpoint"])
async def test_a_failed_write_drops_it_once(room: Room, kind: str, caplog: pytest.LogCaptureFixture) -> None:
    sink = RecordingSink()
    room.bus.serve(_NoAgents())
    peer = room.bus.attach(Address("agent", "room"), sink, REQUEST)
    room.store.refuses = lambda operation: True
    for _ in range(3):
        getattr(room.resident, kind)(put("a"))
    room.resident.checkpoint(put("b"))
    room.resident.send((peer,), '{"type":"never"}' if kind == "write" else '{"type":"at once"}')
    await turn()
    room.resident.send((peer,), '{"type":"never"}')
    assert room.dropped == [room.resident]
    assert sink.types == ([] if kind == "write" else ["at once"])
    errors = [record for record in caplog.records if record.levelno == logging.ERROR]
    assert len(errors) == 1
    assert "the disk is full" in errors[0].getMessage()


async def test_after_a_failed_write_it_stores_nothing_more(room: Room) -> None:
    room.store.refuses = lambda operation: isinstance(operation, PutValue) and operation.key == "a"
    room.resident.write(put("a"))
    await turn()
    late = [room.resident.write(put("b")), room.resident.checkpoint(put("c"))]
    for commit in late:
        with pytest.raises(StorageError, match="an earlier one of this agent failed"):
            await commit
    await turn()
    assert [await room.stored(key) for key in "abc"] == [None, None, None]
    assert room.dropped == [room.resident]


async def test_what_running_work_stores_as_it_is_stopped_is_stored(room: Room) -> None:
    started = asyncio.Event()

    async def work() -> None:
        started.set()
        try:
            await asyncio.Event().wait()
        finally:
            room.resident.checkpoint(put("last words"))

    room.resident.spawn(work(), "turn R1")
    await started.wait()
    await room.resident.close()
    assert await room.stored("last words") == "1"


async def test_settled_waits_for_the_last_write_and_tells_of_its_failure(room: Room) -> None:
    await room.resident.settled()
    commit = room.resident.write(put("a"))
    await room.resident.settled()
    assert commit.done()
    room.store.refuses = lambda operation: isinstance(operation, CloseTurn)
    room.resident.write([CloseTurn("R1", "completed", None, 1)])
    with pytest.raises(Exception, match="the disk is full"):
        await room.resident.settled()
    await turn()


# ── time and ids ────────────────────────────────────────────────────


async def test_a_call_that_is_due_later_is_made_once(room: Room) -> None:
    rung = asyncio.Event()
    room.resident.later(0, rung.set)
    await rung.wait()


async def test_a_call_that_was_called_off_or_whose_agent_is_closed_is_not_made(room: Room) -> None:
    calls: list[str] = []
    room.resident.later(0, lambda: calls.append("called off")).cancel()
    timer = room.resident.later(0, lambda: calls.append("closed"))
    await room.resident.close()
    await turn()
    assert calls == []
    timer.cancel()


async def test_every_id_is_a_new_one(room: Room) -> None:
    ids = {room.resident.new_id() for _ in range(100)}
    assert len(ids) == 100
    assert {len(identifier) for identifier in ids} == {36}


async def test_the_clock_counts_milliseconds_since_1970(room: Room) -> None:
    assert 1_700_000_000_000 < room.resident.now_ms() < 10_000_000_000_000


class _NoAgents:
    """An agent side that nothing reaches."""

    def connect(self, address: Address, peer: int, request: ConnectionRequest) -> None: ...

    def receive(self, address: Address, peer: int, message: str | bytes) -> None: ...

    def disconnect(self, address: Address, peer: int) -> None: ...

    async def call(self, address: Address, method: str) -> str:
        raise NotImplementedError
