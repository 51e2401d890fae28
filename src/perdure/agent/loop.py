"""The loop of a turn: model step, tool calls, next step. Read it top to bottom.

Knows the model and the tools of the turn and hands every chunk to its ``sink``. Knows no connection, no storage, no
transcript: what a chunk leads to is the sink's business.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import overload

import anyio

from perdure.agent.dialogue import Dialogue, Sink
from perdure.agent.gate import pass_gate
from perdure.agent.job import Job
from perdure.agent.model_step import ModelStep
from perdure.agent.tool_runner import Call, Request, run_call
from perdure.agent.turn_config import StepResult
from perdure.models.contract import Finish, HistoryMessage
from perdure.protocol.messages import UIMessage
from perdure.tools import ToolContext, ToolSet

__all__ = ["Sink", "run_steps"]


async def run_steps(job: Job, sink: Sink) -> None:
    """Answer: steps until the model is done, a condition of the job holds, or there were ``max_steps``.

    Raises:
        ModelError: the model did not answer. What it said before stays with the sink.
        Exception: what a hook of the application raises.
    """
    dialogue = Dialogue(job, sink)
    steps: list[StepResult] = []
    finish = Finish("stop")
    await _run_approved(job, dialogue)
    while len(steps) < job.max_steps:
        before = len(sink.builder.parts)
        dialogue.emit({"type": "start-step"})
        plan = await job.plan_step(steps, dialogue.base)
        step = ModelStep(job, plan, dialogue)
        finish = await step.run()
        await _run_calls(job, plan.tools, dialogue, step.calls)
        dialogue.emit({"type": "finish-step"})
        result = StepResult(
            number=len(steps), parts=sink.builder.parts[before:], finish_reason=finish.reason, usage=finish.usage
        )
        steps.append(result)
        await job.step_finished(result)
        # A call that waits for somebody ends the turn, also if it was answered meanwhile: what follows is another turn.
        if not step.called or dialogue.waits or await job.is_over(steps):
            break
        # A settled result is durable before the model sees it.
        await dialogue.durable()
    dialogue.emit({"type": "finish", "finishReason": finish.reason})


async def _run_approved(job: Job, dialogue: Dialogue) -> None:
    """Run what a person approved. That a call runs is durable before it does: it will never run twice."""
    if not job.approved:
        return
    calls = await dialogue.begin(job.approved)
    tools = job.tools
    for call in calls:
        if call.tool not in tools or tools[call.tool].execute is None:
            text = f"The tool {call.tool!r} is not available any more. The call was approved and did not run."
            dialogue.emit({"type": "tool-output-error", "toolCallId": call.id, "errorText": text})
    there = [call for call in calls if call.tool in tools and tools[call.tool].execute is not None]
    await _run_calls(job, tools, dialogue, there, approved=True)
    await dialogue.durable()


async def _run_calls(
    job: Job, tools: ToolSet, dialogue: Dialogue, calls: Sequence[Call], *, approved: bool = False
) -> None:
    """Run the calls of a step side by side; each result is shown as soon as it is there.

    A hook that fails ends the turn, but not the other calls: what they do has happened and is recorded.
    """
    if not calls:
        return
    messages = _Messages(dialogue.history())
    failures: list[Exception] = []

    async def run(call: Call) -> None:
        context = ToolContext(agent=job.agent, tool_call_id=call.id, turn_id=job.turn_id, messages=messages)
        try:
            request = await pass_gate(Request(job, tools[call.tool], call, context, approved), dialogue)
            if request is not None:
                await run_call(request, dialogue.emit)
        except Exception as error:
            # A hook of the application.
            failures.append(error)

    async with anyio.create_task_group() as group:
        for call in calls:
            group.start_soon(run, call)
    if failures:
        raise failures[0]


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
