"""What tabs are sent of a turn that goes on, also when nothing comes of it."""

import asyncio
from typing import Any

import pytest

from perdure import Think
from perdure.testing import Gate, ScriptedModel, call, finish, pause, say
from tests.agent.calls import said
from tests.requirements import requirement
from tests.server.answering import (
    ask_for_calls,
    continued,
    is_idle,
    is_update,
    outputs,
)
from tests.support import (
    ErrorLog,
    Serve,
    agent,
    chunks_of,
    text_of,
    tool_result,
    user_message,
)

pytestmark = pytest.mark.anyio


# ── who is told what ──────────────────────────────────────────────────


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


# ── when nothing comes of it ──────────────────────────────────────────


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
