"""Calls the function of a tool, whatever kind it is of: to its result, as JSON. Imports the output module."""

from __future__ import annotations

import contextlib
import inspect
from collections.abc import AsyncIterable, AsyncIterator, Callable, Generator
from functools import partial
from typing import Any, cast

import anyio
import anyio.to_thread
from anyio.lowlevel import RunVar

from perdure.tools.output import json_ready

__all__ = ["run_function"]

MAX_TOOL_THREADS = 40
"""Synchronous tools that run at the same time; more wait. Apart from other threads, so that slow tools hold up nothing
else."""

_threads: RunVar[anyio.CapacityLimiter] = RunVar("perdure_tool_threads")


async def run_function(call: partial[Any], name: str, progress: Callable[[Any], None] | None) -> Any:
    """The result of a call of the tool ``name``, as JSON. ``progress`` is given what an async generator yields.

    Raises:
        ToolError: a value has no JSON form.
        Exception: what the function raises.
    """
    awaited = _is(inspect.iscoroutinefunction, call.func)
    if awaited:
        result = await call()
    elif _is(inspect.isasyncgenfunction, call.func):
        result = call()
    else:
        result = await _in_thread(partial(_called, call))
        if inspect.isawaitable(result):
            awaited, result = True, await result
    if isinstance(result, AsyncIterable):
        return await _last(aiter(cast("AsyncIterable[Any]", result)), name, None if awaited else progress)
    if inspect.isgenerator(result):
        result = await _in_thread(partial(_drained, result))
    return json_ready(result, name)


async def _last(values: AsyncIterator[Any], name: str, progress: Callable[[Any], None] | None) -> Any:
    last: Any = None
    async with _closing(values):
        async for value in values:
            last = json_ready(value, name)
            if progress is not None:
                progress(last)
    return last


def _closing(values: Any) -> contextlib.AbstractAsyncContextManager[Any]:
    return contextlib.aclosing(values) if hasattr(values, "aclose") else contextlib.nullcontext()


def _called(call: partial[Any]) -> Any:
    """The result of a synchronous function; of a generator, which runs here as well, its last value."""
    result = call()
    return _drained(result) if inspect.isgenerator(result) else result


def _drained(values: Generator[Any, Any, Any]) -> Any:
    last = None
    for value in values:
        last = value
    return last


async def _in_thread(call: Callable[[], Any]) -> Any:
    return await anyio.to_thread.run_sync(call, abandon_on_cancel=True, limiter=_limiter())


def _is(kind: Callable[[Any], bool], function: Any) -> bool:
    while isinstance(function, partial):
        function = cast("partial[Any]", function).func
    return kind(function) or kind(type(function).__call__)


def _limiter() -> anyio.CapacityLimiter:
    try:
        return _threads.get()
    except LookupError:
        limiter = anyio.CapacityLimiter(MAX_TOOL_THREADS)
        _threads.set(limiter)
        return limiter
