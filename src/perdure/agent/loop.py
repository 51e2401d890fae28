"""The loop of a turn: model step, tool calls, next step. Read it top to bottom.

Knows the model and the tools of the turn and hands every chunk to its ``sink``. Knows no connection, no storage, no
transcript: what a chunk leads to is the sink's business.
"""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from typing import Protocol, overload

import anyio

from perdure.agent.job import Job, Plan
from perdure.agent.tool_runner import Call, Request, run_call
from perdure.agent.turn_config import StepResult
from perdure.chat.builder import MessageBuilder
from perdure.errors import ModelUnreachable, UnknownTool
from perdure.models.contract import Chunk, Finish, HistoryMessage, ModelRequest
from perdure.observability.tracing import model_span
from perdure.protocol.messages import UIMessage
from perdure.tools import ToolContext

__all__ = ["Sink", "run_steps"]


class Sink(Protocol):
    """Where the chunks of a turn go."""

    builder: MessageBuilder
    """The answer so far."""

    def emit(self, chunk: Chunk) -> None:
        """Take one chunk, in order."""
        ...

    async def durable(self) -> None:
        """Wait until every chunk so far is stored."""
        ...


async def run_steps(job: Job, sink: Sink) -> None:
    """Answer: steps until the model is done, a condition of the job holds, or there were ``max_steps``.

    Raises:
        ModelError: the model did not answer. What it said before stays with the sink.
        Exception: what a hook of the application raises.
    """
    steps: list[StepResult] = []
    finish = Finish("stop")
    while len(steps) < job.max_steps:
        before = len(sink.builder.parts)
        sink.emit({"type": "start-step"})
        plan = await job.plan_step(steps, _history(job, sink))
        with model_span(plan.model.name, plan.settings) as span:
            if span.keeps_messages:
                span.asked(plan.system, [entry.message for entry in plan.messages or _history(job, sink)])
            finish, calls, asked = await _model_step(job, plan, sink)
            span.finished(finish.reason, finish.usage)
            span.answered(sink.builder.parts[before:])
        await _run_calls(job, plan, sink, calls)
        sink.emit({"type": "finish-step"})
        step = StepResult(
            number=len(steps), parts=sink.builder.parts[before:], finish_reason=finish.reason, usage=finish.usage
        )
        steps.append(step)
        await job.step_finished(step)
        if not asked or await job.is_over(steps):
            break
        # A settled result is durable before the model sees it.
        await sink.durable()
    sink.emit({"type": "finish", "finishReason": finish.reason})


async def _model_step(job: Job, plan: Plan, sink: Sink) -> tuple[Finish, list[Call], bool]:
    """One request to the model. Gives how it ended, the calls to run, and whether it called any tool at all."""
    history = plan.messages if plan.messages is not None else _history(job, sink)
    request = ModelRequest(plan.system, history, plan.tools.specs, plan.settings)
    calls: list[Call] = []
    asked = False
    async with contextlib.aclosing(plan.model.stream(request)) as events:
        async for event in events:
            if isinstance(event, Finish):
                return event, calls, asked
            kind: str = event["type"]
            if kind == "tool-input-available" and not event.get("providerExecuted"):
                asked = True
                event = await _admit(event, job, plan, calls)
            elif kind == "tool-input-error":
                asked = True
                event = await _admit_broken(event, job, plan, calls)
            elif kind.startswith("reasoning") and not job.send_reasoning:
                continue
            sink.emit(event)
            if job.on_chunk is not None:
                await job.on_chunk(event)
    raise ModelUnreachable(f"The model {plan.model.name} broke off in the middle of its answer.")


def _history(job: Job, sink: Sink) -> Sequence[HistoryMessage]:
    if not sink.builder.has_content:
        return job.history
    return [*job.history, HistoryMessage.of(sink.builder.message())]


async def _admit(chunk: Chunk, job: Job, plan: Plan, calls: list[Call]) -> Chunk:
    """Note a call that can be run; a call of a tool that is not there is repaired, or answered at once."""
    name = chunk["toolName"]
    if name in plan.tools:
        calls.append(Call(chunk["toolCallId"], name, chunk["input"]))
        return chunk
    error = str(UnknownTool(name, list(plan.tools)))
    return await _admit_broken({**chunk, "type": "tool-input-error", "errorText": error}, job, plan, calls)


async def _admit_broken(chunk: Chunk, job: Job, plan: Plan, calls: list[Call]) -> Chunk:
    """A call that cannot be run as it is: the application may know what was meant."""
    repaired = await job.repair(Call(chunk["toolCallId"], chunk["toolName"], chunk["input"]), chunk["errorText"])
    if repaired is None or repaired.tool not in plan.tools:
        return chunk
    calls.append(repaired)
    return {
        "type": "tool-input-available",
        "toolCallId": repaired.id,
        "toolName": repaired.tool,
        "input": repaired.input,
    }


async def _run_calls(job: Job, plan: Plan, sink: Sink, calls: Sequence[Call]) -> None:
    """Run the calls of a step side by side; each result is shown as soon as it is there."""
    if not calls:
        return
    messages = _Messages(_history(job, sink))
    async with anyio.create_task_group() as group:
        for call in calls:
            context = ToolContext(agent=job.agent, tool_call_id=call.id, turn_id=job.turn_id, messages=messages)
            group.start_soon(run_call, Request(job, plan.tools[call.tool], call, context), sink.emit)


class _Messages(Sequence[UIMessage]):
    """The conversation for tools; a message is decoded when a tool looks at it."""

    def __init__(self, history: Sequence[HistoryMessage]) -> None:
        self._history = history

    def __len__(self) -> int:
        return len(self._history)

    @overload
    def __getitem__(self, index: int) -> UIMessage: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[UIMessage]: ...
    def __getitem__(self, index: int | slice) -> UIMessage | Sequence[UIMessage]:
        if isinstance(index, slice):
            return _Messages(self._history[index])
        return self._history[index].message
