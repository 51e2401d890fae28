"""The queue of a running agent."""

import asyncio
import json
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, ClassVar

import msgspec
import pytest

from perdure import Agent, ConfigurationError, QueueItem, Retry, Think, callable, current_connection
from perdure.storage.queue import LoadQueue, PutQueued, QueuedRow
from perdure.testing import FakeClock, Gate, ScriptedModel, pause, say
from tests.requirements import requirement
from tests.support import Doing, ErrorLog, Serve, do
from tests.support.hosting import Hosting, Line, hosting

pytestmark = pytest.mark.anyio


class Worker(Agent):
    """Does what is in its queue, and says so to everybody."""

    runs: ClassVar[list[Any]]
    queued: ClassVar[list[str]]
    gates: ClassVar[dict[str, Gate]]
    changed: ClassVar[asyncio.Event]

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        cls.runs, cls.queued, cls.gates, cls.changed = [], [], {}, asyncio.Event()

    @callable
    async def put(self, callback: str, payload: Any = None, options: dict[str, Any] | None = None) -> Any:
        options = dict(options or {})
        if "retry" in options:
            options["retry"] = Retry(**options["retry"])
        item = await self.queue(callback, payload, **options)
        self.queued.append(item.id)
        return msgspec.to_builtins(item)

    @callable
    def waiting(self, callback: str | None = None) -> list[Any]:
        return [item.payload for item in self.get_queues(callback)]

    @callable
    def one(self, id: str) -> Any:
        return msgspec.to_builtins(self.get_queue(id))

    @callable
    def drop(self, id: str) -> bool:
        return self.dequeue(id)

    @callable
    def drop_all(self, callback: str | None = None) -> int:
        return self.dequeue_all(callback)

    def note(self, payload: Any) -> None:
        self._say(payload)

    def bare(self) -> None:
        self._say("bare")

    async def note_with(self, payload: Any, item: QueueItem) -> None:
        self._say([payload, item.id, item.callback, item.created_ms, item.interrupted])

    async def stop_at(self, name: str, item: QueueItem) -> None:
        self._say(f"{name} begins{' again' if item.interrupted else ''}")
        await self.gates.setdefault(name, Gate()).passed()
        self._say(f"{name} ends")

    async def fail(self, times: int) -> None:
        failed = 1 + len([run for run in self.runs if run == "try"])
        self._say("try")
        if failed <= times:
            raise RuntimeError(f"failure {failed}")

    async def give_up(self) -> None:
        """Comes upon a cancellation that is not meant for it."""
        self._say("gives up")
        raise asyncio.CancelledError

    def who(self) -> None:
        self._say(current_connection.get() is None)

    def _say(self, what: Any) -> None:
        self.runs.append(what)
        self.changed.set()
        self.broadcast(json.dumps({"ran": what}))


def a_worker() -> type[Worker]:
    return type("Worker", (Worker,), {})


async def said(worker: type[Worker], count: int) -> list[Any]:
    """All runs, once there are so many."""
    async with asyncio.timeout(20):
        while len(worker.runs) < count:
            worker.changed.clear()
            await worker.changed.wait()
    return worker.runs


async def stored(host: Hosting, agent: str = "worker/room") -> list[QueuedRow]:
    """The rows, once everything that was handed over is durable."""
    await host.store.write(agent, host.store.epoch, [])
    return await host.read(LoadQueue(agent))


async def emptied(host: Hosting) -> None:
    async with asyncio.timeout(20):
        while await stored(host):
            pass


# ── in order ────────────────────────────────────────────────────────


@requirement("engine:143")
async def test_items_run_one_at_a_time_in_their_order_and_are_forgotten() -> None:
    worker = a_worker()
    async with hosting(worker) as host:
        line = host.line()
        for name in "abc":
            await line.call("put", "stop_at", name)
        await line.call("put", "note", {"last": True})
        assert await line.call("waiting") == ["a", "b", "c", {"last": True}]
        for number, name in enumerate("abc"):
            assert (await said(worker, 2 * number + 1))[-1] == f"{name} begins"
            await worker.gates[name].reached()
            assert len(worker.runs) == 2 * number + 1
            worker.gates[name].open()
        await said(worker, 7)
        assert worker.runs == ["a begins", "a ends", "b begins", "b ends", "c begins", "c ends", {"last": True}]
        await emptied(host)
        assert await line.call("waiting") == []


async def test_a_method_is_given_what_it_has_room_for() -> None:
    worker = a_worker()
    async with hosting(worker) as host:
        line = host.line()
        item = await line.call("put", "note_with", [1])
        assert item == {
            "id": item["id"],
            "callback": "note_with",
            "payload": [1],
            "created_ms": host.clock.now_ms(),
            "interrupted": False,
        }
        await line.call("put", "bare")
        assert await said(worker, 2) == [[[1], item["id"], "note_with", item["created_ms"], False], "bare"]


async def test_an_item_is_no_part_of_the_call_that_queued_it(serve: Serve) -> None:
    """It runs as nobody's call, and may wait for a turn although a turn has queued it."""
    ran: asyncio.Queue[Any] = asyncio.Queue()
    gate = Gate()

    class Agent(Think):
        model = ScriptedModel([[pause(gate), say("One.")], say("Two.")])

        async def before_turn(self, ctx: Any) -> None:
            if ctx.trigger == "ws-chat":
                await self.queue(self.work, retry=Retry(max_attempts=1))

        async def work(self) -> None:
            asyncio.get_running_loop().call_soon(gate.open)
            ran.put_nowait((current_connection.get(), (await self.save_messages("again")).status))

    server = await serve(Agent)
    tab = await server.tab()
    await tab.ask("r1", "Go")
    async with asyncio.timeout(20):
        assert await ran.get() == (None, "completed")
    assert len(await server.stored()) == 4


async def test_an_item_takes_the_place_of_one_with_its_id() -> None:
    worker = a_worker()
    async with hosting(worker) as host:
        line = host.line()
        await line.call("put", "stop_at", "first")
        await line.call("put", "note", "old", {"id": "x"})
        await line.call("put", "note", "behind")
        assert (await line.call("put", "note", "new", {"id": "x"}))["id"] == "x"
        assert await line.call("waiting") == ["first", "new", "behind"]
        assert [json.loads(row.payload) for row in await stored(host)] == ["first", "new", "behind"]
        worker.gates["first"].open()
        assert await said(worker, 4) == ["first begins", "first ends", "new", "behind"]


async def test_an_item_that_replaces_the_one_that_runs_runs_after_it() -> None:
    worker = a_worker()
    async with hosting(worker) as host:
        line = host.line()
        await line.call("put", "stop_at", "old", {"id": "x"})
        await said(worker, 1)
        await line.call("put", "note", "new", {"id": "x"})
        await line.call("put", "note", "behind")
        await worker.gates["old"].reached()
        worker.gates["old"].open()
        assert await said(worker, 4) == ["old begins", "old ends", "new", "behind"]
        await emptied(host)


async def test_items_are_found_and_forgotten() -> None:
    worker = a_worker()
    async with hosting(worker) as host:
        line = host.line()
        running = await line.call("put", "stop_at", "first")
        other = await line.call("put", "note_with", "with")
        for payload in ("a", "b"):
            await line.call("put", "note", payload)
        assert (await line.call("one", other["id"]))["payload"] == "with"
        assert await line.call("one", "unknown") is None
        assert await line.call("waiting", "note") == ["a", "b"]
        assert await line.call("drop", other["id"])
        assert not await line.call("drop", other["id"])
        assert await line.call("drop_all", "note") == 2
        assert await line.call("drop_all", "note") == 0
        await line.call("put", "note", "c")
        assert await line.call("drop", running["id"]), "it is carried out all the same"
        assert [json.loads(row.payload) for row in await stored(host)] == ["c"]
        await worker.gates["first"].reached()
        worker.gates["first"].open()
        assert await said(worker, 3) == ["first begins", "first ends", "c"]
        await line.call("put", "stop_at", "second")
        await line.call("put", "note", "d")
        assert await line.call("drop_all") == 2
        assert await stored(host) == []


@pytest.mark.parametrize(
    ("callback", "payload", "options", "error"),
    [
        ("nothing", None, {}, "Worker has no method 'nothing'"),
        ("bare", 1, {}, "Worker.bare takes no payload"),
        ("note", None, {"id": ""}, "is a text that is not empty"),
        ("note", None, {"retry": {"max_attempts": 0}}, "must be a whole number from 1 on"),
    ],
)
async def test_what_cannot_be_queued_is_refused_when_it_is_asked_for(
    callback: str, payload: Any, options: dict[str, Any], error: str
) -> None:
    async with hosting(a_worker()) as host:
        assert error in (await host.line().reply("put", callback, payload, options))["error"]
        assert await stored(host) == []


async def test_a_payload_without_json_form_and_the_method_of_another_are_refused(serve: Serve) -> None:
    class Agent(Doing):
        def note(self, payload: Any) -> None: ...

    server = await serve(Agent)
    tab = await server.tab()

    async def refused(error: type[Exception], call: Callable[[Agent], Awaitable[Any]]) -> None:
        async def attempt(agent: Agent) -> None:
            with pytest.raises(error):
                await call(agent)

        await do(tab, attempt)

    await refused(TypeError, lambda agent: agent.queue(agent.note, object()))
    await refused(ConfigurationError, lambda agent: agent.queue(lambda: None))
    await refused(ConfigurationError, lambda agent: agent.queue(Agent.note, 1))


# ── going wrong ─────────────────────────────────────────────────────


@requirement("engine:143")
async def test_an_item_that_fails_is_tried_again_and_does_not_stop_the_next(log: ErrorLog) -> None:
    worker = a_worker()
    async with hosting(worker) as host:
        line = host.line()
        await line.call("put", "fail", 1)
        await line.call("put", "note", "next")
        await host.advance(0.2)
        assert await said(worker, 3) == ["try", "try", "next"]
        worker.runs.clear()
        await line.call("put", "fail", 9, {"retry": {"max_attempts": 2, "base_delay_ms": 10, "max_delay_ms": 10}})
        await line.call("put", "note", "next")
        await host.advance(0.01)
        assert await said(worker, 3) == ["try", "try", "next"]
        await emptied(host)
        log.expect("The queued Worker.fail")


async def test_a_cancellation_that_an_item_comes_upon_is_a_failure_like_any_other(log: ErrorLog) -> None:
    worker = a_worker()
    async with hosting(worker) as host:
        line = host.line()
        await line.call("put", "give_up", None, {"retry": {"max_attempts": 2}})
        await line.call("put", "note", "next")
        await host.advance(0.2)
        assert await said(worker, 3) == ["gives up", "gives up", "next"]
        log.expect("The queued Worker.give_up")


async def test_what_becomes_of_items_is_told(serve: Serve, log: ErrorLog) -> None:
    events: list[tuple[str, dict[str, Any]]] = []
    over = asyncio.Event()

    class Agent(Doing):
        def fail(self) -> None:
            raise RuntimeError("no")

        def note(self) -> None:
            over.set()

    retry = Retry(max_attempts=2, base_delay_ms=1, max_delay_ms=1)
    server = await serve(Agent, on_event=lambda event: events.append((event.type, dict(event.payload))))
    await do(await server.tab(), lambda agent: agent.queue(agent.fail, id="x", retry=retry))
    await do(await server.tab(), lambda agent: agent.queue(agent.note, id="y"))
    async with asyncio.timeout(20):
        await over.wait()
    told = [(type, payload) for type, payload in events if type.startswith("queue:")]
    assert sorted(told[:2] + told[2:], key=lambda event: event[0]) == [
        ("queue:create", {"id": "x", "callback": "fail"}),
        ("queue:create", {"id": "y", "callback": "note"}),
        ("queue:error", {"id": "x", "callback": "fail", "attempts": 2, "error": "RuntimeError('no')"}),
        ("queue:retry", {"id": "x", "callback": "fail", "attempt": 1, "maxAttempts": 2}),
    ]
    log.expect("The queued Agent.fail (x) failed")


# ── not in memory ───────────────────────────────────────────────────


@requirement("engine:143")
async def test_the_queue_goes_on_after_a_restart_without_any_connection(tmp_path: Path) -> None:
    worker, clock = a_worker(), FakeClock()
    async with hosting(worker, folder=tmp_path, clock=clock) as host:
        line = host.line()
        await line.call("put", "stop_at", "first")
        await line.call("put", "note", "second")
        await line.call("put", "note", "third")
        await said(worker, 1)
        assert [row.begun for row in await stored(host)] == [1, 0, 0]
    worker.gates["first"].open()
    async with hosting(worker, folder=tmp_path, clock=clock) as host:
        await host.advance(0)
        assert await said(worker, 5) == ["first begins", "first begins again", "first ends", "second", "third"]
        await emptied(host)


async def test_an_agent_stays_in_memory_until_its_queue_is_empty() -> None:
    worker = a_worker()
    async with hosting(worker) as host:
        line = host.line()
        await line.call("put", "stop_at", "first")
        await said(worker, 1)
        for _ in range(8):
            await host.advance(15)
        await worker.gates["first"].reached()
        worker.gates["first"].open()
        assert await said(worker, 2) == ["first begins", "first ends"], "as it was begun, not anew"


async def test_an_item_that_ends_the_process_each_time_is_given_up(log: ErrorLog) -> None:
    worker = a_worker()
    async with hosting(worker) as host:
        rows = [
            QueuedRow(id, "note", f'"{id}"', created_ms=1, begun=begun) for id, begun in (("often", 11), ("seldom", 10))
        ]
        await host.store.write("worker/room", host.store.epoch, [PutQueued(row) for row in rows])
        host.line()
        assert await said(worker, 1) == ["seldom"]
        await emptied(host)
        log.expect("was cut off 11 times and is given up")


async def test_a_method_that_a_newer_version_has_no_more_is_logged_and_the_next_one_runs(log: ErrorLog) -> None:
    worker = a_worker()
    async with hosting(worker) as host:
        rows = [QueuedRow(id, id, '"x"', created_ms=1) for id in ("gone", "note")]
        await host.store.write("worker/room", host.store.epoch, [PutQueued(row) for row in rows])
        host.line()
        assert await said(worker, 1) == ["x"]
        log.expect("has no method 'gone'")


async def test_queueing_returns_when_the_item_is_stored_and_its_method_waits_for_the_mark() -> None:
    worker = a_worker()
    async with hosting(worker) as host:
        line = host.line()
        await line.call("waiting")
        host.store.hold()
        asking = asyncio.create_task(line.call("put", "note", "stored"))
        await nothing_happens(lambda: worker.queued or worker.runs)
        host.store.release()
        await asking
        assert await said(worker, 1) == ["stored"]


async def nothing_happens(wrong: Callable[[], object]) -> None:
    for _ in range(50):
        await asyncio.sleep(0)
        assert not wrong()


async def test_what_on_start_queues_runs_when_the_agent_has_started() -> None:
    class Starting(Worker):
        async def on_start(self) -> None:
            await self.queue(self.note, "queued", id="once")
            self._say("started")

    async with hosting(Starting) as host:
        host.line(agent="starting")
        assert await said(Starting, 2) == ["started", "queued"]


async def test_the_items_of_different_agents_run_side_by_side() -> None:
    worker = a_worker()
    async with hosting(worker) as host:
        lines: list[Line] = [host.line("one"), host.line("two")]
        for number, line in enumerate(lines):
            await line.call("put", "stop_at", f"item {number}")
        assert sorted(await said(worker, 2)) == ["item 0 begins", "item 1 begins"]
