"""Runs one tool call: the application's hooks around it, and its result as a chunk."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from perdure.agent.turn_config import ToolCallContext, ToolCallDecision, ToolCallResult
from perdure.errors import InvalidToolInput, ToolError
from perdure.models.contract import Chunk
from perdure.observability.tracing import tool_span
from perdure.tools import Tool, ToolContext

if TYPE_CHECKING:
    from perdure.agent.job import Job

__all__ = ["Call", "Request", "run_call"]

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Call:
    """A tool call as the model made it."""

    id: str
    tool: str
    input: Any
    """An object; for a broken call, the text that is none."""


@dataclass(frozen=True, slots=True)
class Request:
    """A call and what it runs with."""

    job: Job
    tool: Tool
    call: Call
    context: ToolContext


async def run_call(request: Request, emit: Callable[[Chunk], None]) -> None:
    """Run a call and emit its result. Whatever a tool or a hook raises is the result: the model is told and goes on."""
    call = request.call
    began = time.perf_counter()
    try:
        with tool_span(call.tool, call.id, call.input) as span:
            output = await _decide(request)
            span.returned(output)
    except (Exception, asyncio.CancelledError, SystemExit) as error:
        if isinstance(error, asyncio.CancelledError) and _is_stopping():
            raise
        if isinstance(error, SystemExit):
            logger.warning("Tool %s tried to end the process in turn %s", call.tool, request.job.turn_id)
        elif not isinstance(error, ToolError):
            logger.warning("Tool %s failed in turn %s", call.tool, request.job.turn_id, exc_info=True)
        text = str(error) or type(error).__name__
        emit({"type": "tool-output-error", "toolCallId": call.id, "errorText": text})
        result = _result(request, began, success=False, error=error)
    else:
        emit({"type": "tool-output-available", "toolCallId": call.id, "output": output})
        result = _result(request, began, success=True, output=output)
    if request.job.after_tool_call is not None:
        await request.job.after_tool_call(result)


async def _decide(request: Request) -> Any:
    """The result of a call, after the application was asked."""
    job, call = request.job, request.call
    if job.before_tool_call is None:
        return await _execute(request)
    decision = await job.before_tool_call(
        ToolCallContext(request_id=job.turn_id, tool_call_id=call.id, tool_name=call.tool, input=call.input)
    )
    match decision:
        case ToolCallDecision("block", reason):
            return reason or f'Tool "{call.tool}" was blocked by before_tool_call.'
        case ToolCallDecision("substitute", output):
            return output
        case ToolCallDecision("allow", changed) if changed is not None:
            return await _execute(replace(request, call=Call(call.id, call.tool, dict(changed))))
        case _:
            return await _execute(request)


async def _execute(request: Request) -> Any:
    try:
        return await request.tool.run(request.call.input, request.context)
    except InvalidToolInput as error:
        repaired = await request.job.repair(request.call, str(error))
        if repaired is None or repaired.tool != request.call.tool:
            raise
        return await request.tool.run(repaired.input, request.context)


def _result(
    request: Request, began: float, *, success: bool, output: Any = None, error: BaseException | None = None
) -> ToolCallResult:
    return ToolCallResult(
        request_id=request.job.turn_id,
        tool_call_id=request.call.id,
        tool_name=request.call.tool,
        input=request.call.input,
        success=success,
        output=output,
        error=error,
        duration_ms=(time.perf_counter() - began) * 1000,
    )


def _is_stopping() -> bool:
    """Whether this task was cancelled; a tool may also come upon a cancellation of something of its own."""
    task = asyncio.current_task()
    return task is not None and task.cancelling() > 0
