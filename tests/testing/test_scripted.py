"""The scripted model: what it streams, what it records, and how it complains."""

from __future__ import annotations

import asyncio
from contextlib import aclosing
from typing import Any

import pytest

from perdure.errors import ModelRejected
from perdure.models.contract import Finish, HistoryMessage, ModelRequest, ToolSpec, Usage
from perdure.testing import Gate, RecordedRequest, ScriptedModel, call, chunk, fail, finish, pause, say, think

pytestmark = pytest.mark.anyio


def request(text: str = "hi", **fields: Any) -> ModelRequest:
    message = HistoryMessage.of({"id": "u1", "role": "user", "parts": [{"type": "text", "text": text}]})
    return ModelRequest(system="Be kind.", history=[message], **fields)


async def play(model: ScriptedModel, asked: ModelRequest | None = None) -> list[Any]:
    return [event async for event in model.stream(asked or request())]


async def test_a_text_step_is_one_part_with_its_deltas() -> None:
    model = ScriptedModel([say("Hello ", "world")])

    assert await play(model) == [
        {"type": "text-start", "id": "1"},
        {"type": "text-delta", "id": "1", "delta": "Hello "},
        {"type": "text-delta", "id": "1", "delta": "world"},
        {"type": "text-end", "id": "1"},
        Finish("stop"),
    ]


async def test_a_call_step_streams_its_arguments_and_finishes_with_tool_calls() -> None:
    model = ScriptedModel([call("add", {"a": 1}, id="c1")])

    assert await play(model) == [
        {"type": "tool-input-start", "toolCallId": "c1", "toolName": "add"},
        {"type": "tool-input-delta", "toolCallId": "c1", "inputTextDelta": '{"a":1}'},
        {"type": "tool-input-available", "toolCallId": "c1", "toolName": "add", "input": {"a": 1}},
        Finish("tool-calls"),
    ]


async def test_parts_of_different_kinds_close_each_other_and_have_their_own_ids() -> None:
    model = ScriptedModel([[think("Hm"), say("a"), call("x"), say("b"), chunk({"type": "file", "url": "u"}), say("c")]])

    events = await play(model)

    assert [(event["type"], event.get("id")) for event in events[:-1] if event["type"].endswith(("start", "end"))] == [
        ("reasoning-start", "1"),
        ("reasoning-end", "1"),
        ("text-start", "2"),
        ("text-end", "2"),
        ("tool-input-start", None),
        ("text-start", "3"),
        ("text-end", "3"),
        ("text-start", "4"),
        ("text-end", "4"),
    ]
    assert {"type": "file", "url": "u"} in events


async def test_calls_get_ids_that_do_not_repeat_over_steps() -> None:
    model = ScriptedModel([[call("a"), call("b")], call("c")])

    events = await play(model) + await play(model)

    ids = [event["toolCallId"] for event in events if isinstance(event, dict) and event["type"] == "tool-input-start"]
    assert ids == ["call-1", "call-2", "call-3"]


async def test_arguments_that_are_no_object_come_as_an_input_error() -> None:
    model = ScriptedModel([call("add", raw='{"a":', id="c1")])

    assert (await play(model))[2] == {
        "type": "tool-input-error",
        "toolCallId": "c1",
        "toolName": "add",
        "input": '{"a":',
        "errorText": "The arguments of add are not a JSON object.",
    }


async def test_the_finish_can_be_overridden() -> None:
    model = ScriptedModel([[say("cut"), finish("length", Usage(output_tokens=3))], finish()])

    assert (await play(model))[-1] == Finish("length", Usage(output_tokens=3))
    assert await play(model) == [Finish("stop")]


async def test_a_pause_holds_the_text_until_the_gate_opens() -> None:
    gate = Gate()
    model = ScriptedModel([[say("a"), pause(gate), say("b")]])
    events: list[Any] = []

    async def consume() -> None:
        events.extend([event async for event in model.stream(request())])

    task = asyncio.ensure_future(consume())
    await gate.reached()
    assert not task.done()
    assert model.requests[0].outcome == "open"

    gate.open()
    await task
    assert [event["type"] for event in events[:-1]] == ["text-start", "text-delta", "text-delta", "text-end"]
    assert model.requests[0].outcome == "finished"


async def test_fail_raises_after_what_came_before() -> None:
    model = ScriptedModel([[say("a"), fail(ModelRejected("too long", status=400))]])
    events: list[Any] = []

    async def consume() -> None:
        async for event in model.stream(request()):
            events.append(event)  # noqa: PERF401 - what came before the failure counts

    with pytest.raises(ModelRejected, match="too long"):
        await consume()

    assert [event["type"] for event in events] == ["text-start", "text-delta"]
    assert model.requests[0].outcome == "failed"


async def test_requests_are_recorded_as_they_were() -> None:
    tools = (ToolSpec("add", "Adds.", {"type": "object"}),)
    asked = request("one", tools=tools, settings={"temperature": 0})
    model = ScriptedModel([say("ok")])

    await play(model, asked)
    asked.history[0].message["parts"][0]["text"] = "changed"

    assert model.requests == [
        RecordedRequest(
            system="Be kind.",
            messages=[{"id": "u1", "role": "user", "parts": [{"type": "text", "text": "one"}]}],
            tools=["add"],
            settings={"temperature": 0},
            outcome="finished",
        )
    ]


async def test_a_caller_that_stops_early_leaves_a_closed_request() -> None:
    gate = Gate()
    model = ScriptedModel([[say("a", "b")], [pause(gate)]])

    async with aclosing(model.stream(request())) as events:  # type: ignore[type-var]
        await anext(events)
    waiting = asyncio.ensure_future(play(model))
    await gate.reached()
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting

    assert [item.outcome for item in model.requests] == ["closed", "closed"]


async def test_one_request_more_than_scripted_fails_and_is_kept() -> None:
    model = ScriptedModel([say("only")], name="mine")
    await play(model)

    with pytest.raises(AssertionError, match=r"mine: request 2 came, but only 1 steps are scripted; .*again\?"):
        await play(model, request("again?"))

    assert model.unexpected == [model.requests[1]]
    with pytest.raises(AssertionError, match="request 2 came"):
        model.assert_done()


async def test_assert_done_tells_how_many_steps_are_left() -> None:
    model = ScriptedModel([say("a"), say("b"), say("c")])
    await play(model)

    with pytest.raises(AssertionError, match="2 of 3 scripted steps were not asked for"):
        model.assert_done()

    await play(model)
    await play(model)
    model.assert_done()
