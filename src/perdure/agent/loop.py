"""The loop of a turn: model step, tool calls, next step. Read it top to bottom.

Knows the model and the tools of the turn and hands every chunk to its ``sink``. Knows no connection, no storage, no
transcript: what a chunk leads to is the sink's business.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol, overload

import anyio

from perdure.chat.builder import MessageBuilder
from perdure.errors import ModelUnreachable, ToolError, UnknownTool
from perdure.models.contract import ChatModel, Chunk, Finish, HistoryMessage, ModelRequest
from perdure.protocol.messages import UIMessage
from perdure.tools import Tool, ToolContext, ToolSet

__all__ = ["Job", "Sink", "run_steps"]

logger = logging.getLogger(__name__)


@dataclass(frozen=True, kw_only=True, slots=True)
class Job:
    """What a turn runs with, put together before its first step."""

    model: ChatModel
    system: str
    tools: ToolSet
    history: Sequence[HistoryMessage]
    """The conversation before the answer."""
    max_steps: int
    agent: Any
    """The ``Think`` instance, for tools."""
    turn_id: str


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


@dataclass(frozen=True, slots=True)
class _Call:
    id: str
    tool: str
    input: dict[str, Any]


async def run_steps(job: Job, sink: Sink) -> None:
    """Answer: steps until the model is done, or until there were ``max_steps``.

    Raises:
        ModelError: the model did not answer. What it said before stays with the sink.
    """
    finish = Finish("stop")
    for _ in range(job.max_steps):
        sink.emit({"type": "start-step"})
        finish, calls, asked = await _model_step(job, sink)
        await _run_calls(job, sink, calls)
        sink.emit({"type": "finish-step"})
        if not asked:
            break
        # A settled result is durable before the model sees it.
        await sink.durable()
    sink.emit({"type": "finish", "finishReason": finish.reason})


async def _model_step(job: Job, sink: Sink) -> tuple[Finish, list[_Call], bool]:
    """One request to the model. Gives how it ended, the calls to run, and whether it called any tool at all."""
    request = ModelRequest(job.system, _history(job, sink), job.tools.specs)
    calls: list[_Call] = []
    asked = False
    async with contextlib.aclosing(job.model.stream(request)) as events:
        async for event in events:
            if isinstance(event, Finish):
                return event, calls, asked
            kind = event["type"]
            if kind == "tool-input-available" and not event.get("providerExecuted"):
                asked = True
                event = _admit(event, job.tools, calls)
            elif kind == "tool-input-error":
                asked = True
            sink.emit(event)
    raise ModelUnreachable(f"The model {job.model.name} broke off in the middle of its answer.")


def _history(job: Job, sink: Sink) -> Sequence[HistoryMessage]:
    if not sink.builder.has_content:
        return job.history
    return [*job.history, HistoryMessage.of(sink.builder.message())]


def _admit(chunk: Chunk, tools: ToolSet, calls: list[_Call]) -> Chunk:
    """Note a call that can be run; a call of a tool that is not there is answered at once."""
    name = chunk["toolName"]
    if name in tools:
        calls.append(_Call(chunk["toolCallId"], name, chunk["input"]))
        return chunk
    return {**chunk, "type": "tool-input-error", "errorText": str(UnknownTool(name, list(tools)))}


async def _run_calls(job: Job, sink: Sink, calls: Sequence[_Call]) -> None:
    """Run the calls of a step side by side; each result is shown as soon as it is there."""
    if not calls:
        return
    messages = _Messages(_history(job, sink))
    async with anyio.create_task_group() as group:
        for call in calls:
            context = ToolContext(agent=job.agent, tool_call_id=call.id, turn_id=job.turn_id, messages=messages)
            group.start_soon(_run_call, job.tools[call.tool], call, context, sink)


async def _run_call(tool: Tool, call: _Call, context: ToolContext, sink: Sink) -> None:
    """One call. Whatever a tool raises is its result: the model is told and goes on."""
    try:
        output = await tool.run(call.input, context)
    except ToolError as error:
        sink.emit({"type": "tool-output-error", "toolCallId": call.id, "errorText": str(error)})
    except (Exception, asyncio.CancelledError) as error:
        if isinstance(error, asyncio.CancelledError) and _is_stopping():
            raise
        logger.warning("Tool %s failed in turn %s", tool.name, context.turn_id, exc_info=True)
        text = str(error) or type(error).__name__
        sink.emit({"type": "tool-output-error", "toolCallId": call.id, "errorText": text})
    else:
        sink.emit({"type": "tool-output-available", "toolCallId": call.id, "output": output})


def _is_stopping() -> bool:
    """Whether this task was cancelled; a tool may also come upon a cancellation of something of its own."""
    task = asyncio.current_task()
    return task is not None and task.cancelling() > 0


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
