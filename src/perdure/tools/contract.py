"""The contract of a server tool: what the model is told about it, and how one call of it runs.

Imports the schema and output modules beside it. Knows no turn, no agent class and no approval.
"""

from __future__ import annotations

import copy
import inspect
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

import anyio
import anyio.to_thread
import msgspec
from anyio.lowlevel import RunVar

from perdure.models.contract import ToolSpec
from perdure.protocol.messages import UIMessage
from perdure.tools.definition import Definition
from perdure.tools.output import json_ready
from perdure.tools.schemas import DeclaredDefinition

__all__ = ["Tool", "ToolContext"]

MAX_TOOL_THREADS = 40
"""Synchronous tools that run at the same time; more wait. Apart from other threads, so that slow tools hold up nothing
else."""

_threads: RunVar[anyio.CapacityLimiter] = RunVar("perdure_tool_threads")


class ToolContext(msgspec.Struct, frozen=True, eq=False, kw_only=True):
    """The call that a tool is answering."""

    agent: Any
    """The agent that runs the turn."""
    tool_call_id: str
    turn_id: str
    messages: Sequence[UIMessage] = ()
    """The conversation so far, oldest first, with the call itself in the last message. Do not change it."""


class Tool:
    """Something that the model may call and that runs on the server.

    Calling the tool object calls its function: ``await get_weather("Paris")``.
    """

    def __init__(
        self,
        name: str,
        *,
        description: str,
        input_schema: Mapping[str, Any] | type[Any],
        execute: Callable[..., Any],
    ) -> None:
        """A tool from its parts.

        Args:
            name: What the model calls it. Providers accept letters, digits, ``_`` and ``-``, at most 64.
            description: Tells the model what it does and when to use it.
            input_schema: JSON Schema of an object, a pydantic model, a ``TypedDict`` or a dataclass.
            execute: ``execute(input)`` or ``execute(input, context)``, synchronous or not. ``input`` is an instance of
                the model or dataclass, or a ``dict``; a :class:`ToolContext` is passed when there is a second required
                parameter. Synchronous functions run in a worker thread.

        Raises:
            ConfigurationError: on first use, when ``input_schema`` describes no object or is no valid schema.
        """
        self._set_up(name, DeclaredDefinition(name, description, input_schema, execute), execute)

    def _set_up(self, name: str, definition: Definition, execute: Callable[..., Any]) -> None:
        self.name = name
        self.execute = execute
        """The function itself."""
        self._definition = definition
        self._spec: ToolSpec | None = None

    @property
    def description(self) -> str:
        """What the model is told that the tool does; may be empty."""
        return self._definition.description

    @property
    def spec(self) -> ToolSpec:
        """The tool as the model is told about it.

        Raises:
            ConfigurationError: the input schema cannot be made or used.
        """
        if self._spec is None:
            self._spec = ToolSpec(self.name, self._definition.description, self._definition.schema)
        return self._spec

    async def run(self, input: dict[str, Any], context: ToolContext) -> Any:
        """One call: checks the input, calls the function, and makes its result JSON.

        What the function raises comes out as it is. When the caller is cancelled, an asynchronous function is cancelled
        and a synchronous one is left to finish in its thread, its result unused.

        Args:
            input: What the model wrote. Not changed, and not shared with the function.
            context: Passed to functions that ask for it.

        Returns:
            A JSON value, sharing nothing with what the function returned.

        Raises:
            InvalidToolInput: the input does not fit; the text names every wrong field, for the model.
            ToolError: the result has no JSON form.
        """
        call = self._definition.bind(self.name, self.execute, input, context)
        return json_ready(await _invoke(call), self.name)

    def renamed(self, name: str) -> Tool:
        """The same tool under another name."""
        twin = copy.copy(self)
        twin.name = name
        twin._spec = None
        return twin

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Calls the function."""
        return self.execute(*args, **kwargs)

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.name}>"


async def _invoke(call: partial[Any]) -> Any:
    if _is_async(call.func):
        return await call()
    result = await anyio.to_thread.run_sync(call, abandon_on_cancel=True, limiter=_limiter())
    return await result if inspect.isawaitable(result) else result


def _is_async(function: Any) -> bool:
    while isinstance(function, partial):
        function = function.func
    return inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(type(function).__call__)


def _limiter() -> anyio.CapacityLimiter:
    try:
        return _threads.get()
    except LookupError:
        limiter = anyio.CapacityLimiter(MAX_TOOL_THREADS)
        _threads.set(limiter)
        return limiter
