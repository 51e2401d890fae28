"""``@tool``: a function or a method as a tool. Importing and applying it reads no signature. Imports the contract."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any, Concatenate, Generic, ParamSpec, TypeVar, cast, overload

from perdure.tools.approval import NeedsApproval, bound_to
from perdure.tools.contract import Tool
from perdure.tools.signature import FunctionDefinition

__all__ = ["FunctionTool", "tool"]

P = ParamSpec("P")
Q = ParamSpec("Q")
R = TypeVar("R")
S = TypeVar("S")


class FunctionTool(Tool, Generic[P, R]):
    """A function as a tool: still callable like the function, and bound to its object when it is a method."""

    def __init__(
        self,
        function: Callable[P, R],
        *,
        name: str | None = None,
        description: str | None = None,
        needs_approval: NeedsApproval = False,
        timeout: float | None = None,
    ) -> None:
        """A tool from a function.

        Args:
            function: Its parameters are the input. One that is annotated :class:`~perdure.tools.ToolContext` receives
                the context and is hidden from the model.
            name: Instead of the function's.
            description: Instead of the docstring's.
            needs_approval: Whether a person has to approve a call before it runs: always, or when this function says
                so. It is given those of the tool's arguments that it names, the context if a parameter is annotated
                so, and ``self`` before a method; it may be ``async``.
            timeout: Seconds that a call may take.
        """
        self.execute: Callable[..., Any]
        self._definition: FunctionDefinition
        definition = FunctionDefinition(function, description)
        self._set_up(name or _name(function), definition, function, needs_approval, timeout)
        self.__doc__ = function.__doc__
        self.__wrapped__ = function

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        """Calls the function."""
        return self.execute(*args, **kwargs)

    @overload
    def __get__(self, instance: None, owner: type[Any]) -> FunctionTool[P, R]: ...
    @overload
    def __get__(
        self: FunctionTool[Concatenate[S, Q], R], instance: S, owner: type[Any] | None = None
    ) -> FunctionTool[Q, R]: ...
    def __get__(self, instance: Any, owner: type[Any] | None = None) -> FunctionTool[..., Any]:
        """The tool of one object: ``self.delete_file`` runs with that ``self``."""
        bind = getattr(self.execute, "__get__", None)
        function = self.execute if bind is None else bind(instance, owner)
        if function is self.execute:
            return self
        bound = cast("FunctionTool[..., Any]", copy.copy(self))
        bound.execute = bound.__wrapped__ = function
        bound.needs_approval = bound_to(self.needs_approval, instance, owner)
        bound._definition = self._definition.bound_to(function)
        bound._spec = None
        return bound


@overload
def tool(function: Callable[P, R], /) -> FunctionTool[P, R]: ...
@overload
def tool(
    *,
    name: str | None = None,
    description: str | None = None,
    needs_approval: NeedsApproval = False,
    timeout: float | None = None,
) -> Callable[[Callable[P, R]], FunctionTool[P, R]]: ...
def tool(
    function: Callable[..., Any] | None = None,
    /,
    *,
    name: str | None = None,
    description: str | None = None,
    needs_approval: NeedsApproval = False,
    timeout: float | None = None,
) -> Any:
    """Makes a function or a method a tool: ``@tool`` or ``@tool(name=…, description=…, needs_approval=…, timeout=…)``.

    The model sees the parameters with their types and defaults, and the docstring (google, numpy or sphinx style): its
    text as the description of the tool, its entries for the parameters as theirs. A parameter annotated
    :class:`~perdure.tools.ToolContext` receives the context of the call. Synchronous functions run in a worker thread.

    An async generator streams: people see each value that it yields at once, and the last is the result. A call that
    takes longer than ``timeout`` seconds is stopped, and the model is told.

    With ``needs_approval`` a person is asked first: always with ``True``; with a function, when it gives something true
    for the arguments: ``needs_approval=lambda path: path.startswith("/important/")``. It may be ``async``, names those
    of the tool's arguments that it wants (and ``self`` before a method, and a parameter annotated ``ToolContext``), and
    a call for which it raises needs approval.

    The signature is read on first use, so an unusable one raises
    :class:`~perdure.errors.ConfigurationError` there and not here.
    """
    if function is not None:
        return FunctionTool(function)

    def decorate(function: Callable[P, R]) -> FunctionTool[P, R]:
        return FunctionTool(
            function, name=name, description=description, needs_approval=needs_approval, timeout=timeout
        )

    return decorate


def _name(function: Any) -> str:
    while not hasattr(function, "__name__") and hasattr(function, "func"):
        function = function.func
    return cast("str", getattr(function, "__name__", type(function).__name__))
