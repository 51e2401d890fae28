"""Turns that go on after answers: when they come, how many, with what, and what every tab is sent."""

import asyncio
from typing import Any

import pytest

from perdure import Debounce, ModelUnreachable, Think, tool
from perdure.testing import Gate, ScriptedModel, call, fail, finish, pause, say
from tests.agent.calls import said, tool_parts
from tests.requirements import requirement
from tests.support import (
    Doing,
    ErrorLog,
    Frame,
    Page,
    Serve,
    Serving,
    Tab,
    agent,
    approval,
    chunks_of,
    do,
    offer,
    text_of,
    tool_failure,
    tool_result,
    user_message,
)

pytestmark = pytest.mark.anyio


def is_update(frame: Frame) -> bool:
    return frame["type"] == "cf_agent_message_updated"


def of_continuations(tab: Tab) -> list[str]:
    """The ids of the continuations that a tab was sent frames of, in order."""
    return list(dict.fromkeys(frame["id"] for frame in tab.frames if frame.get("continuation")))


async def continued(tab: Tab, count: int = 1) -> str:
    """Returns when so many continuations are over; gives the id of the last."""
    ended: list[str] = []

    def is_last(frame: Frame) -> bool:
        if frame.get("continuation") and frame.get("done"):
            ended.append(frame["id"])
        return len(ended) == count

    return (await tab.seen(is_last))["id"]


async def ask_for_calls(server: Serving, *names: str, request: str = "r1", **body: Any) -> Tab:
    """A tab whose request has ended with open calls of the page's tools."""
    tab = await server.tab()
    await tab.ask(request, "Go", clientTools=offer(*names), **body)
    await tab.done(request)
    return tab


async def outputs(server: Serving) -> list[Any]:
    return [part.get("output", part.get("errorText")) for part in tool_parts((await server.stored())[1])]


async def is_idle(tab: Tab) -> bool:
    """Whether nothing runs or waits."""
    return (await tab.probe("idle?")).get("reason") == "idle"


# ── when it comes ───────────────────────────────────────────────────


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
    start = asyncio.get_running_loop().time()
    await tab.send(tool_result("c1"))
    first = await continued(tab)
    assert asyncio.get_running_loop().time() - start > 0.045
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


@requirement("protocol:70", "engine:78", "fault:CT-01")
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
    await asyncio.sleep(0.3)  # as a page takes its time; the window of 50 ms is long over
    assert len(model.requests) == 1
    await tab.send(tool_result(order[1], f"of {order[1]}"))
    await continued(tab)
    await tab.settle()
    assert [part["output"] for part in tool_parts(model.requests[1].messages[1])] == ["of c1", "of c2"]
    assert contexts == [False, True]
    assert len(model.requests) == 2
    assert len(of_continuations(tab)) == 1


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
        assert len(of_continuations(tab)) == 1
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


# ── while the turn still streams ────────────────────────────────────


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
    assert not of_continuations(other)
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


# ── what it is ──────────────────────────────────────────────────────


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
    first, again = of_continuations(other)
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


# ── who is told what ────────────────────────────────────────────────


@requirement("protocol:78", "engine:89", "fault:CC-01")
@pytest.mark.parametrize("last", [True, False], ids=["the last answer", "an answer before the last"])
async def test_a_probe_right_behind_a_result_is_told_to_wait_for_the_coming_turn(serve: Serve, last: bool) -> None:
    calls = [call("a", id="c1")] if last else [call("a", id="c1"), call("a", id="c2")]
    gate = Gate()
    model = ScriptedModel([calls, [say("o"), pause(gate), say("k")]])
    server = await serve(agent(model))
    tab = await ask_for_calls(server, "a")
    start = len(tab.frames)
    probe = {"type": "cf_agent_stream_resume_request", "probeId": "p1"}
    await tab.send_together(tool_result("c1"), probe)
    pending = await tab.next(lambda frame: frame.get("probeId") == "p1", since=start)
    assert pending["type"] == "cf_agent_stream_pending"
    if not last:
        await tab.send(tool_result("c2"))
    resuming = await tab.next(lambda frame: frame["type"] == "cf_agent_stream_resuming", since=start)
    assert resuming == {"type": "cf_agent_stream_resuming", "id": pending["id"]}
    await tab.ack(pending["id"])
    await tab.settle()
    gate.open()
    await continued(tab)
    assert text_of(chunks_of(tab.frames, pending["id"])) == "ok"
    assert not [kind for kind in tab.kinds(start) if kind == "cf_agent_stream_resume_none"]
    assert len(model.requests) == 2
    none = {"type": "cf_agent_stream_resume_none", "reason": "idle", "probeId": "p2"}
    assert await tab.probe("p2") == none


@requirement("protocol:79", "protocol:80", "engine:90", "fault:CC-03")
async def test_the_tab_that_answered_replays_the_turn_and_the_others_watch_it_live(serve: Serve) -> None:
    gates = [Gate(), Gate()]
    model = ScriptedModel(
        [call("a", id="c1"), [say("one "), pause(gates[0]), say("two "), pause(gates[1]), say("three")]]
    )
    server = await serve(agent(model))
    owner, other = await ask_for_calls(server, "a"), await server.tab()
    await other.opened()
    await owner.send(tool_result("c1"))
    pending = await owner.probe("p")
    continuation = pending["id"]
    assert (await other.probe("b"))["reason"] == "idle", "nothing that it could wait for"
    await other.delta(continuation, "one ")
    await owner.settle()
    assert owner.frames[-1] == {"type": "cf_agent_stream_resuming", "id": continuation}
    assert owner.of(continuation) == [pending, owner.frames[-1]]

    none = await other.probe("b2")
    assert none == {"type": "cf_agent_stream_resume_none", "reason": "continuation-owned", "probeId": "b2"}
    gates[0].open()
    await other.delta(continuation, "two ")
    await owner.settle()
    assert chunks_of(owner.frames, continuation) == [], "its handshake is as it was"
    await owner.ack(continuation)
    await owner.delta(continuation, "two ")
    await owner.settle()
    replayed = [frame for frame in owner.of(continuation) if "seq" in frame]
    assert all(frame["replay"] and frame["continuation"] for frame in replayed)
    assert owner.frames[-1]["replayComplete"]
    gates[1].open()
    for each in (owner, other):
        await continued(each)
        assert text_of(chunks_of(each.frames, continuation)) == "one two three"
    assert len([frame for frame in owner.of(continuation) if frame.get("done")]) == 1


@requirement("protocol:80", "protocol:82", "engine:88")
async def test_a_turn_whose_owner_is_gone_may_be_taken_up_by_whoever_comes(serve: Serve) -> None:
    gate = Gate()
    model = ScriptedModel([call("a", id="c1"), [say("one "), pause(gate), say("two")]])
    server = await serve(agent(model))
    owner, other = await ask_for_calls(server, "a"), await server.tab()
    await other.opened()
    await owner.send_together(tool_result("c1"))
    await other.seen(is_update)
    await owner.close()
    await gate.reached()
    resuming = await other.probe("p")
    assert resuming["type"] == "cf_agent_stream_resuming"
    await other.ack(resuming["id"])
    gate.open()
    await continued(other)
    chunks = [frame["seq"] for frame in other.of(resuming["id"]) if frame.get("replay") and "seq" in frame]
    assert chunks == list(range(len(chunks)))
    assert said(await server.stored()) == ["Go", "one two"]


@requirement("engine:88")
@pytest.mark.parametrize("how", ["close", "drop"])
async def test_an_answer_given_on_the_way_out_is_gone_on_with(serve: Serve, how: str) -> None:
    model = ScriptedModel([call("a", id="c1"), say("Done.")])
    server = await serve(agent(model))
    owner, other = await ask_for_calls(server, "a"), await server.tab()
    await other.opened()
    owner.write_frame(tool_result("c1"))
    if how == "close":
        await owner.close()
    else:
        await other.seen(is_update)
        owner.drop()
    await continued(other)
    assert said(await server.stored()) == ["Go", "Done."]


# ── when nothing comes of it ────────────────────────────────────────


@requirement("protocol:81")
async def test_a_turn_that_never_streams_releases_whoever_waits_for_it(serve: Serve) -> None:
    async def before_turn(self: Think, ctx: Any) -> None:
        if ctx.continuation:
            await gate.passed()

    gate = Gate()
    model = ScriptedModel([call("a", id="c1"), say("Next.")])
    server = await serve(agent(model, before_turn=before_turn))
    tab = await ask_for_calls(server, "a")
    await tab.send(tool_result("c1"))
    pending = await tab.probe("p")
    await gate.reached()
    await tab.cancel(pending["id"])
    end = await tab.done(pending["id"])
    assert (end["outcome"], end["continuation"]) == ("aborted", True)
    none = await tab.seen(lambda frame: frame["type"] == "cf_agent_stream_resume_none")
    assert none == {"type": "cf_agent_stream_resume_none"}
    assert await is_idle(tab)
    await tab.ask("r2", *(await server.stored()), user_message("And"))
    await tab.done("r2")
    assert said(await server.stored()) == ["Go", "", "And", "Next."]


async def test_a_turn_that_fails_before_it_streams_is_offered_to_whoever_waits_for_it(
    serve: Serve, log: ErrorLog
) -> None:
    def before_turn(self: Think, ctx: Any) -> None:
        if ctx.continuation:
            raise RuntimeError("secret")

    server = await serve(agent(ScriptedModel([call("a", id="c1")]), before_turn=before_turn))
    tab, other = await ask_for_calls(server, "a"), await server.tab()
    await tab.send(tool_result("c1"))
    pending = await tab.probe("p")
    await tab.seen(lambda frame: frame["type"] == "cf_agent_stream_resuming" and frame["id"] == pending["id"])
    ended = await other.done(pending["id"])
    assert (ended["error"], "secret" in ended["body"]) == (True, False)
    assert await outputs(server) == ["ok"]
    log.expect("failed")


@requirement("fault:CC-05")
async def test_a_turn_that_says_nothing_ends_and_leaves_nothing(serve: Serve) -> None:
    model = ScriptedModel([call("a", id="c1"), finish(), say("Next.")])
    server = await serve(agent(model))
    tab = await ask_for_calls(server, "a")
    await tab.send(tool_result("c1"))
    await continued(tab)
    stored = await server.stored()
    assert [message["role"] for message in stored] == ["user", "assistant"]
    assert [part["type"] for part in stored[1]["parts"]] == ["step-start", "tool-a"]
    await tab.ask("r2", *stored, user_message("And"))
    await tab.done("r2")
    assert said(await server.stored()) == ["Go", "", "And", "Next."]


@requirement("fault:CC-06")
async def test_a_turn_that_goes_on_is_stopped_by_its_own_id(serve: Serve) -> None:
    gate = Gate()
    deltas = [say("d0 ", "d1 ", "d2 "), pause(gate), say("never")]
    model = ScriptedModel([call("a", id="c1"), deltas, say("Next.")])
    server = await serve(agent(model))
    tab, other = await ask_for_calls(server, "a"), await server.tab()
    await other.opened()
    await tab.send(tool_result("c1"))
    await gate.reached()
    continuation = (await other.seen(lambda frame: '"d2 "' in frame.get("body", "")))["id"]
    await tab.cancel("r1")
    await tab.settle()
    assert model.requests[1].outcome == "open", "the request that it goes back to is over"
    async with asyncio.timeout(1):
        await tab.cancel(continuation)
        assert (await other.done(continuation))["outcome"] == "aborted"
    assert model.requests[1].outcome == "closed"
    assert said(await server.stored()) == ["Go", "d0 d1 d2 "]
    await tab.ask("r2", *(await server.stored()), user_message("And"))
    await tab.done("r2")
    assert said(await server.stored()) == ["Go", "d0 d1 d2 ", "And", "Next."]


@requirement("fault:CC-07")
@pytest.mark.parametrize("when", ["in the window", "while it is prepared", "while it streams"])
async def test_a_clear_takes_the_coming_turn_with_it(serve: Serve, when: str) -> None:
    prepared, streaming = Gate(), Gate()

    async def before_turn(self: Think, ctx: Any) -> None:
        if ctx.continuation and when == "while it is prepared":
            await prepared.passed()

    model = ScriptedModel([call("a", id="c1"), [say("gone"), pause(streaming)], say("New.")])
    if when != "while it streams":
        model = ScriptedModel([call("a", id="c1"), say("New.")])
    server = await serve(agent(model, before_turn=before_turn))
    tab, other = await ask_for_calls(server, "a"), await server.tab()
    await other.opened()
    if when == "in the window":
        await tab.send_together(
            tool_result("c1"),
            {"type": "cf_agent_stream_resume_request", "probeId": "p"},
            {"type": "cf_agent_chat_clear"},
        )
    else:
        await tab.send(tool_result("c1"))
        await (prepared if when == "while it is prepared" else streaming).reached()
        await other.clear()
    if when == "while it streams":
        end = await tab.seen(lambda frame: frame.get("continuation", False) and frame.get("done") is True)
        assert end["outcome"] in {"aborted", "skipped"}
    else:
        none = await tab.seen(lambda frame: frame["type"] == "cf_agent_stream_resume_none")
        assert none == {"type": "cf_agent_stream_resume_none"}
    prepared.open()
    streaming.open()
    await tab.settle()
    assert await server.stored() == []
    await tab.ask("r2", "New")
    await tab.done("r2")
    assert said(await server.stored()) == ["New", "New."]
    model.assert_done()


# ── other turns that come between ───────────────────────────────────


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
    assert not of_continuations(tab)
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


# ── a page that goes on itself ──────────────────────────────────────


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
