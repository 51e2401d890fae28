"""The contract of a tool: what the model is told about it, whether a call of it needs approval, how one call runs.

Imports the modules beside it. Knows no turn, no agent class, and not what becomes of a call that needs approval.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import anyio
import msgspec

from perdure.errors import ConfigurationError, ToolError
from perdure.models.contract import ToolSpec
from perdure.protocol.messages import UIMessage
from perdure.tools.approval import NeedsApproval, is_needed
from perdure.tools.definition import Definition
from perdure.tools.running import run_function
from perdure.tools.schemas import DeclaredDefinition

__all__ = ["Tool", "ToolContext"]


class ToolContext(msgspec.Struct, frozen=True, eq=False, kw_only=True):
    """The call that a tool is answering."""

    agent: Any
    """The agent that runs the turn."""
    tool_call_id: str
    turn_id: str
    messages: Sequence[UIMessage] = ()
    """The conversation so far, oldest first, with the call itself in the last message. Do not change it."""


class Tool:
    """Something that the model may call. It runs on the server; without a function, in the user's browser.

    Calling the tool object calls its function: ``await get_weather("Paris")``.
    """

    def __init__(
        self,
        name: str,
        *,
        description: str,
        input_schema: Mapping[str, Any] | type[Any],
        execute: Callable[..., Any] | None = None,
        needs_approval: NeedsApproval = False,
        timeout: float | None = None,
    ) -> None:
        """A tool from its parts.

        Args:
            name: Any text. Where it is more than 64 characters, or others than letters, digits, ``_`` and ``-``, the
                model is told a similar one.
            description: Tells the model what it does and when to use it.
            input_schema: JSON Schema of an object, a pydantic model, a ``TypedDict`` or a dataclass.
            execute: ``execute(input)`` or ``execute(input, context)``, synchronous or not. ``input`` is an instance of
                the model or dataclass, or a ``dict``; a :class:`ToolContext` is passed when there is a second required
                parameter. Synchronous functions run in a worker thread. An async generator streams: people see each
                value that it yields at once, and the last is the result. Without one it is a client tool: a call waits
                until a page gives its result.
            needs_approval: Whether a person has to approve a call before it runs: always, or when this function says
                so. It is called like ``execute``, may be ``async``, and a call for which it raises needs approval.
            timeout: Seconds that a call may take; without end by default. Then an asynchronous function is cancelled
                and a synchronous one left alone in its thread, and the model is told.

        Raises:
            ConfigurationError: ``timeout`` is no positive number; on first use, when ``input_schema`` describes no
                object or is no valid schema.
        """
        definition = DeclaredDefinition(name, description, input_schema, execute)
        self._set_up(name, definition, execute, needs_approval, timeout)

    def _set_up(
        self,
        name: str,
        definition: Definition,
        execute: Callable[..., Any] | None,
        needs_approval: NeedsApproval,
        timeout: float | None,
    ) -> None:
        needs: Any = needs_approval
        if not isinstance(needs, bool) and not callable(needs):
            raise ConfigurationError(f"needs_approval of tool {name} is {needs!r:.60}; give True, False or a function")
        if timeout is not None and not timeout > 0:
            raise ConfigurationError(
                f"tool {name} has a timeout of {timeout!r}; it must be a positive number of seconds"
            )
        self.name = name
        self.timeout = timeout
        """Seconds that a call may take."""
        self.execute = execute
        """The function itself; ``None`` for a client tool."""
        self.needs_approval = needs_approval
        """Whether a call needs a person's approval: always, never, or a function that says so."""
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

    def check(self, input: dict[str, Any]) -> None:
        """Check an input without a call.

        Raises:
            InvalidToolInput: it does not fit; the text names every wrong field, for the model.
        """
        self._definition.bind(self.name, _nothing, input, None)

    async def asks(self, input: dict[str, Any], context: ToolContext) -> bool:
        """Whether this call needs a person's approval. A function of the application that fails counts as yes.

        Raises:
            InvalidToolInput: the input does not fit.
        """
        if isinstance(self.needs_approval, bool):
            self.check(input)
            return self.needs_approval
        call = self._definition.bind(self.name, self.needs_approval, input, context)
        return await is_needed(self.name, call, context)

    async def run(
        self, input: dict[str, Any], context: ToolContext, progress: Callable[[Any], None] | None = None
    ) -> Any:
        """One call: checks the input, calls the function, and makes its result JSON.

        What the function raises comes out as it is. When the caller is cancelled, an asynchronous function is cancelled
        and a synchronous one is left to finish in its thread, its result unused. An async generator is closed.

        Args:
            input: What the model wrote. Not changed, and not shared with the function.
            context: Passed to functions that ask for it.
            progress: Given each value of a function that is, or returns, an async generator: JSON. The last value is
                the result. Of a generator that was awaited, or is synchronous, nothing is seen but the last value.

        Returns:
            A JSON value, sharing nothing with what the function returned.

        Raises:
            InvalidToolInput: the input does not fit; the text names every wrong field, for the model.
            ToolError: the call took longer than :attr:`timeout`, the result has no JSON form, or it is a client tool.
        """
        if self.execute is None:
            raise ToolError(f"Tool {self.name} does not run on the server.")
        call = self._definition.bind(self.name, self.execute, input, context)
        with anyio.move_on_after(self.timeout):
            return await run_function(call, self.name, progress)
        raise ToolError(f"Tool {self.name} took longer than {self.timeout:g} s and was stopped.")

    def renamed(self, name: str) -> Tool:
        """The same tool under another name."""
        twin = copy.copy(self)
        twin.name = name
        twin._spec = None
        return twin

    def ungated(self) -> Tool:
        """The same tool, asking for no approval."""
        twin = copy.copy(self)
        twin.needs_approval = False
        return twin

    def run_by(self, execute: Callable[..., Any]) -> Tool:
        """A client tool that runs on the server after all: ``execute(input, context)``, asking for no approval."""
        description, schema = self._definition.description, self._definition.schema
        return Tool(self.name, description=description, input_schema=schema, execute=execute)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Calls the function.

        Raises:
            TypeError: it is a client tool.
        """
        if self.execute is None:
            raise TypeError(f"Tool {self.name} has no function: it runs in the browser.")
        return self.execute(*args, **kwargs)

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.name}>"


def _nothing(*args: Any, **kwargs: Any) -> None:
    """Stands in for a function that is not to be called."""
