"""Asks the agent's class what a turn runs with. User code is called from here, synchronous or not."""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

from perdure.agent.job import Job, Plan, only
from perdure.agent.think import Think
from perdure.agent.turn import Turn
from perdure.agent.turn_config import TurnConfig, TurnContext
from perdure.errors import ConfigurationError
from perdure.models.contract import HistoryMessage
from perdure.models.registry import resolve
from perdure.tools import merge

__all__ = ["call", "overridden", "prepare"]


async def prepare(think: Think, turn: Turn, history: Sequence[HistoryMessage]) -> Job:
    """What the turn runs with: what the class says, changed by ``before_turn``.

    Raises:
        ConfigurationError: the class names a model or tools that cannot be used.
        Exception: what the application raises.
    """
    system = await call(think.get_system_prompt)
    tools = merge(await call(think.get_tools))
    model = await call(think.get_model)
    config = TurnConfig()
    if overridden(think, Think.before_turn):
        context = TurnContext(
            request_id=turn.id,
            trigger=turn.trigger,
            continuation=turn.continuation,
            system=system,
            messages=[entry.message for entry in history],
            tools=tools,
            model=model,
            body=turn.body,
        )
        config = _checked(await call(think.before_turn, context))
    added = merge(config.tools or {})
    active = only(tools, config.active_tools)
    plan = Plan(
        model=resolve(model if config.model is None else config.model),
        system=next((text for text in (config.instructions, config.system) if text is not None), system),
        tools=merge(active, added) if added else active,
        settings=config.settings(),
        messages=None if config.messages is None else [HistoryMessage.of(message) for message in config.messages],
    )
    return Job(
        agent=think,
        turn_id=turn.id,
        plan=plan,
        history=history,
        max_steps=think.max_steps if config.max_steps is None else config.max_steps,
        added_tools=frozenset(added),
        send_reasoning=think.send_reasoning if config.send_reasoning is None else config.send_reasoning,
        metadata=think.message_metadata if config.message_metadata is None else config.message_metadata,
        stop_when=[_awaited(condition) for condition in config.stop_when],
        before_step=_hook(think, Think.before_step),
        before_tool_call=_hook(think, Think.before_tool_call),
        after_tool_call=_hook(think, Think.after_tool_call),
        on_step_finish=_hook(think, Think.on_step_finish),
        on_chunk=_hook(think, Think.on_chunk),
        repair_tool_call=(
            _hook(think, Think.repair_tool_call)
            if config.repair_tool_call is None
            else _awaited(config.repair_tool_call)
        ),
    )


def _checked(config: Any) -> TurnConfig:
    if config is None:
        return TurnConfig()
    if isinstance(config, TurnConfig):
        return config
    raise ConfigurationError(f"before_turn gave {type(config).__name__}; it must give a TurnConfig, or nothing.")


async def call(function: Callable[..., Any], *args: Any) -> Any:
    """Call user code, synchronous or not."""
    result = function(*args)
    return await result if inspect.isawaitable(result) else result


def overridden(think: Think, hook: Callable[..., Any]) -> bool:
    """Whether the application has this hook."""
    return getattr(type(think), hook.__name__) is not hook


def _hook(think: Think, hook: Callable[..., Any]) -> Callable[..., Awaitable[Any]] | None:
    return _awaited(getattr(think, hook.__name__)) if overridden(think, hook) else None


def _awaited(function: Callable[..., Any]) -> Callable[..., Awaitable[Any]]:
    def asked(*args: Any) -> Awaitable[Any]:
        return call(function, *args)

    return asked
