"""Open questions and how turns end: stopped, failed, out of steps, cleared, overtaken by a new message."""

from pathlib import Path
from typing import Any

import pytest

from perdure import TurnConfig, client_tool, tool
from perdure.errors import ModelRejected
from perdure.testing import Gate, ScriptedModel, call, fail, pause, say
from tests.agent.calls import said
from tests.agent.deciding import (
    approval,
    check_prompts,
    continued,
    nothing_comes,
    part_of,
    remover,
    result,
    seen_state,
    stored_part,
)
from tests.requirements import requirement
from tests.support import Doing, Frame, Serve, Serving, Tab, agent, do, user_message

pytestmark = pytest.mark.anyio


def remove(path: str = "x", id: str = "c1") -> Any:
    return call("remove", {"path": path}, id=id)


def doing(model: ScriptedModel, *tools: Any, **fields: Any) -> Any:
    return type("Agent", (Doing, agent(model, *tools)), fields)


def slowly(gate: Gate) -> Any:
    @tool
    async def slow() -> str:
        """Slow."""
        await gate.passed()
        return "slow"

    return slow


async def asked(tab: Tab, call: str = "c1") -> None:
    """Returns once the question is out."""
    await tab.seen(lambda f: "tool-approval-request" in f.get("body", "") and call in f["body"])


# ── stopped ─────────────────────────────────────────────────────────


async def test_stopping_a_turn_takes_its_questions_back(serve: Serve) -> None:
    gate, ran = Gate(), list[Any]()
    model = ScriptedModel([[remove(), call("slow", id="c2")], say("Next.")])
    server = await serve(doing(model, remover(ran), slowly(gate)))
    tab = await server.tab()
    await tab.ask("r1", "Go")
    await gate.reached()
    await asked(tab)
    await tab.cancel("r1")
    assert (await tab.done("r1"))["outcome"] == "aborted"
    before = await server.stored()
    assert [part_of(before, each)["state"] for each in ("c1", "c2")] == ["output-error", "output-error"]
    await tab.send(approval("c1"))
    await nothing_comes(tab)
    assert await do(tab, lambda agent: agent.approve("c1")) is False
    assert (ran, await server.stored()) == ([], before)
    await tab.ask("r2", *before, user_message("Next"))
    await tab.done("r2")
    check_prompts(model.requests)
    model.assert_done()


@pytest.mark.parametrize("approved", [True, False])
async def test_a_turn_that_is_stopped_after_all_was_answered_does_not_go_on(serve: Serve, approved: bool) -> None:
    gate, ran = Gate(), list[Any]()
    model = ScriptedModel([[remove(), call("slow", id="c2")], say("Next.")])
    server = await serve(agent(model, remover(ran), slowly(gate)))
    tab = await server.tab()
    await tab.ask("r1", "Go")
    await gate.reached()
    await asked(tab)
    await tab.send(approval("c1", approved))
    await tab.cancel("r1")
    assert (await tab.done("r1"))["outcome"] == "aborted"
    await nothing_comes(tab)
    assert ran == []
    assert (await stored_part(server))["state"] == ("output-error" if approved else "output-denied")
    await tab.ask("r2", *(await server.stored()), user_message("Next"))
    await tab.done("r2")
    check_prompts(model.requests)
    model.assert_done()


async def test_stopping_the_continuation_stops_the_approved_call_and_it_never_runs_again(serve: Serve) -> None:
    gate, began = Gate(), list[str]()

    @tool(needs_approval=True)
    async def remove(path: str) -> str:
        """Remove."""
        began.append(path)
        await gate.passed()
        return "gone"

    model = ScriptedModel([call("remove", {"path": "x"}, id="c1"), say("Next.")])
    server = await serve(doing(model, remove))
    tab, other = await server.tab(), await server.tab()
    await tab.ask("r1", "Go")
    await tab.done("r1")
    await tab.send(approval("c1"))
    await gate.reached()
    (running,) = {f["id"] for f in other.frames if f.get("continuation")}
    await tab.cancel(running)
    assert (await continued(tab))["outcome"] == "aborted"
    part = await stored_part(server)
    assert (part["state"], part["errorText"]) == (
        "output-error",
        "The tool call was interrupted before a result was recorded.",
    )
    await tab.send(approval("c1"))
    await nothing_comes(tab)
    await tab.ask("r2", *(await server.stored()), user_message("Next"))
    await tab.done("r2")
    assert began == ["x"]
    check_prompts(model.requests)
    model.assert_done()


async def test_stopping_a_continuation_before_it_begins_says_that_the_call_did_not_run(serve: Serve) -> None:
    ran: list[Any] = []
    model = ScriptedModel([remove(), say("Next.")])
    server = await serve(doing(model, remover(ran)))
    tab = await server.tab()
    await tab.ask("r1", "Go")
    await tab.done("r1")

    async def script(agent: Any) -> None:
        await agent.approve("c1")
        agent.cancel_all_chats()

    await do(tab, script)
    await nothing_comes(tab)
    part = await stored_part(server)
    assert (part["state"], ran) == ("output-error", [])
    assert part["errorText"].startswith("The tool call was approved but did not run")
    assert part["approval"]["approved"] is True


# ── failed ──────────────────────────────────────────────────────────


async def test_a_question_of_a_turn_that_fails_may_still_be_answered(serve: Serve) -> None:
    ran: list[Any] = []
    gate = Gate()
    failing = [True]

    def after(self: Any, result: Any) -> None:
        if failing:
            raise ModelRejected("the hook gave up")

    model = ScriptedModel([[remove(), call("slow", id="c2")], say("Both.")])
    server = await serve(agent(model, remover(ran), slowly(gate), after_tool_call=after))
    tab = await server.tab()
    await tab.ask("r1", "Go")
    await asked(tab)
    gate.open()
    assert (await tab.done("r1"))["outcome"] == "error"
    assert (await stored_part(server, "c1"))["state"] == "approval-requested"
    failing.clear()
    await tab.send(approval("c1"))
    assert (await continued(tab))["outcome"] == "completed"
    assert ran == ["x"]
    check_prompts(model.requests)
    assert (await tab.probe("after"))["reason"] == "idle", "the failure is history"


async def test_calls_of_a_step_that_the_model_does_not_finish_are_asked_about_by_nobody(serve: Serve) -> None:
    ran: list[Any] = []
    model = ScriptedModel([[remove(), fail(ModelRejected("overloaded"))], say("Next.")])
    server = await serve(doing(model, remover(ran)))
    tab = await server.tab()
    await tab.ask("r1", "Go")
    assert (await tab.done("r1"))["outcome"] == "error"
    assert (await stored_part(server))["state"] == "output-error"

    async def pending(agent: Any) -> Any:
        return agent.pending_approvals()

    assert await do(tab, pending) == []
    await tab.ask("r2", *(await server.stored()), user_message("Next"))
    await tab.done("r2")
    check_prompts(model.requests)


async def test_a_continuation_that_fails_before_the_call_runs_leaves_an_error_and_the_chat_goes_on(
    serve: Serve,
) -> None:
    ran: list[Any] = []
    model = ScriptedModel([remove(), say("Next.")])

    def before(self: Any, ctx: Any) -> Any:
        if ctx.continuation:
            raise ModelRejected("no model today")

    server = await serve(agent(model, remover(ran), before_turn=before))
    tab, other = await server.tab(), await server.tab()
    await tab.ask("r1", "Go")
    await tab.done("r1")
    await tab.send(approval("c1"))
    assert (await continued(other))["error"] is True
    part = await stored_part(server)
    assert (part["state"], ran) == ("output-error", [])
    assert part["errorText"].startswith("The tool call was approved but did not run")
    await tab.send(approval("c1"))
    await tab.ask("r2", *(await server.stored()), user_message("Next"))
    assert (await tab.done("r2"))["outcome"] == "completed"
    check_prompts(model.requests)
    model.assert_done()


async def test_a_continuation_that_fails_after_the_call_ran_keeps_its_result(serve: Serve) -> None:
    ran: list[Any] = []
    model = ScriptedModel([remove(), fail(ModelRejected("overloaded")), say("Next.")])
    server = await serve(agent(model, remover(ran)))
    tab, other = await server.tab(), await server.tab()
    await tab.ask("r1", "Go")
    await tab.done("r1")
    await tab.send(approval("c1"))
    assert (await continued(other))["outcome"] == "error"
    assert (await stored_part(server))["output"] == {"removed": "x"}
    await tab.ask("r2", *(await server.stored()), user_message("Next"))
    await tab.done("r2")
    assert ran == ["x"]
    check_prompts(model.requests)
    model.assert_done()


# ── out of steps ────────────────────────────────────────────────────


async def test_a_question_in_the_last_step_that_a_turn_may_have_is_answered_in_a_turn_of_its_own(serve: Serve) -> None:
    ran: list[Any] = []
    model = ScriptedModel([call("slow", id="c0"), remove(), call("slow", id="c2"), say("Done.")])
    gate = Gate()
    gate.open()
    server = await serve(agent(model, remover(ran), slowly(gate), max_steps=2))
    tab = await server.tab()
    await tab.ask("r1", "Go")
    assert (await tab.done("r1"))["outcome"] == "completed"
    assert (await stored_part(server, "c1"))["state"] == "approval-requested"
    await tab.send(approval("c1"))
    await continued(tab)
    assert ran == ["x"]
    assert said(await server.stored())[1] == "Done."
    model.assert_done()


async def test_a_turn_ends_with_the_step_that_asks_though_more_are_allowed(serve: Serve) -> None:
    model = ScriptedModel([[remove(), call("slow", id="c2")]])
    gate = Gate()
    gate.open()
    server = await serve(agent(model, remover([]), slowly(gate)))
    tab = await server.tab()
    await tab.ask("r1", "Go")
    assert (await tab.done("r1"))["outcome"] == "completed"
    assert [c for c in tab.of("r1") if '"finishReason":"tool-calls"' in c.get("body", "")]
    model.assert_done()


async def test_a_condition_that_ends_the_turn_leaves_the_question_open(serve: Serve) -> None:
    ran: list[Any] = []
    model = ScriptedModel([remove(), say("Done.")])
    config = TurnConfig(stop_when=lambda steps: True)
    server = await serve(agent(model, remover(ran), before_turn=lambda self, ctx: config))
    tab = await server.tab()
    await tab.ask("r1", "Go")
    await tab.done("r1")
    await tab.send(approval("c1"))
    await continued(tab)
    assert ran == ["x"]
    model.assert_done()


# ── cleared ─────────────────────────────────────────────────────────


@pytest.mark.parametrize("answered", [False, True])
async def test_a_clear_takes_the_questions_with_it(serve: Serve, answered: bool) -> None:
    ran: list[Any] = []
    model = ScriptedModel([[remove("a", "c1"), remove("b", "c2")], say("New.")])
    server = await serve(doing(model, remover(ran)))
    tab, other = await server.tab(), await server.tab()
    await tab.ask("r1", "Go")
    await tab.done("r1")
    if answered:
        await tab.send(approval("c1"))
    await tab.clear()
    await other.seen(lambda f: f["type"] == "cf_agent_chat_clear")
    await tab.send(approval("c1"))
    await tab.send(approval("c2"))
    await tab.send(result("c2", "late"))
    await nothing_comes(tab)
    assert await server.stored() == []

    async def script(agent: Any) -> Any:
        assert await agent.approve("c2") is False
        return agent.pending_approvals()

    assert await do(tab, script) == []
    await tab.ask("r2", "Hello")
    await tab.done("r2")
    assert ran == []
    assert [message["role"] for message in model.requests[1].messages] == ["user"]
    model.assert_done()


@pytest.mark.parametrize("approved", [True, False])
async def test_a_clear_between_the_answer_and_its_continuation_lets_nothing_run(serve: Serve, approved: bool) -> None:
    ran: list[Any] = []
    model = ScriptedModel([remove()])
    server = await serve(agent(model, remover(ran)))
    tab = await server.tab()
    await tab.ask("r1", "Go")
    await tab.done("r1")
    await tab.send_together(approval("c1", approved), {"type": "cf_agent_chat_clear"})
    await nothing_comes(tab)
    assert (ran, await server.stored()) == ([], [])
    model.assert_done()


# ── typing instead of deciding ──────────────────────────────────────


@requirement("fault:AP-17")
@pytest.mark.parametrize("restart", [False, True])
async def test_who_types_instead_of_deciding_is_answered_and_the_call_never_runs(
    serve: Serve, tmp_path: Path, restart: bool
) -> None:
    ran: list[Any] = []
    first = ScriptedModel([[say("May I? "), remove(), call("locate", id="c2")], say("Hello.")])
    model = first
    tools = [remover(ran), client_tool("locate")]
    server = await serve(doing(first, *tools))
    tab = await server.tab()
    await tab.ask("r1", "Go")
    await tab.done("r1")
    if restart:
        await server.stop()
        model = ScriptedModel([say("Hello.")])
        server = await serve(doing(model, *tools))
        tab = await server.tab()
    other = await server.tab()
    await tab.ask("r2", *(await server.stored()), user_message("Hello"))
    assert (await tab.done("r2"))["outcome"] == "completed"
    assert said(await server.stored()) == ["Go", "May I? ", "Hello", "Hello."]
    for each in ("c1", "c2"):
        part = await stored_part(server, each)
        assert (part["state"], part["errorText"]) == (
            "output-error",
            "The tool call was interrupted before a result was recorded.",
        )
        assert (await seen_state(other, each, "output-error")) == part
    await tab.send(approval("c1"))
    await tab.send(result("c2", "late"))
    await nothing_comes(tab)
    assert await do(tab, lambda agent: agent.approve("c1")) is False
    assert ran == []
    check_prompts(model.requests)
    check_prompts(first.requests)
    model.assert_done()


@requirement("fault:AP-17")
async def test_a_question_in_one_agent_is_none_for_the_others(serve: Serve) -> None:
    ran: list[Any] = []
    model = ScriptedModel([remove(), say("Hello."), say("Gone.")])
    server = await serve(agent(model, remover(ran)))
    tab, elsewhere = await server.tab("here"), await server.tab("there")
    await tab.ask("r1", "Go")
    await tab.done("r1")
    await elsewhere.send(approval("c1"))
    await elsewhere.ask("r1", "Hello")
    await elsewhere.done("r1")
    assert (ran, said(await server.stored("there"))) == ([], ["Hello", "Hello."])
    assert (await stored_part(server, name="here"))["state"] == "approval-requested"
    await tab.send(approval("c1"))
    await continued(tab)
    assert ran == ["x"]


@pytest.mark.parametrize("way", ["save_messages", "continue_last_turn", "regenerate", "chat"])
async def test_any_other_turn_takes_the_place_of_the_decision_as_well(serve: Serve, way: str) -> None:
    ran: list[Any] = []
    model = ScriptedModel([[say("May I? "), remove()], say("Else.")])
    server = await serve(doing(model, remover(ran)))
    tab = await server.tab()
    question = user_message("Go")
    await tab.ask("r1", question)
    await tab.done("r1")
    if way == "regenerate":
        await tab.ask("r2", question, trigger="regenerate-message")
        await tab.done("r2")
    else:
        args = () if way == "continue_last_turn" else ("More",)
        assert (await do(tab, lambda agent: getattr(agent, way)(*args))).status == "completed"
    await tab.send(approval("c1"))
    await nothing_comes(tab)
    assert ran == []
    check_prompts(model.requests)
    model.assert_done()


async def test_a_message_that_is_withdrawn_before_its_turn_leaves_the_decision_to_go_on(serve: Serve) -> None:
    ran: list[Any] = []
    gate = Gate()
    model = ScriptedModel([[remove(), call("slow", id="c2")], say("Both.")])
    server = await serve(agent(model, remover(ran), slowly(gate)))
    tab = await server.tab()
    first = user_message("Go", "u1")
    await tab.ask("r1", first)
    await gate.reached()
    await asked(tab)
    await tab.ask("r2", first, user_message("Hello", "u2"))
    await tab.send(approval("c1"))
    await tab.cancel("r2")
    await tab.done("r2")
    gate.open()
    await continued(tab)
    assert ran == ["x"]
    check_prompts(model.requests)
    model.assert_done()


# ── who comes and goes ──────────────────────────────────────────────


@requirement("fault:AP-14")
@pytest.mark.parametrize("answer", ["one before, one after the restart", "both after"])
async def test_questions_survive_a_restart_and_their_answers_too(serve: Serve, answer: str) -> None:
    ran: list[Any] = []
    first = ScriptedModel([[remove("a", "c1"), remove("b", "c2")]])
    server = await serve(agent(first, remover(ran)))
    tab = await server.tab()
    await tab.ask("r1", "Go")
    await tab.done("r1")
    if answer.startswith("one"):
        await tab.send(approval("c1", input={"path": "A"}))
        await seen_state(tab, "c1", "approval-responded")
    before = await server.stored()
    await server.stop()
    second = ScriptedModel([say("Done.")])
    server = await serve(agent(second, remover(ran)))
    assert await server.stored() == before
    tab = await server.tab()
    greeting: list[Frame] = await tab.opened()
    assert greeting[0]["type"] == "cf_agent_chat_messages", "no banner, no turn"
    await nothing_comes(tab)
    if not answer.startswith("one"):
        await tab.send(approval("c1"))
    await tab.send(approval("c2"))
    await continued(tab)
    assert sorted(ran) == (["A", "b"] if answer.startswith("one") else ["a", "b"])
    check_prompts(second.requests)
    second.assert_done()


async def test_the_one_who_decides_may_leave_at_once(serve: Serve) -> None:
    ran: list[Any] = []
    gate = Gate()
    model = ScriptedModel([remove(), [say("Go"), pause(gate), say("ne.")]])
    server = await serve(agent(model, remover(ran)))
    tab, other = await server.tab(), await server.tab()
    await tab.ask("r1", "Go")
    await tab.done("r1")
    await tab.send(approval("c1"))
    await tab.close()
    await gate.reached()
    gate.open()
    await continued(other)
    assert ran == ["x"]
    assert said(await server.stored())[1] == "Gone."


async def test_a_tab_that_comes_while_the_approved_call_runs_sees_it_come_to_its_end(serve: Serve) -> None:
    gate = Gate()

    @tool(needs_approval=True)
    async def remove(path: str) -> str:
        """Remove."""
        await gate.passed()
        return "gone"

    model = ScriptedModel([call("remove", {"path": "x"}, id="c1"), say("Done.")])
    server = await serve(agent(model, remove))
    tab = await server.tab()
    await tab.ask("r1", "Go")
    await tab.done("r1")
    await tab.send(approval("c1"))
    await gate.reached()
    assert (await stored_part(server))["state"] == "approval-responded"
    await tab.close()
    late = await server.tab()
    offer = await late.seen(lambda f: f["type"] == "cf_agent_stream_resuming")
    await late.ack(offer["id"])
    gate.open()
    await continued(late)
    await _shows(late, server)


async def _shows(tab: Tab, server: Serving) -> None:
    last = [f for f in tab.frames if f["type"] == "cf_agent_chat_messages"][-1]["messages"]
    assert last == await server.stored()
    assert part_of(last, "c1")["output"] == "gone"
