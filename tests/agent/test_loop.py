"""The loop of a turn: what it emits in which order, and what the model is shown."""

import asyncio
import threading
from typing import Any

import anyio
import pytest

from perdure import ModelRejected, ModelUnreachable, Tool, ToolContext, tool
from perdure.agent.loop import run_steps
from perdure.testing import (
    Gate,
    RecordedRequest,
    ScriptedModel,
    call,
    chunk,
    fail,
    finish,
    pause,
    say,
    strict_provider_errors,
    think,
)
from tests.agent.sinks import Recorder, job

pytestmark = pytest.mark.anyio

CALL = ["tool-input-start", "tool-input-delta", "tool-input-available"]
TEXT = ["text-start", "text-delta", "text-end"]


@tool
async def add(a: int, b: int) -> dict[str, int]:
    return {"sum": a + b}


def parts(sink: Recorder) -> list[dict[str, Any]]:
    return [part for part in sink.builder.parts if part["type"] != "step-start"]


def shown(request: RecordedRequest) -> list[dict[str, Any]]:
    """The parts of the answer so far, as the model was shown them."""
    return [part for part in request.messages[-1]["parts"] if part["type"] != "step-start"]


# ── golden sequences ────────────────────────────────────────────────


async def test_a_text_is_one_step() -> None:
    model, sink = ScriptedModel([say("Hel", "lo")]), Recorder()
    await run_steps(job(model), sink)
    assert sink.log == [
        {"type": "start-step"},
        {"type": "text-start", "id": "1"},
        {"type": "text-delta", "id": "1", "delta": "Hel"},
        {"type": "text-delta", "id": "1", "delta": "lo"},
        {"type": "text-end", "id": "1"},
        {"type": "finish-step"},
        {"type": "finish", "finishReason": "stop"},
    ]
    (request,) = model.requests
    assert (request.system, request.tools, request.outcome) == ("Be brief.", [], "finished")
    assert [message["id"] for message in request.messages] == ["u1"]


async def test_a_server_tool_makes_a_second_step_that_sees_its_result() -> None:
    model, sink = ScriptedModel([[think("Hm."), call("add", {"a": 1, "b": 2}, id="c1")], say("Three.")]), Recorder()
    await run_steps(job(model, add), sink)
    model.assert_done()
    assert sink.types == [
        "start-step",
        *("reasoning-start", "reasoning-delta", "reasoning-end"),
        *CALL,
        "tool-output-available",
        "finish-step",
        "durable",
        "start-step",
        *TEXT,
        "finish-step",
        "finish",
    ]
    assert sink.chunks[-1] == {"type": "finish", "finishReason": "stop"}
    second = model.requests[1]
    assert [message["role"] for message in second.messages] == ["user", "assistant"]
    assert shown(second)[-1] == {
        "type": "tool-add",
        "toolCallId": "c1",
        "state": "output-available",
        "input": {"a": 1, "b": 2},
        "output": {"sum": 3},
    }
    assert second.tools == ["add"]
    assert strict_provider_errors(second) == []


async def test_results_are_shown_as_they_come_and_told_to_the_model_in_call_order() -> None:
    first, second = asyncio.Event(), asyncio.Event()

    @tool
    async def slow() -> str:
        first.set()
        await second.wait()
        return "slow"

    @tool
    async def quick() -> str:
        await first.wait()
        return "quick"

    model = ScriptedModel([[call("slow", id="c1"), call("quick", id="c2")], say("Done.")])
    sink = Recorder()
    async with anyio.create_task_group() as group:
        group.start_soon(run_steps, job(model, slow, quick), sink)
        await sink.seen("tool-output-available")
        assert [part["state"] for part in parts(sink)] == ["input-available", "output-available"]
        second.set()
    outputs = [item["output"] for item in sink.chunks if item["type"] == "tool-output-available"]
    assert outputs == ["quick", "slow"]
    assert [(part["toolCallId"], part["output"]) for part in shown(model.requests[1])] == [
        ("c1", "slow"),
        ("c2", "quick"),
    ]


async def test_a_tool_starts_when_the_model_has_said_all_of_its_step() -> None:
    gate, model_sink = Gate(), Recorder()
    model = ScriptedModel([[call("add", {"a": 1, "b": 2}), pause(gate)], say("Three.")])
    async with anyio.create_task_group() as group:
        group.start_soon(run_steps, job(model, add), model_sink)
        await gate.reached()
        assert "tool-output-available" not in model_sink.types
        gate.open()
    assert parts(model_sink)[0]["output"] == {"sum": 3}


# ── calls that cannot be run ────────────────────────────────────────


async def test_a_call_of_an_unknown_tool_is_answered_with_the_names_of_those_there_are() -> None:
    model, sink = ScriptedModel([call("zzz", {"a": 1}, id="c1"), say("Sorry.")]), Recorder()
    await run_steps(job(model, add), sink)
    model.assert_done()
    assert sink.types[1:5] == ["tool-input-start", "tool-input-delta", "tool-input-error", "finish-step"]
    text = "Model tried to call unavailable tool 'zzz'. Available tools: add."
    assert sink.chunks[3] == {
        "type": "tool-input-error",
        "toolCallId": "c1",
        "toolName": "zzz",
        "input": {"a": 1},
        "errorText": text,
    }
    assert shown(model.requests[1])[-1]["errorText"] == text


async def test_input_that_does_not_fit_is_an_error_that_names_the_field() -> None:
    model, sink = ScriptedModel([call("add", {"a": 1}, id="c1"), say("Sorry.")]), Recorder()
    await run_steps(job(model, add), sink)
    (part, _) = parts(sink)
    assert (part["state"], part["input"]) == ("output-error", {"a": 1})
    assert part["errorText"].startswith("Invalid input for tool add:\n- b:")


async def test_arguments_that_are_no_json_object_make_another_step() -> None:
    model, sink = ScriptedModel([call("add", raw='{"a":', id="c1"), say("Sorry.")]), Recorder()
    await run_steps(job(model, add), sink)
    model.assert_done()
    assert sink.types[1:4] == ["tool-input-start", "tool-input-delta", "tool-input-error"]
    assert parts(sink)[0]["state"] == "output-error"


async def test_a_call_that_the_provider_ran_is_neither_run_nor_a_reason_to_go_on() -> None:
    marks = {"toolCallId": "c1", "providerExecuted": True}
    searched = [
        chunk({"type": "tool-input-available", "toolName": "add", "input": {"q": "x"}, **marks}),
        chunk({"type": "tool-output-available", "output": ["found"], **marks}),
        say("Found."),
    ]
    model, sink = ScriptedModel([searched]), Recorder()
    await run_steps(job(model, add), sink)
    model.assert_done()
    assert parts(sink)[0]["output"] == ["found"]


# ── tools that fail ─────────────────────────────────────────────────


@pytest.mark.parametrize(("error", "text"), [(ValueError("no such city"), "no such city"), (KeyError(), "KeyError")])
async def test_what_a_tool_raises_is_its_result_and_the_turn_goes_on(error: Exception, text: str) -> None:
    @tool
    async def broken() -> str:
        raise error

    model = ScriptedModel([[call("broken", id="c1"), call("add", {"a": 1, "b": 2}, id="c2")], say("Well.")])
    sink = Recorder()
    await run_steps(job(model, broken, add), sink)
    first, second, said = parts(sink)
    assert (first["state"], first["errorText"]) == ("output-error", text)
    assert second["output"] == {"sum": 3}
    assert said["text"] == "Well."


async def test_a_tool_that_cancels_itself_has_failed_and_the_turn_goes_on() -> None:
    @tool
    async def impatient() -> str:
        waiting = asyncio.ensure_future(asyncio.Event().wait())
        waiting.cancel()
        await waiting
        return "never"

    model, sink = ScriptedModel([call("impatient", id="c1"), say("Well.")]), Recorder()
    await run_steps(job(model, impatient), sink)
    model.assert_done()
    assert (parts(sink)[0]["state"], parts(sink)[0]["errorText"]) == ("output-error", "CancelledError")


async def test_a_result_without_json_form_is_an_error() -> None:
    @tool
    async def opaque() -> Any:
        return object()

    model, sink = ScriptedModel([call("opaque"), say("Well.")]), Recorder()
    await run_steps(job(model, opaque), sink)
    assert "has no JSON form" in parts(sink)[0]["errorText"]


async def test_a_synchronous_tool_runs_beside_the_event_loop() -> None:
    free = threading.Event()

    @tool
    def blocking() -> str:
        assert free.wait(20)
        return threading.current_thread().name

    @tool
    async def freeing() -> str:
        free.set()
        return "freed"

    model, sink = ScriptedModel([[call("blocking"), call("freeing")], say("Done.")]), Recorder()
    await run_steps(job(model, blocking, freeing), sink)
    assert parts(sink)[0]["output"] != threading.current_thread().name


async def test_a_tool_is_told_of_its_call_and_of_the_conversation_so_far() -> None:
    seen: list[ToolContext] = []

    async def look(input: dict[str, Any], context: ToolContext) -> str:
        seen.append(context)
        return "ok"

    looking = Tool("look", description="Looks.", input_schema={"type": "object"}, execute=look)
    agent = object()
    model, sink = ScriptedModel([[say("Let me look."), call("look", id="c1")], say("Done.")]), Recorder()
    await run_steps(job(model, looking, agent=agent), sink)
    (context,) = seen
    assert (context.agent, context.tool_call_id, context.turn_id) == (agent, "c1", "R1")
    assert len(context.messages) == 2
    assert [message["id"] for message in context.messages] == ["u1", "a1"]
    assert context.messages[-1]["parts"][1]["text"] == "Let me look."
    assert context.messages[-1]["parts"][2]["toolCallId"] == "c1"
    assert [message["id"] for message in context.messages[:1]] == ["u1"]


# ── ends ────────────────────────────────────────────────────────────


@pytest.mark.parametrize("steps", [1, 3])
async def test_the_turn_ends_after_its_last_step_though_the_model_would_go_on(steps: int) -> None:
    model, sink = ScriptedModel([call("add", {"a": 1, "b": 2}) for _ in range(steps)]), Recorder()
    await run_steps(job(model, add, max_steps=steps), sink)
    model.assert_done()
    assert sink.types.count("start-step") == sink.types.count("finish-step") == steps
    assert [part["state"] for part in parts(sink)] == ["output-available"] * steps
    assert sink.chunks[-1] == {"type": "finish", "finishReason": "tool-calls"}


@pytest.mark.parametrize("reason", ["length", "content-filter", "other"])
async def test_the_turn_ends_as_the_model_says_that_it_ended(reason: str) -> None:
    model, sink = ScriptedModel([[say("Hel"), finish(reason)]]), Recorder()
    await run_steps(job(model), sink)
    assert sink.chunks[-1] == {"type": "finish", "finishReason": reason}


@pytest.mark.parametrize("error", [ModelRejected("quota", status=429), ModelUnreachable("gone")])
async def test_a_model_that_fails_leaves_what_it_said(error: Exception) -> None:
    model, sink = ScriptedModel([[say("Hel"), fail(error)]]), Recorder()
    with pytest.raises(type(error)):
        await run_steps(job(model), sink)
    assert parts(sink)[0]["text"] == "Hel"
    assert "finish" not in sink.types


async def test_a_model_that_ends_without_saying_how_broke_off() -> None:
    class Silent(ScriptedModel):
        async def stream(self, request: Any) -> Any:
            yield {"type": "text-delta", "id": "0", "delta": "Hel"}

    sink = Recorder()
    with pytest.raises(ModelUnreachable, match="silent broke off"):
        await run_steps(job(Silent([], name="silent")), sink)
    assert sink.types == ["start-step", "text-start", "text-delta"]


async def test_nothing_that_a_model_says_after_its_finish_counts() -> None:
    class Talkative(ScriptedModel):
        async def stream(self, request: Any) -> Any:
            async for event in super().stream(request):
                yield event
            yield {"type": "text-delta", "id": "9", "delta": "more"}

    sink = Recorder()
    await run_steps(job(Talkative([say("Hi")])), sink)
    assert [part["text"] for part in parts(sink)] == ["Hi"]


# ── stopping, and what must be stored first ─────────────────────────


async def test_stopping_in_mid_stream_closes_the_models_request() -> None:
    gate, sink = Gate(), Recorder()
    model = ScriptedModel([[say("Hel"), pause(gate), say("lo")]])
    async with anyio.create_task_group() as group:
        group.start_soon(run_steps, job(model), sink)
        await gate.reached()
        assert model.requests[0].outcome == "open"
        group.cancel_scope.cancel()
    assert model.requests[0].outcome == "closed"
    assert parts(sink)[0]["text"] == "Hel"


async def test_stopping_while_tools_run_cancels_them() -> None:
    started, ended = asyncio.Event(), asyncio.Event()

    @tool
    async def endless() -> str:
        started.set()
        try:
            await asyncio.Event().wait()
        finally:
            ended.set()
        return "never"

    model, sink = ScriptedModel([call("endless")]), Recorder()
    async with anyio.create_task_group() as group:
        group.start_soon(run_steps, job(model, endless), sink)
        await started.wait()
        group.cancel_scope.cancel()
    assert ended.is_set()
    assert parts(sink)[0]["state"] == "input-available"


async def test_a_tool_that_fails_while_it_is_stopped_does_not_turn_the_stop_into_a_failure() -> None:
    started = asyncio.Event()

    @tool
    async def untidy() -> str:
        started.set()
        try:
            await asyncio.Event().wait()
        finally:
            raise OSError("cleaning up failed")

    sink = Recorder()
    async with anyio.create_task_group() as group:
        group.start_soon(run_steps, job(ScriptedModel([call("untidy")]), untidy), sink)
        await started.wait()
        group.cancel_scope.cancel()
    assert parts(sink)[0]["errorText"] == "cleaning up failed"
    assert "durable" not in sink.types


async def test_the_model_is_not_asked_again_before_the_results_are_stored() -> None:
    model, sink = ScriptedModel([call("add", {"a": 1, "b": 2}), call("add", {"a": 3, "b": 4}), say("So.")]), Recorder()
    sink.stored.clear()
    async with anyio.create_task_group() as group:
        group.start_soon(run_steps, job(model, add), sink)
        await sink.seen("durable")
        await anyio.wait_all_tasks_blocked()
        assert len(model.requests) == 1
        sink.stored.set()
    assert len(model.requests) == 3
    assert sink.types.count("durable") == 2
    for number, entry in enumerate(sink.types):
        if entry == "durable":
            assert sink.types[number - 2 : number + 2] == [
                "tool-output-available",
                "finish-step",
                "durable",
                "start-step",
            ]
