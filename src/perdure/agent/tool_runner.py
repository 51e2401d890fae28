"""Runs one tool call: the application's hooks around it, and its result as a chunk."""

from __future__ import annotations

import asyncio
import copy
import logging
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, cast

from perdure.agent.stopping import is_stopping
from perdure.agent.turn_config import ToolCallContext, ToolCallDecision, ToolCallResult
from perdure.errors import ConfigurationError, InvalidToolInput, ToolError
from perdure.models.contract import Chunk
from perdure.observability.tracing import tool_span
from perdure.tools import Tool, ToolContext
from perdure.tools.output import json_ready

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
    approved: bool = False
    """Whether a person approved it: no other arguments will do."""
    final: bool = False
    """Whether its arguments were looked at by whoever decides on approval: they are not repaired any more."""


async def run_call(request: Request, emit: Callable[[Chunk], None]) -> None:
    """Run a call and emit its result. Whatever a tool raises is the result: the model is told and goes on.

    Raises:
        ConfigurationError: ``before_tool_call`` gave something that is no decision. The call did not run.
        Exception: what ``after_tool_call`` raises.
    """
    call, job = request.call, request.job
    began = time.perf_counter()
    mistake: ConfigurationError | None = None

    def progress(output: Any) -> None:
        emit({"type": "tool-output-available", "toolCallId": call.id, "output": output, "preliminary": True})

    try:
        with tool_span(call.tool, call.id, call.input) as span:
            output = await _decide(request, progress)
            span.returned(output)
    except (Exception, asyncio.CancelledError, SystemExit) as error:
        if isinstance(error, asyncio.CancelledError) and is_stopping():
            raise
        if isinstance(error, _NoDecision):
            mistake = ConfigurationError(str(error))
        elif isinstance(error, SystemExit):
            logger.warning("Tool %s tried to end the process in turn %s", call.tool, job.turn_id)
        elif not isinstance(error, ToolError):
            logger.warning("Tool %s failed in turn %s", call.tool, job.turn_id, exc_info=True)
        emit({"type": "tool-output-error", "toolCallId": call.id, "errorText": _text_of(error)})
        result = _result(request, began, success=False, error=error)
    else:
        emit({"type": "tool-output-available", "toolCallId": call.id, "output": output})
        result = _result(request, began, success=True, output=output)
    if mistake is not None:
        raise mistake
    if job.after_tool_call is not None:
        await job.after_tool_call(result)


class _NoDecision(Exception):
    """``before_tool_call`` gave something that is no decision."""


def _text_of(error: BaseException) -> str:
    return str(error) or type(error).__name__


async def _decide(request: Request, progress: Callable[[Any], None]) -> Any:
    """The result of a call, after the application was asked."""
    job, call = request.job, request.call
    if job.before_tool_call is None:
        return await _execute(request, progress)
    decision = await job.before_tool_call(
        ToolCallContext(
            request_id=job.turn_id, tool_call_id=call.id, tool_name=call.tool, input=copy.deepcopy(call.input)
        )
    )
    match decision:
        case ToolCallDecision("block", reason):
            return str(reason) if reason else f'Tool "{call.tool}" was blocked by before_tool_call.'
        case ToolCallDecision("substitute", output):
            return json_ready(output, call.tool)
        case ToolCallDecision("allow", value) if isinstance(value, Mapping):
            return await _execute(await _changed(request, dict(cast("Mapping[str, Any]", value))), progress)
        case None | ToolCallDecision("allow", None):
            return await _execute(request, progress)
        case _:
            raise _NoDecision(
                "before_tool_call() must give allow(input), block(reason), substitute(output) or nothing; "
                f"it gave a {type(decision).__name__}."
            )


async def _changed(request: Request, input: dict[str, Any]) -> Request:
    """The request with arguments that the application wants instead. What a person has to approve, no hook changes.

    Raises:
        ToolError: others were approved, or these would have to be.
    """
    call, tool = request.call, request.tool
    if input == call.input:
        return request
    if request.approved:
        raise ToolError(
            f'before_tool_call() gave other arguments for the tool "{call.tool}" than the ones that were approved. '
            "It did not run."
        )
    if tool.needs_approval is not False and await tool.asks(input, request.context):
        raise ToolError(
            f'before_tool_call() gave arguments for the tool "{call.tool}" that need approval. It did not run.'
        )
    return replace(request, call=Call(call.id, call.tool, input))


async def _execute(request: Request, progress: Callable[[Any], None]) -> Any:
    try:
        return await request.tool.run(request.call.input, request.context, progress)
    except InvalidToolInput as error:
        if request.approved or request.final:
            raise
        repaired = await request.job.repair(request.call, str(error))
        if repaired is None or repaired.tool != request.call.tool:
            raise
        return await request.tool.run(repaired.input, request.context, progress)


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
