"""Agents whose calls wait for a page: for days, in memory or not, across restarts, on a clock that the test moves."""

from __future__ import annotations

import gc
import json
import weakref
from pathlib import Path
from typing import Any

import pytest

from perdure import Think, client_tool
from perdure.protocol.names import Address
from perdure.storage.contract import LoadPath
from perdure.testing import Gate, ScriptedModel, call, chunk, pause, say, strict_provider_errors
from tests.agent.calls import said, tool_parts
from tests.requirements import requirement
from tests.support import Frame, approval, chat_request, offer, tool_failure, tool_result, user_message
from tests.support.hosting import Hosting, Line, hosting

pytestmark = pytest.mark.anyio

DAY = 24 * 3600.0
WINDOW = 0.05
"""Seconds between the last answer and the turn that goes on."""


class Awake:
    """A class of agents, and which of them are in memory."""

    def __init__(self, model: ScriptedModel, *tools: Any, **fields: Any) -> None:
        self.model = model
        self.contexts: list[Any] = []
        self.woken = woken = []
        contexts = self.contexts

        def on_start(agent: Think) -> None:
            woken.append(weakref.ref(agent))

        def before_turn(agent: Think, ctx: Any) -> None:
            contexts.append(ctx)

        hooks = {"on_start": on_start, "before_turn": before_turn, "get_tools": lambda agent: tools}
        self.kind: type[Think] = type("Worker", (Think,), {"model": model, **hooks, **fields})

    @property
    def in_memory(self) -> int:
        gc.collect()
        return sum(ref() is not None for ref in self.woken)


async def pass_time(host: Hosting, seconds: float = 90) -> None:
    """Let so much time pass, with enough looks in it that what is idle has left."""
    for _ in range(6):
        await host.advance(seconds / 6)


def ask(line: Line, request: str, *messages: str | Frame, **body: Any) -> None:
    posted = [user_message(message) if isinstance(message, str) else message for message in messages]
    line.post(chat_request(request, json.dumps({"messages": posted, **body})))


async def ended(line: Line, request: str) -> Frame:
    return await line.seen(lambda frame: frame.get("id") == request and frame.get("done") is True)


async def updated(line: Line, count: int = 1) -> Frame:
    return (await line.seen(lambda frame: frame["type"] == "cf_agent_message_updated", count))["message"]


async def gone_on(host: Hosting, line: Line, count: int = 1) -> Frame:
    """Returns when so many continuations are over."""
    await host.store.settled()
    await host.clock.sleeping(3)
    host.clock.advance(WINDOW)
    return await line.seen(lambda frame: frame.get("continuation", False) and frame.get("done") is True, count)


async def stored(host: Hosting) -> list[Frame]:
    await host.store.settled()
    return [json.loads(row.body) for row in await host.read(LoadPath(Address("worker", "room").key))]


async def wait_for_answer(host: Hosting, line: Line, *names: str, **body: Any) -> None:
    ask(line, "r1", "Go", clientTools=offer(*names), **body)
    await ended(line, "r1")


# ── days ────────────────────────────────────────────────────────────


@requirement("protocol:69")
async def test_the_turn_that_goes_on_begins_50_ms_after_the_last_answer() -> None:
    model = ScriptedModel([call("a", id="c1"), say("Done.")])
    awake = Awake(model)
    async with hosting(awake.kind) as host:
        line = host.line()
        await wait_for_answer(host, line, "a")
        line.post(tool_result("c1"))
        await updated(line)
        await host.clock.sleeping(3)
        host.clock.advance(0.049)
        await host.clock.sleeping(3)
        assert len(model.requests) == 1
        host.clock.advance(0.001)
        await line.seen(lambda frame: frame.get("continuation", False) and frame.get("done") is True)
        assert len(model.requests) == 2


@requirement("fault:CT-01")
@pytest.mark.parametrize("order", [("c1", "c2"), ("c2", "c1")])
async def test_no_time_between_two_answers_makes_a_turn_of_the_first(order: tuple[str, str]) -> None:
    model = ScriptedModel([[call("tz", id="c1"), call("clip", id="c2")], say("Done.")])
    awake = Awake(model)
    async with hosting(awake.kind) as host:
        line = host.line()
        await wait_for_answer(host, line, "tz", "clip")
        line.post(tool_result(order[0], f"of {order[0]}"))
        await updated(line)
        await host.advance(0.3)
        assert len(model.requests) == 1
        line.post(tool_result(order[1], f"of {order[1]}"))
        await gone_on(host, line)
        assert [part["output"] for part in tool_parts(model.requests[1].messages[1])] == ["of c1", "of c2"]
        assert [context.continuation for context in awake.contexts] == [False, True]
        await host.advance(1)
        assert len(model.requests) == 2


@requirement("fault:CT-05", "engine:84", "protocol:71")
@pytest.mark.parametrize("minutes", [10, 60 * 24 * 30])
async def test_a_question_beside_a_fast_tool_stays_open_however_long_it_takes(minutes: int) -> None:
    model = ScriptedModel([[call("ask_user", id="c1"), call("tz", id="c2")], say("Thank you.")])
    awake = Awake(model)
    async with hosting(awake.kind) as host:
        line = host.line()
        await wait_for_answer(host, line, "ask_user", "tz")
        line.post(tool_result("c2", "CET"))
        await updated(line)
        await pass_time(host, minutes * 60)
        assert awake.in_memory == 0, "nothing keeps it awake"
        assert len(model.requests) == 1
        assert [part["state"] for part in tool_parts((await stored(host))[1])] == [
            "input-available",
            "output-available",
        ]
        line.post(tool_result("c1", "yes"))
        await gone_on(host, line)
        assert [part["output"] for part in tool_parts(model.requests[1].messages[1])] == ["yes", "CET"]
        assert [context.continuation for context in awake.contexts] == [False, True]
        assert said(await stored(host)) == ["Go", "Thank you."]
        assert len(model.requests) == 2


async def test_an_agent_that_leaves_memory_before_each_answer_goes_on_as_one_that_stayed() -> None:
    steps = [
        [say("One."), call("a", id="c1"), call("b", id="c2")],
        [say("Two."), call("a", id="c3")],
        [say("Three."), call("b", id="c4"), call("b", id="c5")],
        say("Four."),
    ]

    async def play(sleeping: bool) -> list[Frame]:
        awake = Awake(ScriptedModel(steps))
        async with hosting(awake.kind) as host:
            line = host.line()
            await wait_for_answer(host, line, "a", "b", mood="calm")
            for number, answer in enumerate(["c2", "c1", "c3", "c5", "c4"], 1):
                if sleeping:
                    await pass_time(host, DAY)
                    assert awake.in_memory == 0
                line.post(tool_result(answer, f"result {answer}"))
                await updated(line, number)
                if answer in {"c1", "c3", "c4"}:
                    await gone_on(host, line, {"c1": 1, "c3": 2, "c4": 3}[answer])
            awake.model.assert_done()
            assert [strict_provider_errors(request) for request in awake.model.requests] == [[]] * 4
            assert [context.body for context in awake.contexts] == [{"mood": "calm"}] * 4
            assert [request.tools for request in awake.model.requests] == [["a", "b"]] * 4
            return await stored(host)

    slept, stayed = await play(sleeping=True), await play(sleeping=False)
    assert slept[1]["parts"] == stayed[1]["parts"]
    assert said(slept) == ["Go", "One.Two.Three.Four."]


async def test_a_batch_that_an_error_completes_after_a_sleep_goes_on() -> None:
    model = ScriptedModel([[call("a", id="c1"), call("b", id="c2")], say("Done.")])
    awake = Awake(model)
    async with hosting(awake.kind) as host:
        line = host.line()
        await wait_for_answer(host, line, "a", "b")
        line.post(tool_result("c1"))
        await updated(line)
        await pass_time(host, DAY)
        assert awake.in_memory == 0
        line.post(tool_failure("c2", "no"))
        await gone_on(host, line)
        assert [part["state"] for part in tool_parts(model.requests[1].messages[1])] == [
            "output-available",
            "output-error",
        ]


async def test_nobody_waits_at_a_stream_that_may_be_days_away() -> None:
    awake = Awake(ScriptedModel([[call("a", id="c1"), call("b", id="c2")], say("Done.")]))
    async with hosting(awake.kind) as host:
        line = host.line()
        await wait_for_answer(host, line, "a", "b")
        line.post(tool_result("c1"))
        line.leave()
        back = host.line()
        back.post({"type": "cf_agent_stream_resume_request", "probeId": "p"})
        none = await back.seen(lambda frame: frame.get("probeId") == "p")
        assert none["reason"] == "idle"
        back.post(tool_result("c2"))
        await gone_on(host, back)


async def test_a_tool_that_the_server_declares_is_known_after_days_and_waits_for_person_and_page() -> None:
    locate = client_tool("locate", needs_approval=True)
    model = ScriptedModel([call("locate", id="c1"), say("There.")])
    awake = Awake(model, locate)
    async with hosting(awake.kind) as host:
        line = host.line()
        ask(line, "r1", "Go")
        await ended(line, "r1")
        await pass_time(host, DAY)
        line.post(approval("c1"))
        assert tool_parts(await updated(line))[0]["state"] == "approval-responded"
        await pass_time(host, DAY)
        assert (awake.in_memory, len(model.requests)) == (0, 1)
        line.post(tool_result("c1", "Paris"))
        await gone_on(host, line)
        assert (model.requests[1].tools, said(await stored(host))) == (["locate"], ["Go", "There."])


# ── restarts ────────────────────────────────────────────────────────


@requirement("fault:CT-09", "engine:91")
@pytest.mark.parametrize("brings", [True, False])
async def test_a_restart_between_call_and_answer_forgets_no_tool(tmp_path: Path, brings: bool) -> None:
    first = Awake(ScriptedModel([call("a", id="c1")]))
    async with hosting(first.kind, folder=tmp_path) as host:
        await wait_for_answer(host, host.line(), "a")
    second = Awake(ScriptedModel([call("a", id="c2")]))
    async with hosting(second.kind, folder=tmp_path) as host:
        line = host.line()
        fields = {"clientTools": offer("a")} if brings else {}
        line.post(tool_result("c1", "here", **fields))
        await gone_on(host, line)
        assert second.model.requests[0].tools == ["a"]
        states = [part["state"] for part in tool_parts((await stored(host))[1])]
        assert states == ["output-available", "input-available"], "the next call is the page's as well"


@requirement("protocol:84", "fault:CT-18")
async def test_fields_of_a_request_reach_its_continuation_after_a_restart_and_no_later_request(tmp_path: Path) -> None:
    first = Awake(ScriptedModel([call("a", id="c1")]))
    async with hosting(first.kind, folder=tmp_path) as host:
        await wait_for_answer(host, host.line(), "a", locale="ru", tier=2)
    second = Awake(ScriptedModel([say("Done."), say("Next.")]))
    async with hosting(second.kind, folder=tmp_path) as host:
        line = host.line()
        line.post(tool_result("c1"))
        await gone_on(host, line)
        ask(line, "r2", "And")
        await ended(line, "r2")
        assert [context.body for context in second.contexts] == [{"locale": "ru", "tier": 2}, {}]


@requirement("fault:CT-17")
async def test_what_a_provider_said_of_a_call_goes_back_to_it_after_a_restart(tmp_path: Path) -> None:
    signature = {"google": {"thoughtSignature": "sig-1"}}
    input_chunk = {"type": "tool-input-available", "toolCallId": "c1", "toolName": "a", "input": {}}
    first = Awake(ScriptedModel([chunk({**input_chunk, "providerMetadata": signature})]))
    async with hosting(first.kind, folder=tmp_path) as host:
        await wait_for_answer(host, host.line(), "a")
    second = Awake(ScriptedModel([say("Done.")]))
    async with hosting(second.kind, folder=tmp_path) as host:
        line = host.line()
        line.post(tool_result("c1"))
        await gone_on(host, line)
        for message in ((await stored(host))[1], second.model.requests[0].messages[1]):
            assert tool_parts(message)[0]["callProviderMetadata"] == signature


@pytest.mark.parametrize("forgotten", ["an empty list", "a clear"])
async def test_tools_that_were_taken_away_stay_away_after_a_restart(tmp_path: Path, forgotten: str) -> None:
    first = Awake(ScriptedModel([say("One."), say("Two.")]))
    async with hosting(first.kind, folder=tmp_path) as host:
        line = host.line()
        await wait_for_answer(host, line, "a", mood="calm")
        if forgotten == "a clear":
            line.post({"type": "cf_agent_chat_clear"})
        else:
            ask(line, "r2", "And", clientTools=[])
            await ended(line, "r2")
        await host.store.settled()
    second = Awake(ScriptedModel([say("Three.")]))
    async with hosting(second.kind, folder=tmp_path) as host:
        line = host.line()
        ask(line, "r3", "And")
        await ended(line, "r3")
        assert (second.model.requests[0].tools, second.contexts[0].body) == ([], {})


async def test_a_request_that_says_nothing_of_tools_keeps_them_across_restarts(tmp_path: Path) -> None:
    model = ScriptedModel([say("One."), say("Two."), say("Three.")])
    awake = Awake(model)
    for start in range(3):
        async with hosting(awake.kind, folder=tmp_path) as host:
            line = host.line()
            ask(line, f"r{start}", f"Turn {start}", **({"clientTools": offer("a", "b")} if start == 0 else {}))
            await ended(line, f"r{start}")
    assert [request.tools for request in model.requests] == [["a", "b"]] * 3


async def test_answers_before_several_restarts_are_all_there_at_the_last(tmp_path: Path) -> None:
    calls = [call("a", id=f"c{n}") for n in range(4)]
    model = ScriptedModel([calls, say("Done.")])
    awake = Awake(model)
    async with hosting(awake.kind, folder=tmp_path) as host:
        await wait_for_answer(host, host.line(), "a")
    for answer in ("c2", "c0", "c3"):
        async with hosting(awake.kind, folder=tmp_path) as host:
            line = host.line()
            line.post(tool_result(answer, answer))
            await updated(line)
    async with hosting(awake.kind, folder=tmp_path) as host:
        line = host.line()
        line.post(tool_result("c1", "c1", go_on=False))
        await gone_on(host, line)
        assert [part["output"] for part in tool_parts(model.requests[1].messages[1])] == ["c0", "c1", "c2", "c3"]


async def test_a_continuation_that_was_to_come_is_made_up_for_after_a_restart(tmp_path: Path) -> None:
    model = ScriptedModel([call("a", id="c1"), say("Done.")])
    awake = Awake(model)
    async with hosting(awake.kind, folder=tmp_path) as host:
        line = host.line()
        await wait_for_answer(host, line, "a")
        line.post(tool_result("c1", "here"))
        await updated(line)
        assert len(model.requests) == 1, "the clock stands still in its window"
    async with hosting(awake.kind, folder=tmp_path) as host:
        line = host.line()
        await gone_on(host, line)
        assert said(await stored(host)) == ["Go", "Done."]
        assert len(model.requests) == 2


# ── restarts while something runs ───────────────────────────────────


@pytest.mark.parametrize("answered", [False, True])
async def test_a_turn_that_a_restart_cuts_off_behind_its_call_waits_for_the_page(
    tmp_path: Path, answered: bool
) -> None:
    gate = Gate()
    first = Awake(ScriptedModel([[say("Let me see. "), call("a", id="c1"), say("And"), pause(gate)]]))
    async with hosting(first.kind, folder=tmp_path) as host:
        line = host.line()
        ask(line, "r1", "Go", clientTools=offer("a"), mood="calm")
        await gate.reached()
        if answered:
            line.post(tool_result("c1", "early"))
            await updated(line)
        await host.store.settled()
    second = Awake(ScriptedModel([say(" Done.")]))
    async with hosting(second.kind, folder=tmp_path) as host:
        line = host.line()
        if not answered:
            line.post(tool_result("c1", "late"))
        await gone_on(host, line)
        (request,) = second.model.requests
        assert strict_provider_errors(request) == []
        assert tool_parts(request.messages[1])[0]["output"] == ("early" if answered else "late")
        assert second.contexts[0].body == {"mood": "calm"}
        assert said(await stored(host)) == ["Go", "Let me see. And Done."]
        line.post({"type": "cf_agent_stream_resume_request", "probeId": "p"})
        assert (await line.seen(lambda frame: frame.get("probeId") == "p"))["reason"] == "idle"


@requirement("fault:CC-09")
async def test_a_continuation_that_a_restart_cuts_off_is_begun_again_behind_what_it_had_said(tmp_path: Path) -> None:
    gate = Gate()
    first = Awake(ScriptedModel([call("a", id="c1"), [say("Half a "), pause(gate)]]))
    async with hosting(first.kind, folder=tmp_path) as host:
        line = host.line()
        await wait_for_answer(host, line, "a")
        line.post(tool_result("c1", "here"))
        await updated(line)
        await host.store.settled()
        await host.clock.sleeping(3)
        host.clock.advance(WINDOW)
        await gate.reached()
    second = Awake(ScriptedModel([say("sentence.")]))
    async with hosting(second.kind, folder=tmp_path) as host:
        line = host.line()
        await gone_on(host, line)
        (request,) = second.model.requests
        assert strict_provider_errors(request) == []
        assert tool_parts(request.messages[1])[0]["output"] == "here"
        assert said(await stored(host)) == ["Go", "Half a sentence."]
