"""Asks the agent's class what a turn runs with. User code is called here, synchronous or not."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from typing import Any

from perdure.agent.loop import Job
from perdure.agent.think import Think
from perdure.agent.turn import Turn
from perdure.models.contract import HistoryMessage
from perdure.models.registry import resolve
from perdure.tools import merge

__all__ = ["prepare"]


async def prepare(think: Think, turn: Turn, history: Sequence[HistoryMessage]) -> Job:
    """What the turn runs with: model, system prompt, tools.

    Raises:
        ConfigurationError: the class names a model or tools that cannot be used.
    """
    return Job(
        model=resolve(await _call(think.get_model)),
        system=await _call(think.get_system_prompt),
        tools=merge(await _call(think.get_tools)),
        history=history,
        max_steps=think.max_steps,
        agent=think,
        turn_id=turn.id,
    )


async def _call(function: Callable[[], Any]) -> Any:
    result = function()
    return await result if inspect.isawaitable(result) else result
