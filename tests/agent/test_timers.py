"""Schedules of a running agent, on a clock that the test moves."""

import asyncio
import json
import threading
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import msgspec
import pytest

from perdure import Agent, ConfigurationError, Retry, Schedule, Think, ToolContext, callable, current_connection, tool
from perdure.host.engine import Engine
from perdure.storage.timers import LoadTimers, PutTimer, TimerRow
from perdure.testing import FakeClock, Gate, ScriptedModel, call, say
from tests.requirements import requirement
from tests.support import ErrorLog, Serve, agent
from tests.support.hosting import Hosting, Line, hosting

pytestmark = pytest.mark.anyio

START = datetime.fromtimestamp(FakeClock().now_ms() / 1000, UTC)


class Worker(Agent):
    """Says what it does to everybody, and writes down how it was done."""

    runs: list[Any]
    said: asyncio.Event
    failures: dict[str, int]

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        cls.runs, cls.said, cls.failures = [], asyncio.Event(), {}

    @callable
    def later(self, when: Any, callback: str, payload: Any = None, options: dict[str, Any] | None = None) -> Any:
        options = dict(options or {})
        if isinstance(when, str) and when[:1] == "2":
            when = datetime.fromisoformat(when)
        if "retry" in options:
            options["retry"] = Retry(**options["retry"])
        return msgspec.to_builtins(self.schedule(when, callback, payload, **options))

    @callable
    def every(self, seconds: float, callback: str, payload: Any = None) -> Any:
        return msgspec.to_builtins(self.schedule_every(seconds, callback, payload))

    @callable
    def cancel(self, id: str) -> bool:
        return self.cancel_schedule(id)

    @callable
    def one(self, id: str) -> Any:
        return msgspec.to_builtins(self.get_schedule(id))

    @callable
    def all(self, kind: Any = None, before: str | None = None, after: str | None = None) -> list[Any]:
        limits = [datetime.fromisoformat(text) if text else None for text in (before, after)]
        return [s.payload for s in self.get_schedules(kind=kind, before=limits[0], after=limits[1])]

    def note(self, payload: Any) -> None:
        self._say(payload)

    async def note_with(self, payload: Any, schedule: Schedule) -> None:
        self._say([payload, schedule.id, schedule.kind, schedule.due_ms, schedule.interrupted])

    def bare(self) -> None:
        self._say("bare")

    def only(self, *, schedule: Schedule) -> None:
        self._say(schedule.callback)

    async def fail(self, times: int) -> None:
        failed = self.failures["fail"] = self.failures.get("fail", 0) + 1
        self._say(f"try {failed}")
        if failed <= times:
            raise RuntimeError(f"failure {failed}")

    def who(self) -> None:
        self._say(current_connection.get() is None)

    def _say(self, what: Any) -> None:
        self.runs.append(what)
        self.said.set()
        self.broadcast(json.dumps({"ran": what}))


def a_worker() -> type[Worker]:
    return type("Worker", (Worker,), {})


async def ran(line: Line, what: Any, count: int = 1) -> None:
    await line.seen(lambda frame: frame.get("ran") == what, count)


async def said(worker: type[Worker], count: int) -> list[Any]:
    """All runs, once there are so many; for agents that nobody is connected to."""
    async with asyncio.timeout(20):
        while len(worker.runs) < count:
            worker.said.clear()
            await worker.said.wait()
    return worker.runs


async def forgotten(host: Hosting, agent: str = "worker/room") -> None:
    """Returns once no schedule is stored any more."""
    async with asyncio.timeout(20):
        while await stored(host, agent):
            pass


async def stored(host: Hosting, agent: str = "worker/room") -> list[TimerRow]:
    """The rows, once everything that was handed over is durable."""
    await host.store.write(agent, host.store.epoch, [])
    return await host.read(LoadTimers(agent))


# ── when ────────────────────────────────────────────────────────────


async def test_a_delay_runs_once_when_it_is_over_and_is_forgotten() -> None:
    worker = a_worker()
    async with hosting(worker) as host:
        line = host.line()
        schedule = await line.call("later", 90, "note", {"to": "Ann"})
        assert schedule["kind"] == "delayed"
        assert schedule["due_ms"] == host.clock.now_ms() + 90_000
        await host.advance(89.9)
        assert worker.runs == []
        await host.advance(0.1)
        await ran(line, {"to": "Ann"})
        await host.advance(1_000)
        assert worker.runs == [{"to": "Ann"}]
        assert await stored(host) == []
        assert await line.call("one", schedule["id"]) is None


async def test_a_date_runs_at_its_moment_and_one_in_the_past_at_once() -> None:
    worker = a_worker()
    async with hosting(worker) as host:
        line = host.line()
        soon = await line.call("later", (START + timedelta(minutes=2)).isoformat(), "note", "soon")
        assert (soon["kind"], soon["due_ms"]) == ("scheduled", host.clock.now_ms() + 120_000)
        await line.call("later", "2001-09-09T01:46:40+00:00", "note", "long ago")
        await ran(line, "long ago")
        assert worker.runs == ["long ago"]
        await host.advance(120)
        await ran(line, "soon")


async def test_a_cron_expression_comes_again_and_again() -> None:
    worker = a_worker()
    async with hosting(worker) as host:
        line = host.line()
        schedule = await line.call("later", "*/5 * * * *", "note", "tick")
        assert (schedule["kind"], schedule["cron"], schedule["tz"]) == ("cron", "*/5 * * * *", "UTC")
        for count in (1, 2, 3):
            due = (await line.call("one", schedule["id"]))["due_ms"]
            await host.advance((due - host.clock.now_ms()) / 1000)
            await ran(line, "tick", count)
        assert len(worker.runs) == 3


async def test_a_cron_expression_is_read_in_its_time_zone() -> None:
    async with hosting(a_worker()) as host:
        line = host.line()
        here = await line.call("later", "0 9 * * *", "note", None, {"tz": "Asia/Tokyo"})
        there = await line.call("later", "0 9 * * *", "note", None, {"tz": "UTC"})
        assert (there["due_ms"] - here["due_ms"]) % 86_400_000 == 9 * 3_600_000


async def test_an_interval_keeps_its_beat() -> None:
    worker = a_worker()
    async with hosting(worker) as host:
        line = host.line()
        schedule = await line.call("every", 30, "note", "tick")
        assert (schedule["kind"], schedule["interval"]) == ("interval", 30)
        first = schedule["due_ms"]
        for count in (1, 2, 3):
            await host.advance(30)
            await ran(line, "tick", count)
            assert (await line.call("one", schedule["id"]))["due_ms"] == first + count * 30_000


async def test_times_that_were_missed_are_made_up_for_by_one_run(tmp_path: Path) -> None:
    worker, clock = a_worker(), FakeClock()
    async with hosting(worker, folder=tmp_path, clock=clock) as host:
        due = (await host.line().call("every", 60, "note", "tick"))["due_ms"]
    clock.advance(10 * 60 + 25)
    async with hosting(worker, folder=tmp_path, clock=clock) as host:
        line = host.line()
        (schedule,) = [await line.call("one", row.id) for row in await stored(host)]
        assert schedule["due_ms"] == due + 10 * 60_000
        assert await said(worker, 1) == ["tick"]


async def test_what_is_due_far_ahead_is_found_when_its_time_comes() -> None:
    worker = a_worker()
    async with hosting(worker) as host:
        line = host.line()
        await line.call("later", 5 * 3600, "note", "far")
        for _ in range(29):
            await host.advance(600)
        assert worker.runs == []
        await host.advance(600)
        await ran(line, "far")


class JumpingClock(FakeClock):
    """A clock that can be set."""

    jump_ms = 0

    def now_ms(self) -> int:
        return super().now_ms() + self.jump_ms


async def test_a_clock_that_is_set_forward_makes_things_due_within_seconds() -> None:
    worker, clock = a_worker(), JumpingClock()
    async with hosting(worker, clock=clock) as host:
        line = host.line()
        await line.call("later", 7_200, "note", "later")
        clock.jump_ms = 7_200_000
        await host.advance(10)
        await ran(line, "later")


async def test_an_interval_goes_on_when_the_clock_is_set_back(log: ErrorLog) -> None:
    worker, clock = a_worker(), JumpingClock()
    async with hosting(worker, clock=clock) as host:
        line = host.line()
        await line.call("every", 30, "note", "tick")
        await host.advance(30)
        await ran(line, "tick", 1)
        clock.jump_ms = -86_400_000
        await host.advance(10)
        await host.advance(30)
        await ran(line, "tick", 2)
        await host.advance(30)
        await ran(line, "tick", 3)
        assert len(worker.runs) == 3


# ── what is called ──────────────────────────────────────────────────


async def test_a_method_is_given_what_it_has_room_for() -> None:
    async with hosting(a_worker()) as host:
        line = host.line()
        full = await line.call("later", 1, "note_with", [1, None])
        for name in ("bare", "only", "who"):
            await line.call("later", 2, name)
        await host.advance(2)
        await ran(line, [[1, None], full["id"], "delayed", full["due_ms"], False])
        await ran(line, "bare")
        await ran(line, "only")
        await ran(line, True)


async def test_bound_methods_are_taken_and_those_of_others_are_not() -> None:
    outcome: list[str] = []

    class Own(Agent):
        def on_start(self) -> None:
            other = type(self)()
            assert self.schedule(60, self.act, 1).callback == "act"
            for wrong in (other.act, lambda payload: None, print, 5):
                try:
                    self.schedule(60, wrong, 1)  # type: ignore[arg-type]
                except Exception as error:
                    outcome.append(f"{type(error).__name__}: {error}")

        def act(self, payload: Any) -> None: ...

        @callable
        def ping(self) -> None: ...

    async with hosting(Own) as host:
        await host.line(agent="own").call("ping")
    assert len(outcome) == 4
    assert all("ConfigurationError" in text and "is no method of this Own" in text for text in outcome)


class Picky(Worker):
    value = 7

    @property
    def trap(self) -> Any:
        raise AssertionError("a property is no method and must not be read")

    def two(self, first: Any, second: Any) -> None: ...

    def keyword(self, payload: Any, *, needed: Any) -> None: ...


@pytest.mark.parametrize(
    ("when", "callback", "payload", "options", "says"),
    [
        (1, "nothing", None, {}, "has no method 'nothing'"),
        (1, "value", None, {}, "has no method 'value'"),
        (1, "trap", None, {}, "has no method 'trap'"),
        (1, "__init__", None, {}, "has no method '__init__'"),
        (1, "", None, {}, "has no method ''"),
        (1, "two", None, {}, "cannot be called later"),
        (1, "keyword", None, {}, "cannot be called later"),
        (1, "bare", {"a": 1}, {}, "takes no payload"),
        (-1, "note", None, {}, "is no delay"),
        ("2027-01-01T00:00:00", "note", None, {}, "has no time zone"),
        ("nonsense", "note", None, {}, "is no cron expression"),
        ("@daily", "note", None, {"tz": "Nowhere"}, "There is no time zone"),
        (1, "note", None, {"tz": "UTC"}, "time zone of a cron expression"),
        (1e12, "note", None, {}, "later than the year 9999"),
        (1, "note", None, {"retry": {"max_attempts": 0}}, "max_attempts"),
    ],
)
async def test_what_cannot_be_scheduled_is_refused_when_it_is_asked_for(
    when: Any, callback: str, payload: Any, options: dict[str, Any], says: str
) -> None:
    async with hosting(Picky) as host:
        line = host.line(agent="picky")
        reply = await line.reply("later", when, callback, payload, options)
        assert reply["success"] is False
        assert says in reply["error"]
        assert await stored(host, "picky/room") == []


async def test_a_payload_without_json_form_is_refused() -> None:
    class Odd(Agent):
        @callable
        def ask(self) -> None:
            self.schedule(1, "act", object())

        def act(self, payload: Any) -> None: ...

    async with hosting(Odd) as host:
        reply = await host.line(agent="odd").reply("ask")
        assert reply["success"] is False
        assert await stored(host, "odd/room") == []


@pytest.mark.parametrize("seconds", [0, 0.0001, -5])
async def test_an_interval_must_be_longer_than_nothing(seconds: float) -> None:
    async with hosting(a_worker()) as host:
        assert (await host.line().reply("every", seconds, "note"))["success"] is False


# ── several ─────────────────────────────────────────────────────────


@requirement("engine:143")
async def test_what_is_idempotent_is_kept_once() -> None:
    async with hosting(a_worker()) as host:
        line = host.line()

        async def ids(*call: Any) -> int:
            """How many schedules come of asking twice."""
            return len({(await line.call(*call))["id"] for _ in range(2)})

        assert await ids("later", "@daily", "note", "a") == 1
        assert await ids("later", "@daily", "note", "b") == 1, "another payload is another schedule, once"
        assert await ids("later", "@daily", "note", "a", {"tz": "Asia/Tokyo"}) == 1
        assert await ids("later", "@daily", "note", "a", {"idempotent": False}) == 2
        assert await ids("every", 60, "note", "a") == 1
        assert await ids("every", 61, "note", "a") == 1
        assert await ids("later", 60, "note", "a") == 2
        assert await ids("later", 60, "note", "c", {"idempotent": True}) == 1
        assert await ids("later", 99, "note", "c", {"idempotent": True}) == 1, "the time is no part of it"
        assert len(await stored(host)) == 3 + 2 + 2 + 2 + 1


async def test_a_run_can_schedule_its_successor_idempotently() -> None:
    class Chain(Agent):
        runs = 0

        @callable
        def begin(self) -> None:
            self.schedule(10, self.link, idempotent=True)

        def link(self) -> None:
            type(self).runs += 1
            self.begin()
            self.broadcast(json.dumps({"ran": self.runs}))

    async with hosting(Chain) as host:
        line = host.line(agent="chain")
        await line.call("begin")
        for number in (1, 2, 3):
            await host.advance(10)
            await ran(line, number)


async def test_on_start_is_warned_of_schedules_that_pile_up(caplog: pytest.LogCaptureFixture) -> None:
    class Piling(Agent):
        def on_start(self) -> None:
            self.schedule(600, "act")
            self.schedule(600, "act", idempotent=True)
            self.schedule("@daily", "act")
            self.schedule_every(600, "act")

        def act(self) -> None: ...

        @callable
        def ping(self) -> None: ...

    async with hosting(Piling) as host:
        await host.line(agent="piling").call("ping")
    warnings = [record.message for record in caplog.records if "anew each time" in record.message]
    assert len(warnings) == 1
    assert "Piling.act (delayed" in warnings[0]
    assert "idempotent=True" in warnings[0]


async def test_a_schedule_that_is_cancelled_does_not_run() -> None:
    worker = a_worker()
    async with hosting(worker) as host:
        line = host.line()
        gone = await line.call("later", 10, "note", "gone")
        tick = await line.call("every", 10, "note", "tick")
        await line.call("later", 10, "note", "stays")
        assert await line.call("cancel", gone["id"]) is True
        assert await line.call("cancel", tick["id"]) is True
        assert await line.call("cancel", gone["id"]) is False
        assert await line.call("cancel", "no such id") is False
        await host.advance(10)
        await ran(line, "stays")
        await host.advance(100)
        assert worker.runs == ["stays"]
        assert await stored(host) == []


async def test_schedules_are_found_by_kind_and_time_in_the_order_in_which_they_were_made() -> None:
    async with hosting(a_worker()) as host:
        line = host.line()
        await line.call("later", 300, "note", "five minutes")
        await line.call("every", 60, "note", "each minute")
        await line.call("later", (START + timedelta(seconds=120)).isoformat(), "note", "two minutes")
        await line.call("later", "@yearly", "note", "new year")
        two, five = ((START + timedelta(seconds=seconds)).isoformat() for seconds in (120, 300))
        assert await line.call("all") == ["five minutes", "each minute", "two minutes", "new year"]
        assert await line.call("all", "delayed") == ["five minutes"]
        assert await line.call("all", "scheduled") == ["two minutes"]
        assert await line.call("all", None, five) == ["each minute", "two minutes"]
        assert await line.call("all", None, five, two) == ["two minutes"]
        assert await line.call("all", None, None, five) == ["five minutes", "new year"]


async def test_schedules_of_one_agent_do_not_wait_for_each_other() -> None:
    gate = Gate()

    class Slow(Worker):
        async def wait(self, payload: Any) -> None:
            await gate.passed()
            self._say(payload)

    async with hosting(Slow) as host:
        line = host.line(agent="slow")
        await line.call("later", 1, "wait", "slow")
        await line.call("later", 1, "fail", 99)
        await line.call("later", 2, "note", "quick")
        await host.advance(2)
        await ran(line, "quick")
        gate.open()
        await ran(line, "slow")


# ── going wrong ─────────────────────────────────────────────────────


async def test_a_run_that_fails_is_tried_again_after_a_pause(log: ErrorLog) -> None:
    worker = a_worker()
    async with hosting(worker) as host:
        line = host.line()
        await line.call("later", 1, "fail", 2)
        await host.advance(1)
        await ran(line, "try 1")
        await host.clock.sleeping(3)
        host.clock.advance(0.2)
        await ran(line, "try 2")
        await host.clock.sleeping(3)
        host.clock.advance(0.4)
        await ran(line, "try 3")
        await host.advance(60)
        assert worker.runs == ["try 1", "try 2", "try 3"]
        await forgotten(host)


@requirement("engine:143")
async def test_a_run_that_fails_for_good_is_logged_and_used_up_and_an_interval_goes_on(log: ErrorLog) -> None:
    worker = a_worker()
    async with hosting(worker) as host:
        line = host.line()
        await line.call("later", 1, "fail", 99, {"retry": {"max_attempts": 1}})
        await host.advance(1)
        await ran(line, "try 1")
        await forgotten(host)
        log.expect("The schedule Worker.fail (delayed")

        await line.call("every", 100, "fail", 99)
        for number in (1, 2):
            await host.advance(100)
            for attempt in (1, 2):
                await ran(line, f"try {3 * number - 2 + attempt}")
                await host.clock.sleeping(3)
                host.clock.advance(3)
            await ran(line, f"try {3 * number + 1}")
        log.expect("The schedule Worker.fail (interval")


async def test_a_cancellation_that_a_run_comes_upon_is_a_failure_and_an_interval_goes_on(log: ErrorLog) -> None:
    class Cancelling(Worker):
        async def work(self) -> None:
            self._say("run")
            raise asyncio.CancelledError

    async with hosting(Cancelling) as host:
        line = host.line(agent="cancelling")
        await line.call("every", 10, "work")
        for number in range(1, 3):
            await host.advance(10)
            for attempt in range(3):
                await ran(line, "run", 3 * (number - 1) + attempt + 1)
                await host.advance(1)
        log.expect("Cancelling.work")


async def test_a_method_that_a_newer_version_has_no_more_is_logged_and_used_up(log: ErrorLog) -> None:
    worker = a_worker()
    async with hosting(worker) as host:
        row = TimerRow("t", "delayed", "removed", "null", host.clock.now_ms() + 1_000, created_ms=1)
        await host.store.write("worker/room", host.store.epoch, [PutTimer(row)])
        line = host.line()
        await line.call("later", 1, "note", "other")
        await host.advance(1)
        await ran(line, "other")
        await forgotten(host)
        log.expect("has no method 'removed'")


@requirement("engine:143")
async def test_an_interval_does_not_overlap_itself(caplog: pytest.LogCaptureFixture) -> None:
    gate = Gate()

    class Slow(Worker):
        hung_schedule_seconds = 1_000

        async def wait(self, payload: Any) -> None:
            self._say("begin")
            await gate.passed()
            self._say("end")

    async with hosting(Slow) as host:
        line = host.line(agent="slow")
        await line.call("every", 10, "wait", None)
        for _ in range(4):
            await host.advance(10)
        await ran(line, "begin")
        assert Slow.runs == ["begin"]
        assert sum("Skipped a run of the schedule Slow.wait" in record.message for record in caplog.records) == 3
        gate.open()
        await ran(line, "end")
        await host.advance(10)
        await ran(line, "begin", 2)


async def test_a_run_that_hangs_is_cancelled_and_begun_again(caplog: pytest.LogCaptureFixture) -> None:
    class Hanging(Worker):
        async def hang(self, payload: Any) -> None:
            self._say("begin")
            try:
                await asyncio.Event().wait()
            finally:
                self._say("cancelled")

    async with hosting(Hanging) as host:
        line = host.line(agent="hanging")
        await line.call("every", 10, "hang", None)
        for _ in range(3):
            await host.advance(10)
        await ran(line, "begin")
        assert Hanging.runs == ["begin"]
        await host.advance(10)
        await ran(line, "begin", 2)
        assert Hanging.runs == ["begin", "cancelled", "begin"]
        assert any("hangs" in record.message for record in caplog.records)


# ── not in memory ───────────────────────────────────────────────────


@requirement("engine:143")
async def test_schedules_run_after_a_restart_without_any_connection(tmp_path: Path) -> None:
    worker, clock = a_worker(), FakeClock()
    async with hosting(worker, folder=tmp_path, clock=clock) as host:
        line = host.line()
        await line.call("later", 50, "note", "while down")
        await line.call("later", 500, "note", "after")
    clock.advance(100)
    async with hosting(worker, folder=tmp_path, clock=clock) as host:
        await host.advance(0)
        assert await said(worker, 1) == ["while down"]
        line = host.line()
        await host.advance(0)
        assert await line.call("all") == ["after"]
        await host.advance(400)
        await ran(line, "after")


async def test_a_run_that_the_end_of_the_server_cut_off_is_begun_again_and_knows_it(tmp_path: Path) -> None:
    entered = Gate()

    class Stuck(Worker):
        async def work(self, payload: Any, schedule: Schedule) -> None:
            self._say([payload, schedule.interrupted])
            entered.open()
            if not schedule.interrupted:
                await asyncio.Event().wait()

    clock = FakeClock()
    async with hosting(Stuck, folder=tmp_path, clock=clock) as host:
        line = host.line(agent="stuck")
        await line.call("later", 1, "work", "once")
        await line.call("every", 1, "work", "again")
        await host.advance(1)
        await ran(line, ["once", False])
        await ran(line, ["again", False])
        assert [row.begun for row in await stored(host, "stuck/room")] == [1, 1]
    async with hosting(Stuck, folder=tmp_path, clock=clock) as host:
        line = host.line(agent="stuck")
        assert sorted((await said(Stuck, 4))[2:]) == [["again", True], ["once", True]]
        assert await line.call("all") == ["again"]
        (left,) = await stored(host, "stuck/room")
        assert (left.kind, left.begun) == ("interval", 0)


async def test_a_run_that_ends_the_process_each_time_is_given_up(log: ErrorLog) -> None:
    worker = a_worker()
    async with hosting(worker) as host:
        due = host.clock.now_ms()
        rows = [
            TimerRow(id, "delayed", "note", f'"{id}"', due, created_ms=1, begun=begun)
            for id, begun in (("often", 11), ("seldom", 10))
        ]
        # In one write: the host wakes the agent for the first, and what it does not load then it never sees.
        await host.store.write("worker/room", host.store.epoch, [PutTimer(row) for row in rows])
        host.line()
        assert await said(worker, 1) == ["seldom"]
        await forgotten(host)
        log.expect("was cut off 11 times and is given up")


async def test_an_agent_that_the_app_has_no_more_stops_nobody(caplog: pytest.LogCaptureFixture, tmp_path: Path) -> None:
    worker, clock = a_worker(), FakeClock()
    old = type("Old", (Worker,), {})
    async with hosting(worker, old, folder=tmp_path, clock=clock) as host:
        await host.line(agent="old").call("later", 10, "note", "old")
        await host.line().call("later", 10, "note", "new")
    clock.advance(20)
    async with hosting(worker, folder=tmp_path, clock=clock) as host:
        await host.advance(0)
        assert await said(worker, 1) == ["new"]
        assert any("old/room is due, but this app has no such agent" in record.message for record in caplog.records)


async def test_an_agent_that_cannot_be_woken_is_tried_again_later_each_time(log: ErrorLog) -> None:
    worker = a_worker()
    async with hosting(worker) as host:
        line = host.line()
        await line.call("later", 100, "note", "at last")
        line.leave()
        await host.advance(30)
        await host.advance(60)
        host.store.fail_reads("worker/room")
        await host.advance(10)
        await host.advance(1)
        host.store.heal("worker/room")
        await host.advance(1.9)
        assert worker.runs == []
        await host.advance(0.1)
        assert await said(worker, 1) == ["at last"]
        log.expect("The agent worker/room is dropped from memory: database disk image is malformed")


async def test_a_reply_that_follows_a_schedule_waits_until_it_is_stored() -> None:
    async with hosting(a_worker()) as host:
        line = host.line()
        await line.call("all")
        host.store.hold()
        asking = asyncio.create_task(line.call("later", 10, "note"))
        for _ in range(50):
            await asyncio.sleep(0)
        assert not asking.done()
        host.store.release()
        await asking
        assert len(await stored(host)) == 1


async def test_the_method_is_not_called_before_its_run_is_marked_in_the_store() -> None:
    worker = a_worker()
    async with hosting(worker) as host:
        line = host.line()
        await line.call("later", 10, "note", "marked")
        host.store.hold()
        await host.advance(10)
        for _ in range(50):
            await asyncio.sleep(0)
        assert worker.runs == []
        host.store.release()
        await ran(line, "marked")


# ── from a worker thread ────────────────────────────────────────────


async def test_a_synchronous_tool_can_schedule_and_change_the_agent(serve: Serve) -> None:
    threads: list[bool] = []

    @tool
    def work(ctx: ToolContext) -> dict[str, Any]:
        """Runs in a thread."""
        threads.append(threading.current_thread() is threading.main_thread())
        schedule = ctx.agent.schedule(60, "act", {"from": "a thread"})
        every = ctx.agent.schedule_every(600, "act", None)
        ctx.agent.set_state({"seen": ctx.agent.get_schedule(schedule.id).payload})
        ctx.agent.configure([schedule.id])
        ctx.agent.broadcast(json.dumps({"type": "note"}))
        left = [ctx.agent.cancel_schedule(every.id), len(ctx.agent.get_schedules())]
        try:
            ctx.agent.schedule(60, "nothing")
        except ConfigurationError as error:
            return {"left": left, "error": str(error)}
        return {}

    def act(self: Think, payload: Any) -> None:
        self.broadcast(json.dumps({"type": "acted", "payload": payload}))

    clock = FakeClock()
    model = ScriptedModel([[call("work", {}, id="c1")], say("Done.")])
    server = await serve(agent(model, work, act=act), engine=Engine(clock=clock))
    tab = await server.tab()
    await tab.ask("r1", "Go")
    await tab.done("r1")
    (part,) = [part for part in (await server.stored())[1]["parts"] if part["type"] == "tool-work"]
    assert part["output"]["left"] == [True, 1]
    assert "has no method 'nothing'" in part["output"]["error"]
    assert threads == [False]
    await tab.seen(lambda frame: frame["type"] == "note")
    await tab.seen(lambda frame: frame.get("state") == {"seen": {"from": "a thread"}})
    await clock.sleeping(2)
    clock.advance(60)
    await tab.seen(lambda frame: frame["type"] == "acted")
