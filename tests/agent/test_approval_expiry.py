"""``approval_ttl``: a question that nobody answers in time is answered with no."""

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from perdure import App, ConfigurationError, Think, callable, client_tool, tool
from perdure.storage.timers import LoadTimers
from perdure.testing import FakeClock, Gate, ScriptedModel, call, say
from tests.agent.deciding import approval, check_prompts, part_of, remover, result
from tests.requirements import requirement
from tests.support import Frame, agent, chat_request, user_message
from tests.support.fixtures import log
from tests.support.hosting import Hosting, Line, hosting

__all__ = ["log"]

pytestmark = pytest.mark.anyio

HOUR = 3600.0


class Waiting(Think):
    """Says what it knows of its questions and schedules."""

    approval_ttl = HOUR

    @callable
    def pending(self) -> list[dict[str, Any]]:
        return [
            {"call": p.tool_call_id, "asked": p.asked_ms, "expires": p.expires_ms} for p in self.pending_approvals()
        ]

    @callable
    def schedules(self) -> list[str]:
        return [schedule.callback for schedule in self.get_schedules()]

    @callable
    async def stored(self) -> list[Any]:
        return await self.get_messages()

    @callable
    async def forget(self) -> None:
        await self.clear_messages()

    async def note(self) -> None:
        """Is called by a schedule of the test."""

    @callable
    def plan(self) -> None:
        self.schedule(10 * HOUR, self.note)


def waiting(model: ScriptedModel, *tools: Any, **fields: Any) -> Any:
    return type("Agent", (Waiting, agent(model, *tools)), fields)


def remove(path: str = "x", id: str = "c1") -> Any:
    return call("remove", {"path": path}, id=id)


def line_to(host: Hosting) -> Line:
    return host.line(agent="agent")


def ask(line: Line, request: str) -> None:
    line.post(chat_request(request, json.dumps({"messages": [user_message("Go")]})))


async def done(line: Line, request: str) -> Frame:
    return await line.seen(lambda f: f.get("id") == request and f.get("done") is True)


async def continued(host: Hosting, line: Line, count: int = 1) -> Frame:
    """The end of the continuation that is the so-manieth: it begins a little after the last answer."""
    await host.advance(0.05)
    return await line.seen(lambda f: f.get("done") is True and f.get("continuation") is True, count)


async def update(line: Line, state: str, count: int = 1) -> Any:
    frame = await line.seen(
        lambda f: f["type"] == "cf_agent_message_updated" and state in str(f["message"]["parts"]), count
    )
    return frame["message"]


@requirement("fault:AP-14")
async def test_without_a_ttl_a_question_waits_for_ever(tmp_path: Path) -> None:
    ran: list[Any] = []
    model, clock = ScriptedModel([remove(), say("Gone.")]), FakeClock()
    kind = waiting(model, remover(ran), approval_ttl=None)
    async with hosting(kind, folder=tmp_path, clock=clock) as host:
        line = line_to(host)
        ask(line, "r1")
        await done(line, "r1")
        assert (await line.call("pending"))[0]["expires"] is None
    clock.advance(30 * 24 * HOUR)
    async with hosting(kind, folder=tmp_path, clock=clock) as host:
        line = line_to(host)
        part = part_of(await line.call("stored"), "c1")
        assert part["state"] == "approval-requested"
        assert not [f for f in line.frames if f["type"] == "cf_agent_use_chat_response"], "no banner, no turn"
        assert len(model.requests) == 1
        line.post(approval("c1"))
        await update(line, "approval-responded")
        await continued(host, line)
        assert ran == ["x"]
    model.assert_done()


async def test_a_question_that_expires_is_a_denial_with_a_reason_and_the_conversation_goes_on() -> None:
    ran: list[Any] = []
    model = ScriptedModel([remove(), say("I did not.")])
    async with hosting(waiting(model, remover(ran))) as host:
        line = line_to(host)
        ask(line, "r1")
        await done(line, "r1")
        (question,) = await line.call("pending")
        assert question["expires"] == question["asked"] + HOUR * 1000
        assert await line.call("schedules") == []
        await host.advance(HOUR - 1)
        assert await line.call("pending") == [question]
        await host.advance(1)
        message = await update(line, "output-denied")
        await continued(host, line)
        assert await line.call("pending") == []
        part = part_of(await line.call("stored"), "c1")
        assert part["state"] == "output-denied"
        assert part["approval"] == {
            "id": part["approval"]["id"],
            "approved": False,
            "reason": "The approval request expired: nobody decided in time.",
        }
        assert part_of([message], "c1") == part
        line.post(approval("c1"))
        assert await line.call("pending") == []
        assert ran == []
    check_prompts(model.requests)
    model.assert_done()


@pytest.mark.parametrize("answer", [approval("c1"), approval("c1", approved=False), result("c1", "by hand")])
async def test_a_question_that_was_answered_does_not_expire(answer: Frame) -> None:
    ran: list[Any] = []
    model = ScriptedModel([remove(), say("Fine.")])
    async with hosting(waiting(model, remover(ran))) as host:
        line = line_to(host)
        ask(line, "r1")
        await done(line, "r1")
        await host.advance(HOUR - 1)
        line.post(answer)
        await line.seen(lambda f: f["type"] == "cf_agent_message_updated")
        await continued(host, line)
        before = await line.call("stored")
        await host.advance(2 * HOUR)
        assert await line.call("stored") == before
    model.assert_done()


@pytest.mark.parametrize("how", ["restart", "eviction"])
async def test_a_question_expires_though_the_agent_was_not_in_memory(tmp_path: Path, how: str) -> None:
    ran: list[Any] = []
    model, clock = ScriptedModel([remove(), say("I did not.")]), FakeClock()
    ended = asyncio.Event()

    def on_chat_response(self: Any, response: Any) -> None:
        if response.continuation:
            ended.set()

    kind = waiting(model, remover(ran), on_chat_response=on_chat_response)
    async with hosting(kind, folder=tmp_path, clock=clock) as host:
        line = line_to(host)
        ask(line, "r1")
        await done(line, "r1")
        line.leave()
        if how == "eviction":
            for _ in range(6):
                await host.advance(600)
            await host.advance(1)
            await asyncio.wait_for(_advancing(host, ended), 20)
    if how == "restart":
        clock.advance(HOUR / 2)
        async with hosting(kind, folder=tmp_path, clock=clock) as host:
            await host.advance(HOUR / 4)
            assert len(model.requests) == 1
        clock.advance(5 * HOUR)
        async with hosting(kind, folder=tmp_path, clock=clock) as host:
            await host.advance(1)
            await asyncio.wait_for(_advancing(host, ended), 20)
    async with hosting(kind, folder=tmp_path, clock=clock) as host:
        part = part_of(await line_to(host).call("stored"), "c1")
        assert (part["state"], part["approval"]["approved"], ran) == ("output-denied", False, [])
    model.assert_done()


async def _advancing(host: Hosting, until: asyncio.Event) -> None:
    while not until.is_set():
        await host.advance(0.05)


async def test_a_question_may_expire_while_its_turn_still_runs() -> None:
    gate = Gate()

    @tool
    async def slow() -> str:
        """Slow."""
        await gate.passed()
        return "slow"

    model = ScriptedModel([[remove(), call("slow", id="c2")], say("Late.")])
    async with hosting(waiting(model, remover([]), slow)) as host:
        line = line_to(host)
        ask(line, "r1")
        await line.seen(lambda f: "tool-approval-request" in f.get("body", ""))
        await gate.reached()
        await host.advance(HOUR)
        await update(line, "output-denied")
        assert len(model.requests) == 1
        gate.open()
        await done(line, "r1")
        await continued(host, line)
        parts = await line.call("stored")
        assert part_of(parts, "c1")["state"] == "output-denied"
        assert part_of(parts, "c2")["output"] == "slow"
    check_prompts(model.requests)
    model.assert_done()


async def test_each_question_has_its_own_time_and_the_last_to_expire_goes_on() -> None:
    ran: list[Any] = []
    model = ScriptedModel([remove("a", "c1"), [say("And? "), remove("b", "c2"), remove("c", "c3")], say("Done.")])
    async with hosting(waiting(model, remover(ran))) as host:
        line = line_to(host)
        ask(line, "r1")
        await done(line, "r1")
        await host.advance(HOUR / 2)
        line.post(approval("c1"))
        await update(line, "approval-responded")
        await continued(host, line)
        await host.advance(HOUR * 0.75)
        assert [each["call"] for each in await line.call("pending")] == ["c2", "c3"]
        line.post(approval("c3"))
        await update(line, "approval-responded", 2)
        await host.advance(HOUR * 0.25)
        await update(line, "output-denied")
        await continued(host, line, 2)
        assert ran == ["a", "c"]
    check_prompts(model.requests)
    model.assert_done()


async def test_a_question_of_a_forgotten_conversation_does_not_expire() -> None:
    model = ScriptedModel([remove("a", "c1"), remove("b", "c1"), say("Gone.")])
    async with hosting(waiting(model, remover([]))) as host:
        line = line_to(host)
        ask(line, "r1")
        await done(line, "r1")
        await host.advance(HOUR / 2)
        await line.call("forget")
        ask(line, "r2")
        await done(line, "r2")
        assert [each["call"] for each in await line.call("pending")] == ["c1"]
        await host.advance(HOUR / 2)
        async with asyncio.timeout(20):
            while len(await host.read(LoadTimers("agent/room"))) > 1:
                await host.advance(1)
        assert [each["call"] for each in await line.call("pending")] == ["c1"], "that was another question"
        await host.advance(HOUR / 2)
        await update(line, "output-denied")


async def test_users_see_their_own_schedules_only() -> None:
    model = ScriptedModel([remove()])
    async with hosting(waiting(model, remover([]))) as host:
        line = line_to(host)
        await line.call("plan")
        ask(line, "r1")
        await done(line, "r1")
        assert await line.call("schedules") == ["note"]


async def test_a_method_of_the_application_called_schedule_is_not_in_the_way() -> None:
    @tool
    async def schedule(self: Any, day: str) -> str:
        """Schedule a meeting."""
        return day

    model = ScriptedModel([remove(), say("I did not.")])
    kind = waiting(model, remover([]), schedule=schedule)
    async with hosting(kind) as host:
        line = line_to(host)
        ask(line, "r1")
        assert (await done(line, "r1"))["outcome"] == "completed"
        await host.advance(HOUR)
        await update(line, "output-denied")


async def test_client_tools_without_a_question_have_no_time_limit() -> None:
    model = ScriptedModel([call("locate", id="c1"), say("Here.")])
    async with hosting(waiting(model, client_tool("locate"))) as host:
        line = line_to(host)
        ask(line, "r1")
        await done(line, "r1")
        await host.advance(10 * HOUR)
        line.post(result("c1", "here"))
        await continued(host, line)
    model.assert_done()


@pytest.mark.parametrize("ttl", [-1, float("nan"), "soon", True])
def test_a_ttl_that_is_no_time_is_refused_when_the_agent_is_made(ttl: Any) -> None:
    with pytest.raises(ConfigurationError, match="approval_ttl"):
        App(waiting(ScriptedModel([]), approval_ttl=ttl))
