"""Turns that go on after answers while other turns come, wait and go; and pages that go on themselves."""

from typing import Any

import pytest

from perdure import Debounce, ModelUnreachable, Think, tool
from perdure.testing import Gate, ScriptedModel, call, fail, pause, say
from tests.agent.calls import said, tool_parts
from tests.server.answering import ask_for_calls, continuations, continued, is_idle, is_update, outputs
from tests.support import (
    Doing,
    Page,
    Serve,
    agent,
    approval,
    chunks_of,
    do,
    offer,
    tool_failure,
    tool_result,
    user_message,
)

pytestmark = pytest.mark.anyio


# ── other turns that come between ─────────────────────────────────────


async def test_an_answer_given_while_another_message_waits_is_shown_and_seen_by_its_turn(serve: Serve) -> None:
    gate = Gate()
    model = ScriptedModel([[call("a", id="c1"), pause(gate), say("Well.")], say("Both.")])
    server = await serve(agent(model))
    tab = await server.tab()
    await tab.ask("r1", "Go", clientTools=offer("a"))
    await gate.reached()
    await tab.ask("r2", "And")
    await tab.send(tool_result("c1", "here"))
    await tab.seen(is_update)
    gate.open()
    await tab.done("r2")
    await tab.settle()
    assert not continuations(tab)
    assert said(await server.stored()) == ["Go", "Well.", "And", "Both."]
    assert tool_parts(model.requests[1].messages[1])[0]["output"] == "here"
    assert await is_idle(tab)


@pytest.mark.parametrize("when", ["while the first streams", "while the first is reported"])
async def test_an_answer_is_gone_on_with_after_all_when_the_message_that_waited_is_withdrawn(
    serve: Serve, when: str
) -> None:
    streaming, reported = Gate(), Gate()

    async def on_chat_response(self: Think, response: Any) -> None:
        if not response.continuation:
            await reported.passed()

    model = ScriptedModel([[call("a", id="c1"), pause(streaming), say("Well.")], say(" Done.")])
    server = await serve(agent(model, on_chat_response=on_chat_response))
    tab = await server.tab()
    await tab.ask("r1", "Go", clientTools=offer("a"))
    await streaming.reached()
    await tab.ask("r2", "And")
    await tab.send(tool_result("c1", "here"))
    await tab.seen(is_update)
    if when == "while the first streams":
        reported.open()
        await tab.cancel("r2")
        await tab.done("r2")
        streaming.open()
    else:
        streaming.open()
        await reported.reached()
        await tab.cancel("r2")
        await tab.done("r2")
        reported.open()
    await continued(tab)
    assert said(await server.stored()) == ["Go", "Well. Done.", "And"]
    assert len(model.requests) == 2


async def test_an_answer_is_gone_on_with_after_all_when_the_turn_that_waits_for_quiet_is_withdrawn(
    serve: Serve,
) -> None:
    gate = Gate()
    model = ScriptedModel([[call("a", id="c1"), pause(gate)], say("Done.")])
    server = await serve(agent(model, message_concurrency=Debounce(ms=60_000)))
    tab = await server.tab()
    await tab.ask("r1", "Go", clientTools=offer("a"))
    await gate.reached()
    await tab.ask("r2", "Wait")
    await tab.settle()
    gate.open()
    await tab.done("r1")
    await tab.send(tool_result("c1"))
    await tab.seen(is_update)
    await tab.cancel("r2")
    await tab.done("r2")
    await continued(tab)
    assert await is_idle(tab)
    assert len(model.requests) == 2


@pytest.mark.parametrize("answered", [True, False], ids=["an answered call", "an open call"])
async def test_a_turn_that_is_stopped_does_not_go_on_by_itself(serve: Serve, answered: bool) -> None:
    gate = Gate()
    model = ScriptedModel([[call("a", id="c1"), say("And "), pause(gate), say("never")], say("Next.")])
    server = await serve(agent(model))
    tab = await server.tab()
    await tab.ask("r1", "Go", clientTools=offer("a"))
    await gate.reached()
    if answered:
        await tab.send(tool_result("c1"))
        await tab.seen(is_update)
        assert (await tab.probe("p"))["type"] == "cf_agent_stream_resuming"
        await tab.ack("r1")
    await tab.cancel("r1")
    assert (await tab.done("r1"))["outcome"] == "aborted"
    mark = len(tab.frames)
    await tab.send(tool_result("c1", "late"))
    assert await is_idle(tab)
    assert len(tab.frames) == mark + 1
    (part,) = tool_parts((await server.stored())[1])
    assert part["state"] == ("output-available" if answered else "output-error")
    assert len(model.requests) == 1
    await tab.ask("r2", *(await server.stored()), user_message("And"))
    await tab.done("r2")
    assert said(await server.stored()) == ["Go", "And ", "And", "Next."]


async def test_a_model_that_fails_behind_an_answered_call_is_asked_once_more_by_the_answer(serve: Serve) -> None:
    gate = Gate()
    model = ScriptedModel([[call("a", id="c1"), pause(gate), fail(ModelUnreachable("It broke off."))], say("Done.")])
    server = await serve(agent(model))
    tab = await server.tab()
    await tab.ask("r1", "Go", clientTools=offer("a"))
    await gate.reached()
    gate.open()
    await tab.done("r1")
    await tab.send(tool_result("c1"))
    await continued(tab)
    assert said(await server.stored()) == ["Go", "Done."]


async def test_a_message_that_was_added_meanwhile_stays_behind_the_answer_that_goes_on(serve: Serve) -> None:
    class Adding(Doing, Think):
        model = ScriptedModel([call("a", id="c1"), say("Done.")])

    server = await serve(type("Agent", (Adding,), {}))
    tab = await ask_for_calls(server, "a")
    await do(tab, lambda agent: agent.add_messages("A note."))
    await tab.send(tool_result("c1"))
    await continued(tab)
    assert said(await server.stored()) == ["Go", "Done.", "A note."]


# ── a page that goes on itself ────────────────────────────────────────


async def test_a_page_that_wants_no_turn_by_itself_asks_for_it_with_the_conversation_as_it_is(serve: Serve) -> None:
    contexts: list[Any] = []
    steps = [[call("a", id="c1"), call("b", id="c2")], [say("And "), call("a", id="c3")], say("done.")]
    model = ScriptedModel(steps)
    server = await serve(
        agent(model, before_turn=lambda self, ctx: contexts.append((ctx.continuation, dict(ctx.body))))
    )
    tab, page = await ask_for_calls(server, "a", "b"), await Page.load(server)
    await tab.send(tool_result("c1", 1, go_on=False))
    await tab.ask("early", *(await server.stored()))
    assert (await tab.done("early"))["outcome"] == "completed"
    assert len(model.requests) == 1, "a call is open"
    await tab.send(tool_failure("c2", "no"))
    await tab.ask("r2", *(await server.stored()), tone="dry")
    await tab.done("r2")
    await tab.send(tool_result("c3", 3, go_on=False))
    await tab.ask("r3", *(await server.stored()))
    end = await tab.done("r3")
    assert (end["outcome"], end["continuation"]) == ("completed", True)
    assert contexts == [(False, {}), (True, {"tone": "dry"}), (True, {})]
    stored = await server.stored()
    assert [message["role"] for message in stored] == ["user", "assistant"]
    assert said(stored) == ["Go", "And done."]
    assert await outputs(server) == [1, "no", 3]
    assert [chunk for chunk in chunks_of(tab.frames, "r2") if "messageId" in chunk] == []
    assert said(await page.look()) == said(stored)
    await tab.ask("r4", *stored)
    await tab.done("r4")
    assert len(model.requests) == 3, "the model has seen everything"


async def test_a_page_that_asks_as_well_as_answers_gets_one_turn(serve: Serve) -> None:
    model = ScriptedModel([call("a", id="c1"), say("Done.")])
    server = await serve(agent(model))
    tab = await ask_for_calls(server, "a")
    stored = await server.stored()
    await tab.send(tool_result("c1"))
    await tab.ask("r2", *stored)
    assert (await tab.done("r2"))["outcome"] == "completed"
    await continued(tab)
    assert said(await server.stored()) == ["Go", "Done."]
    assert len(model.requests) == 2


async def test_the_last_answer_may_be_gone_on_with_after_a_restart(serve: Serve) -> None:
    server = await serve(agent(ScriptedModel([call("a", id="c1")])))
    tab = await ask_for_calls(server, "a")
    await tab.send(tool_result("c1", "here", go_on=False))
    await tab.seen(is_update)
    await server.stop()
    server = await serve(agent(ScriptedModel([say("Done.")])))
    tab = await server.tab()
    await tab.ask("r2", *(await server.stored()))
    await tab.done("r2")
    assert said(await server.stored()) == ["Go", "Done."]


async def test_a_page_that_wants_no_turn_by_itself_has_an_approved_call_run_by_asking(serve: Serve) -> None:
    ran: list[str] = []

    @tool(needs_approval=True)
    def pay() -> str:
        """Pay."""
        ran.append("paid")
        return "paid"

    server = await serve(agent(ScriptedModel([[call("pay", id="c1"), call("a", id="c2")], say("Done.")]), pay))
    tab = await ask_for_calls(server, "a")
    await tab.send(approval("c1", go_on=False))
    await tab.ask("early", *(await server.stored()))
    await tab.done("early")
    assert ran == []
    await tab.send(tool_result("c2", go_on=False))
    await tab.ask("r2", *(await server.stored()))
    await tab.done("r2")
    assert ran == ["paid"]
    assert await outputs(server) == ["paid", "ok"]
    assert said(await server.stored()) == ["Go", "Done."]
    assert await is_idle(tab)
