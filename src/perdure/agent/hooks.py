"""Asks the agent's class what a turn runs with. User code is called from here, synchronous or not."""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

from perdure.agent import checks
from perdure.agent.job import Job, Plan, only
from perdure.agent.think import Think
from perdure.agent.tool_runner import Call
from perdure.agent.turn import Turn
from perdure.agent.turn_config import TurnConfig, TurnContext
from perdure.chat.interactions import Interaction
from perdure.models.contract import HistoryMessage
from perdure.tools import ToolSet, merge

__all__ = ["call", "overridden", "prepare", "sources"]


async def prepare(
    think: Think,
    turn: Turn,
    history: Sequence[HistoryMessage],
    new_id: Callable[[], str],
    approved: Sequence[Interaction] = (),
) -> Job:
    """What the turn runs with: what the class says, changed by ``before_turn``.

    Args:
        think: The agent.
        turn: The turn.
        history: The conversation that the model will be shown.
        new_id: Makes ids for tool calls that come without one of their own.
        approved: Calls that a person approved, to be run first.

    Raises:
        ConfigurationError: the class or a hook gives something that cannot be used.
        Exception: what the application raises.
    """
    system = checks.text(await call(think.get_system_prompt), "The system prompt")
    tools = merge(*await sources(think, turn.client_tools))
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
        config = checks.given(await call(think.before_turn, context), TurnConfig, "before_turn()") or config
    added = merge() if config.tools is None else checks.tools(config.tools, "before_turn() as tools")
    return Job(
        agent=think,
        turn_id=turn.id,
        plan=_plan(config, model, system, tools, added),
        history=history,
        instead=checks.history(config.messages, "The messages of before_turn()"),
        new_id=new_id,
        approved=[Call(each.call, each.tool, each.arguments) for each in approved],
        tools=merge(tools, added),
        max_steps=checks.positive(think.max_steps if config.max_steps is None else config.max_steps, "max_steps"),
        added_tools=frozenset(added),
        send_reasoning=think.send_reasoning if config.send_reasoning is None else config.send_reasoning,
        metadata=checks.metadata(
            think.message_metadata if config.message_metadata is None else config.message_metadata, "message_metadata"
        ),
        stop_when=[_awaited(condition) for condition in checks.conditions(config.stop_when, "stop_when")],
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


async def sources(think: Think, client_tools: ToolSet) -> list[ToolSet]:
    """The tools that a turn starts with, source by source: a later one replaces an earlier one's tools by name.

    The order is that of the product: workspace, fetch, ``get_tools``, extensions, session, skills, MCP, client; then
    what ``before_turn`` adds.
    """
    return [checks.tools(await call(think.get_tools), "get_tools()"), client_tools]


def _plan(config: TurnConfig, model: Any, system: str, tools: ToolSet, added: ToolSet) -> Plan:
    changed = next((text for text in (config.instructions, config.system) if text is not None), None)
    active = only(tools, checks.names(config.active_tools, "active_tools of before_turn()"))
    return Plan(
        model=(
            checks.model(model, "get_model()")
            if config.model is None
            else checks.model(config.model, "before_turn() as model")
        ),
        system=system if changed is None else checks.text(changed, "The system prompt of before_turn()"),
        tools=merge(active, added) if added else active,
        settings=checks.settings(config),
    )


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
