"""What becomes of calls otherwise than by a chunk reaches those who build the message out of its stream."""

from __future__ import annotations

import json
from typing import Any

import pytest

from perdure import client_tool, tool
from perdure.errors import ModelUnreachable
from perdure.testing import Gate, ScriptedModel, call, fail, pause, say
from tests.support import Frame, Serve, Tab, agent

pytestmark = pytest.mark.anyio

INTERRUPTED = "The tool call was interrupted before a result was recorded."


def is_update(frame: Frame) -> bool:
    return frame["type"] == "cf_agent_message_updated"


def part_of(message: Any, name: str) -> Any:
    """The part of a call."""
    return next(part for part in message["parts"] if part["type"] == f"tool-{name}")


async def asked_about(tab: Tab) -> str:
    """Id of the call that asks whether it may run."""
    frame = await tab.seen(lambda frame: "tool-approval-request" in frame.get("body", ""))
    return json.loads(frame["body"])["toolCallId"]


async def shown_last(tab: Tab, request: str) -> Any:
    """The message as it is shown after the end of a request."""
    done = await tab.done(request)
    return (await tab.next(is_update, since=tab.frames.index(done)))["message"]


async def test_a_call_that_is_stopped_is_shown_as_interrupted_after_the_end(serve: Serve) -> None:
    gate = Gate()

    @tool
    async def simmer() -> None:
        await gate.passed()

    server = await serve(agent(ScriptedModel([call("simmer", {})]), simmer))
    tab, other = await server.tab(), await server.tab()
    await tab.ask("r1", "Soup")
    await gate.reached()
    await other.cancel("r1")
    for each in (tab, other):
        message = await shown_last(each, "r1")
        part = part_of(message, "simmer")
        assert (part["state"], part["errorText"]) == ("output-error", INTERRUPTED)
        assert message == (await server.stored())[-1]


@pytest.mark.parametrize("approved", [True, False])
async def test_a_decision_in_mid_stream_is_shown_again_after_the_end(serve: Serve, approved: bool) -> None:
    gate = Gate()

    @tool
    async def simmer() -> None:
        await gate.passed()

    @tool(needs_approval=True)
    async def serve_it() -> str:
        return "served"

    model = ScriptedModel([[call("simmer", {}), call("serve_it", {})], say("Well.")])
    server = await serve(agent(model, simmer, serve_it))
    tab, other = await server.tab(), await server.tab()
    await tab.ask("r1", "Soup")
    await gate.reached()
    decision = {"type": "cf_agent_tool_approval", "approved": approved, "reason": "Because."}
    await other.send({**decision, "toolCallId": await asked_about(other)})
    await tab.seen(is_update)
    gate.open()
    for each in (tab, other):
        decided = part_of(await shown_last(each, "r1"), "serve_it")
        assert decided["state"] == ("approval-responded" if approved else "output-denied")
        assert (decided["approval"]["approved"], decided["approval"]["reason"]) == (approved, "Because.")


async def test_a_turn_without_calls_is_not_shown_again(serve: Serve) -> None:
    server = await serve(agent(ScriptedModel([say("One.")])))
    tab = await server.tab()
    await tab.ask("r1", "First")
    await tab.done("r1")
    await tab.settle()
    assert not any(map(is_update, tab.frames))


async def test_a_replayed_failure_is_followed_by_how_its_calls_ended(serve: Serve) -> None:
    gate = Gate()

    @tool
    async def simmer() -> None:
        await gate.passed()

    kind = agent(ScriptedModel([call("simmer", {})]), simmer)
    server = await serve(kind)
    tab = await server.tab()
    await tab.ask("r1", "Soup")
    await gate.reached()
    await server.stop()

    for _ in range(2):
        again = await serve(kind)
        late = await again.tab()
        assert (await late.probe("p1"))["id"] == "r1"
        await late.ack("r1")
        message = await shown_last(late, "r1")
        assert part_of(message, "simmer")["errorText"] == INTERRUPTED
        assert message == (await again.stored())[-1]
        await again.stop()


async def test_a_replayed_failure_without_calls_is_not_shown_again(serve: Serve) -> None:
    server = await serve(agent(ScriptedModel([[say("ab"), fail(ModelUnreachable("The line broke."))]])))
    tab = await server.tab()
    await tab.ask("r1", "Go")
    await tab.done("r1")
    late = await server.tab()
    assert (await late.probe("p1"))["id"] == "r1"
    await late.ack("r1")
    await late.done("r1")
    await late.settle()
    assert not any(map(is_update, [*tab.frames, *late.frames]))


async def test_a_refused_edit_in_mid_stream_is_answered_with_the_message_as_it_is(serve: Serve) -> None:
    gate = Gate()

    @tool
    async def simmer() -> None:
        await gate.passed()

    @tool(needs_approval=True)
    async def pour(cups: int) -> None: ...

    model = ScriptedModel([[call("simmer", {}), call("pour", {"cups": 2})]])
    server = await serve(agent(model, simmer, pour))
    tab, other = await server.tab(), await server.tab()
    await tab.ask("r1", "Soup")
    await gate.reached()
    decision = {"type": "cf_agent_tool_approval", "approved": True, "input": {"cups": "many"}}
    await tab.send({**decision, "toolCallId": await asked_about(tab)})
    message = (await tab.seen(is_update))["message"]
    assert (part_of(message, "pour")["state"], part_of(message, "pour")["input"]) == ("approval-requested", {"cups": 2})
    await other.settle()
    assert not any(map(is_update, other.frames)), "it is nobody else's business"
    gate.open()


async def test_a_tab_that_was_outrun_is_put_right_when_the_answer_is_over(serve: Serve) -> None:
    gate = Gate()
    model = ScriptedModel([call("weigh", id="c1"), [pause(gate), say("Done.")]])
    server = await serve(agent(model, client_tool("weigh")))
    first, second, third = [await server.tab() for _ in range(3)]
    await first.ask("r1", "Weigh it")
    await first.done("r1")
    result = {"type": "cf_agent_tool_result", "toolCallId": "c1", "toolName": "weigh", "autoContinue": True}
    await first.send({**result, "output": 1})
    await second.seen(is_update)
    await second.send({**result, "output": 2})
    await second.settle()
    gate.open()
    done = await third.seen(lambda frame: frame.get("continuation") is True and frame.get("done") is True)
    message = await shown_last(second, done["id"])
    assert part_of(message, "weigh")["output"] == 1
    assert message == (await server.stored())[-1]
    for tab in (first, third):
        await tab.settle()
        assert len(list(filter(is_update, tab.frames))) == 1, "only who was outrun shows something else"
