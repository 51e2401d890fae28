"""A person approves or denies a call, from one of several tabs, in time or too late."""

import itertools
from typing import Any

import pytest

from perdure import client_tool, tool
from perdure.testing import Gate, ScriptedModel, call, say
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
from tests.support import Frame, Serve, Tab, agent, chunks_of, text_of, user_message

pytestmark = pytest.mark.anyio


def remove(path: str = "x", id: str = "c1") -> Any:
    return call("remove", {"path": path}, id=id)


def updates(tab: Tab) -> list[Frame]:
    return [frame for frame in tab.frames if frame["type"] == "cf_agent_message_updated"]


# ── yes and no ──────────────────────────────────────────────────────


@requirement("fault:AP-01", "fault:AP-20", "protocol:68", "engine:66", "engine:67", "engine:90")
async def test_an_approved_call_runs_once_and_every_tab_sees_each_state(serve: Serve) -> None:
    ran: list[Any] = []
    model = ScriptedModel([[say("Let me. "), remove()], say("Gone.")])
    server = await serve(agent(model, remover(ran)))
    tabs = [await server.tab() for _ in range(3)]
    await tabs[0].ask("r1", "Remove x")
    done = await tabs[0].done("r1")
    assert done["outcome"] == "completed"
    asked = await stored_part(server)
    assert (asked["state"], asked["input"]) == ("approval-requested", {"path": "x"})
    await tabs[1].send(approval("c1"))
    for tab in tabs:
        part = await seen_state(tab, "c1", "approval-responded")
        assert part["approval"] == {"id": asked["approval"]["id"], "approved": True}
        end = await continued(tab)
        assert (end["outcome"], end["continuation"]) == ("completed", True)
        if tab is not tabs[1]:
            chunks = chunks_of(tab.frames, end["id"])
            assert [c["type"] for c in chunks if c["type"] != "start-step"][:2] == ["start", "tool-output-available"]
            assert "messageId" not in chunks[0]
            assert text_of(chunks) == "Gone."
            assert all(f["continuation"] is True for f in tab.of(end["id"]))
        shown = [f for f in tab.frames if f["type"] == "cf_agent_chat_messages"][-1]["messages"]
        assert shown == await server.stored()
    assert ran == ["x"]
    assert said(await server.stored()) == ["Remove x", "Let me. Gone."]
    assert (await stored_part(server))["output"] == {"removed": "x"}
    check_prompts(model.requests)
    model.assert_done()


@requirement("fault:AP-02", "fault:AP-20", "fault:MT-07", "protocol:75", "engine:69")
@pytest.mark.parametrize("reason", [None, "Not that one."])
async def test_a_denied_call_never_runs_and_the_model_is_told_so(serve: Serve, reason: str | None) -> None:
    ran: list[Any] = []
    model = ScriptedModel([remove(), say("Kept.")])
    server = await serve(agent(model, remover(ran)))
    tabs = [await server.tab() for _ in range(3)]
    await tabs[0].ask("r1", "Remove x")
    await tabs[0].done("r1")
    await tabs[1].send(approval("c1", approved=False, **({} if reason is None else {"reason": reason})))
    said_why = {} if reason is None else {"reason": reason}
    for tab in tabs:
        part = await seen_state(tab, "c1", "output-denied")
        assert part["approval"] == {"id": part["approval"]["id"], "approved": False, **said_why}
        end = await continued(tab)
        assert not [c for c in chunks_of(tab.frames, end["id"]) if c["type"].startswith("tool-output")]
        last = [f for f in tab.frames if f["type"] == "cf_agent_chat_messages"][-1]["messages"]
        assert [message["role"] for message in last] == ["user", "assistant"]
        assert said(last) == ["Remove x", "Kept."]
    assert ran == []
    part = await stored_part(server)
    assert (part["state"], "output" in part) == ("output-denied", False)
    assert part_of(model.requests[1].messages, "c1") == part
    check_prompts(model.requests)
    model.assert_done()


@requirement("engine:70", "fault:AP-13")
async def test_an_approved_tool_that_raises_is_an_error_and_the_model_goes_on(serve: Serve) -> None:
    @tool(needs_approval=True)
    async def remove(path: str) -> None:
        """Remove."""
        raise OSError("disk full")

    model = ScriptedModel([call("remove", {"path": "x"}, id="c1"), say("I could not.")])
    server = await serve(agent(model, remove))
    tab, other = await server.tab(), await server.tab()
    await tab.ask("r1", "Remove x")
    await tab.done("r1")
    await tab.send(approval("c1"))
    end = await continued(other)
    assert end["outcome"] == "completed"
    chunk = next(c for c in chunks_of(other.frames, end["id"]) if c["type"] == "tool-output-error")
    assert chunk["errorText"] == "disk full"
    part = await stored_part(server)
    assert (part["state"], part["errorText"]) == ("output-error", "disk full")
    assert part["approval"]["approved"] is True
    assert "interrupted" not in str(await server.stored())
    assert said(await server.stored())[1] == "I could not."
    check_prompts(model.requests)


@requirement("fault:AP-04")
async def test_a_question_is_there_after_a_reload(serve: Serve) -> None:
    model = ScriptedModel([remove(), say("Gone.")])
    server = await serve(agent(model, remover([])))
    first = await server.tab()
    await first.ask("r1", "Remove x")
    request = await first.seen(lambda f: "tool-approval-request" in f.get("body", ""))
    first.drop()
    assert request["id"] == "r1"
    again = await server.tab()
    await again.done("r1") if await _streams(again) else None
    part = await stored_part(server)
    assert part["state"] == "approval-requested"
    assert part["approval"]["id"]
    third = await server.tab()
    greeting = (await third.opened())[0]
    assert part_of(greeting["messages"], "c1") == part
    await third.send(approval("c1"))
    await continued(third)
    model.assert_done()


async def _streams(tab: Tab) -> bool:
    """Whether the turn was still being ended when the tab came."""
    greeting = await tab.seen(lambda f: f["type"] in {"cf_agent_stream_resuming", "cf_agent_chat_messages"})
    if greeting["type"] == "cf_agent_stream_resuming":
        await tab.ack(greeting["id"])
        return True
    return False


@requirement("protocol:69", "engine:77")
async def test_a_decision_without_auto_continue_is_stored_and_starts_nothing(serve: Serve) -> None:
    ran: list[Any] = []
    model = ScriptedModel([remove(), say("Hello again.")])
    server = await serve(agent(model, remover(ran)))
    tab = await server.tab()
    await tab.ask("r1", "Remove x")
    await tab.done("r1")
    await tab.send(approval("c1", go_on=False))
    await seen_state(tab, "c1", "approval-responded")
    await nothing_comes(tab)
    assert ran == []
    await tab.ask("r2", *(await server.stored()), user_message("Hello"))
    await tab.done("r2")
    part = await stored_part(server)
    assert (part["state"], ran) == ("output-error", [])
    assert part["errorText"] == "The tool call was approved but did not run before the next turn started."
    check_prompts(model.requests)


# ── decisions on nothing ────────────────────────────────────────────


@requirement("fault:AP-16", "engine:66")
@pytest.mark.parametrize("approved", [True, False])
async def test_a_decision_on_something_that_does_not_wait_for_one_changes_nothing(serve: Serve, approved: bool) -> None:
    ran: list[Any] = []
    calls = [remove("small", "c1"), call("locate", id="c2"), call("remove", {"path": "large"}, id="c3")]
    model = ScriptedModel([calls, say("Done.")])
    tools = [remover(ran, lambda path: path == "large"), client_tool("locate")]
    server = await serve(agent(model, *tools))
    tab = await server.tab()
    await tab.ask("r1", "Go")
    await tab.done("r1")
    before = await server.stored()
    for unknown in ("c1", "c2", "nothing"):
        await tab.send(approval(unknown, approved))
    await nothing_comes(tab)
    assert await server.stored() == before
    assert updates(tab) == []
    await tab.send(approval("c3", approved=False))
    await tab.send(result("c2", "here"))
    await continued(tab)
    after, shown = await server.stored(), len(updates(tab))
    for settled in ("c1", "c2", "c3"):
        await tab.send(approval(settled, approved))
    await nothing_comes(tab)
    assert await server.stored() == after
    assert len(updates(tab)) == shown
    assert ran == ["small"]
    model.assert_done()


@requirement("fault:AP-16")
async def test_a_decision_on_a_chat_without_messages_changes_nothing(serve: Serve) -> None:
    server = await serve(agent(ScriptedModel([]), remover([])))
    tab = await server.tab()
    await tab.send(approval("c1"))
    await nothing_comes(tab)
    assert await server.stored() == []


@requirement("engine:66")
@pytest.mark.parametrize("first", [True, False])
async def test_of_two_tabs_that_decide_the_first_wins(serve: Serve, first: bool) -> None:
    ran: list[Any] = []
    model = ScriptedModel([remove(), say("So be it.")])
    server = await serve(agent(model, remover(ran)))
    tab, other = await server.tab(), await server.tab()
    await tab.ask("r1", "Remove x")
    await tab.done("r1")
    await tab.send_together(approval("c1", first), approval("c1", not first))
    await other.send(approval("c1", not first))
    await continued(other)
    await nothing_comes(other)
    assert ran == (["x"] if first else [])
    part = await stored_part(server)
    assert part["state"] == ("output-available" if first else "output-denied")
    assert part["approval"]["approved"] is first
    assert [p["state"] for f in updates(other) for p in [part_of([f["message"]], "c1")]] == [
        "approval-responded" if first else "output-denied"
    ]
    model.assert_done()


@requirement("protocol:67", "engine:74")
@pytest.mark.parametrize("approved_before", [False, True])
async def test_a_page_may_give_the_result_of_a_call_that_was_asked_about(serve: Serve, approved_before: bool) -> None:
    ran: list[Any] = []
    model = ScriptedModel([remove(), say("Fine.")])
    server = await serve(agent(model, remover(ran)))
    tab = await server.tab()
    await tab.ask("r1", "Remove x")
    await tab.done("r1")
    if approved_before:
        await tab.send(approval("c1", go_on=False))
    await tab.send(result("c1", "done by hand"))
    await continued(tab)
    part = await stored_part(server)
    assert (part["state"], part["output"], part["preliminary"]) == ("output-available", "done by hand", False)
    assert part["approval"]["id"]
    assert ran == []
    check_prompts(model.requests)
    model.assert_done()


# ── in mid-stream ───────────────────────────────────────────────────


@requirement("engine:75", "engine:82", "fault:AP-09")
@pytest.mark.parametrize("approved", [True, False])
async def test_a_decision_while_the_turn_still_streams_is_kept_and_taken_up_at_its_end(
    serve: Serve, approved: bool
) -> None:
    ran: list[Any] = []
    gate = Gate()

    @tool
    async def slow() -> str:
        """Slow."""
        await gate.passed()
        return "at last"

    model = ScriptedModel([[remove(), call("slow", id="c2")], say("Both.")])
    server = await serve(agent(model, remover(ran), slow))
    tab = await server.tab()
    await tab.ask("r1", "Go")
    await tab.seen(lambda f: "tool-approval-request" in f.get("body", ""))
    await gate.reached()
    await tab.send(approval("c1", approved))
    await seen_state(tab, "c1", "approval-responded" if approved else "output-denied")
    assert (ran, len(model.requests)) == ([], 1)
    probe = await tab.probe("meanwhile")
    assert probe["type"] != "cf_agent_stream_resume_none"
    gate.open()
    await continued(tab)
    assert ran == (["x"] if approved else [])
    assert (await stored_part(server))["state"] == ("output-available" if approved else "output-denied")
    assert (await stored_part(server, "c2"))["output"] == "at last"
    check_prompts(model.requests)
    model.assert_done()


# ── several in one step ─────────────────────────────────────────────

ANSWERS = {
    "yes": approval("yes"),
    "no": approval("no", approved=False, reason="No."),
    "page": result("page", "here"),
    "failed": result("failed", state="output-error", errorText="no GPS", go_on=False),
}


@requirement("fault:AP-09", "engine:71", "engine:78", "engine:83", "protocol:70", "protocol:71")
@pytest.mark.parametrize("order", list(itertools.permutations(ANSWERS)), ids="-".join)
async def test_the_conversation_goes_on_once_after_the_last_answer_in_any_order(
    serve: Serve, order: tuple[str, ...]
) -> None:
    ran: list[Any] = []
    calls = [remove("y", "yes"), call("locate", id="page"), remove("n", "no"), call("locate", id="failed")]
    model = ScriptedModel([calls, say("All done.")])
    server = await serve(agent(model, remover(ran), client_tool("locate")))
    tab = await server.tab()
    await tab.ask("r1", "Go")
    await tab.done("r1")
    for number, answer in enumerate(order, 1):
        await tab.send(ANSWERS[answer])
        await tab.settle()
        assert len(updates(tab)) == number
        assert (len(model.requests), ran) == (1, [])
    await continued(tab)
    await nothing_comes(tab)
    assert ran == ["y"]
    states = {each: (await stored_part(server, each))["state"] for each in ANSWERS}
    assert states == {
        "yes": "output-available",
        "no": "output-denied",
        "page": "output-available",
        "failed": "output-error",
    }
    assert said(await server.stored())[1] == "All done."
    check_prompts(model.requests)
    model.assert_done()


async def test_several_approved_calls_run_side_by_side_before_the_model_is_asked(serve: Serve) -> None:
    gates = {"a": Gate(), "b": Gate()}

    @tool(needs_approval=True)
    async def remove(path: str) -> str:
        """Remove."""
        await gates[path].passed()
        return f"{path} is gone"

    model = ScriptedModel([[call("remove", {"path": "a"}, id="a"), call("remove", {"path": "b"}, id="b")], say("Ok.")])
    server = await serve(agent(model, remove))
    tab, other = await server.tab(), await server.tab()
    await tab.ask("r1", "Go")
    await tab.done("r1")
    await tab.send(approval("a"))
    await tab.send(approval("b"))
    await gates["a"].reached()
    await gates["b"].reached()
    gates["b"].open()
    await other.seen(lambda f: "b is gone" in f.get("body", ""))
    assert len(model.requests) == 1
    gates["a"].open()
    await continued(tab)
    assert [(await stored_part(server, each))["output"] for each in "ab"] == ["a is gone", "b is gone"]
    model.assert_done()


async def test_a_continuation_may_ask_again_in_the_same_message(serve: Serve) -> None:
    ran: list[Any] = []
    model = ScriptedModel([remove("a", "c1"), [say("Next. "), remove("b", "c2")], say("Done.")])
    server = await serve(agent(model, remover(ran)))
    tab = await server.tab()
    await tab.ask("r1", "Go")
    await tab.done("r1")
    await tab.send(approval("c1"))
    await continued(tab)
    assert (await stored_part(server, "c2"))["state"] == "approval-requested"
    assert ran == ["a"]
    await tab.send(approval("c2", approved=False))
    await continued(tab, 2)
    user, answer = await server.stored()
    assert said([user, answer]) == ["Go", "Next. Done."]
    assert ran == ["a"]
    check_prompts(model.requests)
    model.assert_done()
