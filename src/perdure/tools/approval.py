"""Asks the application whether a tool call needs a person's approval. Fails closed.

Imports nothing of the modules beside it.
"""

from __future__ import annotations

import inspect
import logging
from collections.abc import Callable
from functools import partial
from typing import Any

__all__ = ["NeedsApproval", "is_needed"]

logger = logging.getLogger(__name__)

NeedsApproval = bool | Callable[..., Any]
"""Always, never, or a function of the arguments that says so; it may be ``async``."""


async def is_needed(tool: str, call: partial[Any]) -> bool:
    """Call the function with those of the tool's named arguments that it takes. One that fails counts as yes."""
    try:
        answer = call.func(*call.args, **_taken(call))
        return bool(await answer if inspect.isawaitable(answer) else answer)
    except Exception:
        # The application's code. Not to know whether a call is harmless must not make it so.
        logger.exception("needs_approval of tool %s failed: the call needs approval", tool)
        return True


def _taken(call: partial[Any]) -> dict[str, Any]:
    parameters = inspect.signature(call.func).parameters.values()
    if any(parameter.kind is inspect.Parameter.VAR_KEYWORD for parameter in parameters):
        return call.keywords
    names = {parameter.name for parameter in parameters}
    return {name: value for name, value in call.keywords.items() if name in names}
