"""Turns that go on after answers: when they come, how many, and what they are."""

from typing import Any

import pytest

from perdure import Think, tool
from perdure.testing import Gate, ScriptedModel, call, pause, say
from tests.agent.calls import said, tool_parts
from tests.requirements import requirement
from tests.server.answering import (
    ask_for_calls,
    continuations,
    continued,
    is_idle,
    is_update,
    outputs,
)
from tests.support import (
    Serve,
    agent,
    approval,
    chunks_of,
    offer,
    tool_failure,
    tool_result,
    user_message,
)

pytestmark = pytest.mark.anyio


# ── when it comes ─────────────────────────────────────────────────────


@requirement("protocol:69", "engine:77", "fault:CC-08")
async def test_a_result_that_asks_for_it_goes_on_under_an_id_of_the_server(serve: Serve) -> None:
    contexts: list[Any] = []

    def before_turn(self: Think, ctx: Any) -> None:
        contexts.append((ctx.request_id, ctx.continuation, ctx.trigger))

    moves = [call("a", id="c1")]
    model = ScriptedModel([moves, say("Done."), [call("pay", id="c2")], say("Paid."), say("Again.")])

    @tool(needs_approval=True)
    def pay() -> str:
        """Pay."""
        return "paid"

    server = await serve(agent(model, pay, before_turn=before_turn))
    tab = await ask_for_calls(server, "a")
    await tab.send(tool_result("c1"))
    first = await continued(tab)
    await tab.ask("r2", *(await server.stored()), user_message("Pay"))
    await tab.done("r2")
    await tab.send(approval("c2"))
    second = await continued(tab, 2)
    await tab.ask("r3", *(await server.stored())[:-1], trigger="regenerate-message")
    await tab.done("r3")
    assert len({first, second, "r1", "r2"}) == 4
    assert contexts == [
        ("r1", False, "ws-chat"),
        (first, True, "auto-continuation"),
        ("r2", False, "ws-chat"),
        (second, True, "auto-continuation"),
        ("r3", False, "ws-chat"),
    ]


@requirement("protocol:69", "engine:77")
async def test_a_result_that_does_not_ask_for_it_is_stored_and_that_is_all(serve: Serve) -> None:
    model = ScriptedModel([call("a", id="c1")])
    server = await serve(agent(model))
    tab = await ask_for_calls(server, "a")
    await tab.send(tool_result("c1", "here", go_on=False))
    await tab.seen(is_update)
    assert await is_idle(tab)
    assert await outputs(server) == ["here"]
    assert len(model.requests) == 1


@requirement("protocol:70", "engine:78")
@pytest.mark.parametrize("order", [("c1", "c2"), ("c2", "c1")])
async def test_two_calls_answered_apart_are_followed_by_one_turn_that_sees_both(
    serve: Serve, order: tuple[str, str]
) -> None:
    contexts: list[bool] = []
    model = ScriptedModel([[call("tz", id="c1"), call("clip", id="c2")], say("Done.")])
    server = await serve(agent(model, before_turn=lambda self, ctx: contexts.append(ctx.continuation)))
    tab = await ask_for_calls(server, "tz", "clip")
    await tab.send(tool_result(order[0], f"of {order[0]}"))
    await tab.seen(is_update)
    await tab.settle()
    assert len(model.requests) == 1
    await tab.send(tool_result(order[1], f"of {order[1]}"))
    await continued(tab)
    await tab.settle()
    assert [part["output"] for part in tool_parts(model.requests[1].messages[1])] == ["of c1", "of c2"]
    assert contexts == [False, True]
    assert len(model.requests) == 2
    assert len(continuations(tab)) == 1


@requirement("protocol:70", "engine:78")
async def test_results_of_many_tabs_at_once_are_followed_by_one_turn(serve: Serve) -> None:
    calls = [call("a", id=f"c{n}") for n in range(12)]
    model = ScriptedModel([calls, say("Done.")])
    server = await serve(agent(model))
    tabs = [await ask_for_calls(server, "a"), await server.tab(), await server.tab()]
    for n in (7, 0, 11, 3, 8, 1, 2, 10, 9, 6, 5, 4):
        tabs[n % 3].write_frame(tool_result(f"c{n}", n))
    for tab in tabs:
        await continued(tab)
        await tab.settle()
        assert len([frame for frame in tab.frames if is_update(frame)]) == 12
        assert len(continuations(tab)) == 1
    assert await outputs(server) == list(range(12))
    assert len(model.requests) == 2


@requirement("protocol:71", "engine:83")
async def test_an_error_that_asks_for_nothing_releases_a_batch_in_which_another_asked(serve: Serve) -> None:
    model = ScriptedModel([[call("a", id="c1"), call("a", id="c2")], say("Done.")])
    server = await serve(agent(model))
    tab = await ask_for_calls(server, "a")
    await tab.send(tool_result("c1"))
    await tab.seen(is_update)
    pending = await tab.probe("p")
    assert (pending["type"], len(model.requests)) == ("cf_agent_stream_pending", 1)
    await tab.send(tool_failure("c2", "no"))
    assert await continued(tab) == pending["id"]
    assert await outputs(server) == ["ok", "no"]


@requirement("protocol:72", "engine:83", "fault:CT-07")
async def test_errors_alone_continue_nothing(serve: Serve) -> None:
    model = ScriptedModel([[call("a", id="c1"), call("a", id="c2")]])
    server = await serve(agent(model))
    tab = await ask_for_calls(server, "a")
    await tab.send_together(tool_failure("c1", "no"), tool_failure("c2", "no"))
    await tab.settle()
    assert await is_idle(tab)
    assert len(model.requests) == 1


# ── while the turn still streams ──────────────────────────────────────


@requirement("protocol:73", "engine:80", "engine:82")
async def test_a_result_in_mid_stream_goes_into_the_message_and_the_turn_goes_on_after_its_end(serve: Serve) -> None:
    gate = Gate()
    model = ScriptedModel([[call("a", id="c1"), say("And then ", "more "), pause(gate), say("words.")], say(" Done.")])
    server = await serve(agent(model))
    tab, other = await server.tab(), await server.tab()
    await tab.ask("r1", "Go", clientTools=offer("a"))
    await gate.reached()
    await tab.send(tool_result("c1", "here"))
    updated = await other.seen(is_update)
    assert tool_parts(updated["message"])[0]["output"] == "here"
    assert said(await server.stored()) == ["Go"]
    assert not continuations(other)
    gate.open()
    continuation = await continued(tab)
    for each in (tab, other):
        await continued(each)
        await each.settle()
        chunks = chunks_of(each.frames, "r1")
        assert [c["output"] for c in chunks if c["type"] == "tool-output-available"] == ["here"]
        assert len([frame for frame in each.frames if is_update(frame)]) == 1
        done = each.frames.index(await each.done("r1"))
        first = each.frames.index(next(frame for frame in each.frames if frame.get("id") == continuation))
        assert done < first
    assert said(await server.stored()) == ["Go", "And then more words. Done."]
    assert await outputs(server) == ["here"]
    assert len(model.requests) == 2


@requirement("engine:81")
async def test_a_call_that_the_same_stream_makes_later_is_waited_for(serve: Serve) -> None:
    gate = Gate()
    model = ScriptedModel([[call("a", id="c1"), pause(gate), call("b", id="c2")], say("Done.")])
    server = await serve(agent(model))
    tab = await server.tab()
    await tab.ask("r1", "Go", clientTools=offer("a", "b"))
    await gate.reached()
    await tab.send(tool_result("c1", "early"))
    await tab.seen(is_update)
    gate.open()
    await tab.done("r1")
    assert [part["state"] for part in tool_parts((await server.stored())[1])] == ["output-available", "input-available"]
    assert (await tab.probe("p"))["type"] == "cf_agent_stream_pending"
    assert len(model.requests) == 1
    await tab.send(tool_result("c2", "late"))
    await continued(tab)
    assert [part["output"] for part in tool_parts(model.requests[1].messages[1])] == ["early", "late"]
    assert len(model.requests) == 2


@requirement("engine:82")
async def test_an_error_in_mid_stream_is_stored_and_alone_it_continues_nothing(serve: Serve) -> None:
    gate = Gate()
    model = ScriptedModel([[call("a", id="c1"), pause(gate), say("Well.")]])
    server = await serve(agent(model))
    tab = await server.tab()
    await tab.ask("r1", "Go", clientTools=offer("a"))
    await gate.reached()
    await tab.send(tool_failure("c1", "no"))
    await tab.seen(is_update)
    gate.open()
    await tab.done("r1")
    assert await outputs(server) == ["no"]
    assert await is_idle(tab)


async def test_a_call_that_a_hook_of_the_turns_end_sees_open_is_answered_before_the_hook_returns(serve: Serve) -> None:
    gate = Gate()
    model = ScriptedModel([call("a", id="c1"), say("Done.")])

    async def on_chat_response(self: Think, response: Any) -> None:
        if not response.continuation:
            await gate.passed()

    server = await serve(agent(model, on_chat_response=on_chat_response))
    tab = await ask_for_calls(server, "a")
    await gate.reached()
    await tab.send(tool_result("c1"))
    await tab.seen(is_update)
    gate.open()
    await continued(tab)
    assert said(await server.stored()) == ["Go", "Done."]


# ── what it is ────────────────────────────────────────────────────────


@requirement("protocol:77", "fault:CT-15")
async def test_every_hop_extends_the_one_answer(serve: Serve) -> None:
    steps = [call("a", id="c1"), [say("more "), call("b", id="c2")], say("end")]
    server = await serve(agent(ScriptedModel(steps)))
    tab, other = await ask_for_calls(server, "a", "b"), await server.tab()
    await other.opened()
    await tab.send(tool_result("c1", 1))
    await continued(other)
    await tab.send(tool_result("c2", 2))
    second = await continued(other, 2)
    stored = await server.stored()
    assert [message["role"] for message in stored] == ["user", "assistant"]
    assert [part["type"] for part in stored[1]["parts"] if part["type"] != "step-start"] == [
        "tool-a",
        "text",
        "tool-b",
        "text",
    ]
    first, again = continuations(other)
    assert again == second
    for continuation in (first, second):
        frames = other.of(continuation)
        assert all(frame["continuation"] is True for frame in frames)
        chunks = chunks_of(frames, continuation)
        assert [c for c in chunks if "messageId" in c] == []
        assert chunks[0] == {"type": "start"}
        assert [frame["seq"] for frame in frames if "seq" in frame] == list(range(len(chunks)))
        assert frames[-1]["outcome"] == "completed"
    snapshots = [frame["messages"] for frame in other.frames if frame["type"] == "cf_agent_chat_messages"]
    assert snapshots[-1] == stored


@requirement("fault:MT-07")
async def test_a_denied_call_is_never_behind_what_follows_it(serve: Serve) -> None:
    @tool(needs_approval=True)
    def pay() -> str:
        """Pay."""
        return "paid"

    server = await serve(agent(ScriptedModel([call("pay", id="c1"), say("As you like."), say("Next.")]), pay))
    tab, other = await server.tab(), await server.tab()
    await other.opened()
    await tab.ask("r1", "Pay")
    await tab.done("r1")
    await tab.send(approval("c1", approved=False))
    await continued(other)
    await tab.ask("r2", *(await server.stored()), user_message("And"))
    await other.done("r2")
    shown: list[list[str]] = []
    for frame in other.frames:
        if frame["type"] == "cf_agent_chat_messages" and not frame.get("connect"):
            parts = [part for message in frame["messages"] for part in message["parts"] if part["type"] != "step-start"]
            shown.append([part.get("text") or part["state"] for part in parts])
    assert shown == [
        ["Pay"],
        ["Pay", "approval-requested"],
        ["Pay", "output-denied", "As you like."],
        ["Pay", "output-denied", "As you like.", "And"],
        ["Pay", "output-denied", "As you like.", "And", "Next."],
    ]
