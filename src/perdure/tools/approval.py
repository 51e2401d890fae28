"""Asks the application whether a tool call needs a person's approval. Fails closed.

Imports nothing of the modules beside it.
"""

from __future__ import annotations

import asyncio
import inspect
import logging
import typing
from collections.abc import Callable
from functools import partial
from types import FunctionType
from typing import Any

__all__ = ["NeedsApproval", "bound_to", "is_needed"]

logger = logging.getLogger(__name__)

NeedsApproval = bool | Callable[..., Any]
"""Always, never, or a function of the arguments that says so; it may be ``async``."""

_POSITIONAL = {inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD}


async def is_needed(tool: str, call: partial[Any], context: Any) -> bool:
    """Call the function with those of the tool's named arguments that it takes, and the context if it is annotated as
    taking one. One that fails counts as yes."""
    try:
        answer = call.func(*call.args, **_taken(call, context))
        return bool(await answer if inspect.isawaitable(answer) else answer)
    except (Exception, asyncio.CancelledError, SystemExit) as error:
        task = asyncio.current_task()
        if isinstance(error, asyncio.CancelledError) and task is not None and task.cancelling():
            raise
        # The application's code. Not to know whether a call is harmless must not make it so.
        logger.exception("needs_approval of tool %s failed: the call needs approval", tool)
        return True


def bound_to(needs: NeedsApproval, instance: Any, owner: type[Any] | None) -> NeedsApproval:
    """A function that takes ``self`` as a method of the object whose tool it stands before."""
    if not isinstance(needs, FunctionType) or needs.__code__.co_varnames[: needs.__code__.co_argcount][:1] != ("self",):
        return needs
    return typing.cast("NeedsApproval", needs.__get__(instance, owner))


def _taken(call: partial[Any], context: Any) -> dict[str, Any]:
    parameters = inspect.signature(call.func).parameters.values()
    if any(parameter.kind is inspect.Parameter.VAR_KEYWORD for parameter in parameters):
        taken = dict(call.keywords)
    else:
        names = {parameter.name for parameter in parameters}
        taken = {name: value for name, value in call.keywords.items() if name in names}
    filled = {parameter.name for parameter in list(parameters)[: len(call.args)]} | taken.keys()
    for parameter in parameters:
        if parameter.name not in filled and parameter.kind not in _POSITIONAL and _takes(call.func, parameter, context):
            taken[parameter.name] = context
    return taken


def _takes(function: Callable[..., Any], parameter: inspect.Parameter, context: Any) -> bool:
    """Whether a parameter is annotated with the context's class."""
    if parameter.annotation is inspect.Parameter.empty:
        return False
    hints = typing.get_type_hints(inspect.unwrap(getattr(function, "__func__", function)))
    return hints.get(parameter.name) is type(context)
