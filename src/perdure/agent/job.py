"""What a turn runs with: model, prompt, tools, and the application's hooks, put together before its first step."""

from __future__ import annotations

import copy
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from perdure.agent import checks
from perdure.agent.tool_runner import Call
from perdure.agent.turn_config import (
    StepConfig,
    StepContext,
    StepResult,
    ToolCallContext,
    ToolCallDecision,
    ToolCallResult,
)
from perdure.models.contract import ChatModel, Chunk, HistoryMessage
from perdure.tools import ToolSet

__all__ = ["Job", "Plan", "only"]


@dataclass(frozen=True, kw_only=True, slots=True)
class Plan:
    """What one step is asked with."""

    model: ChatModel
    system: str
    tools: ToolSet
    """What the model may call."""
    settings: Mapping[str, Any]
    messages: Sequence[HistoryMessage] | None = None
    """All that the model is shown in this step, instead of the conversation with the answer so far."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Job:
    """What a turn runs with. A hook that the application does not have is ``None``."""

    agent: Any
    """The agent, for tools."""
    turn_id: str
    plan: Plan
    """What a step is asked with, unless the application changes it."""
    history: Sequence[HistoryMessage]
    """The conversation before the answer."""
    instead: Sequence[HistoryMessage] | None = None
    """What the model is shown instead of that."""
    new_id: Callable[[], str]
    """Makes ids for tool calls that come without one of their own."""
    max_steps: int
    approved: Sequence[Call] = ()
    """Calls that a person approved: they run first …"""
    tools: ToolSet
    """… with these: all tools of the turn, also those that the model may not call in it."""
    added_tools: frozenset[str] = frozenset()
    """Tools of this turn that no list of active tools takes away."""
    send_reasoning: bool = True
    metadata: Mapping[str, Any] | None = None
    """Of the assistant message."""
    stop_when: Sequence[Callable[[Sequence[StepResult]], Awaitable[Any]]] = ()
    before_step: Callable[[StepContext], Awaitable[StepConfig | None]] | None = None
    before_tool_call: Callable[[ToolCallContext], Awaitable[ToolCallDecision | None]] | None = None
    after_tool_call: Callable[[ToolCallResult], Awaitable[Any]] | None = None
    on_step_finish: Callable[[StepResult], Awaitable[Any]] | None = None
    on_chunk: Callable[[Chunk], Awaitable[Any]] | None = None
    repair_tool_call: Callable[[str, Any, str], Awaitable[Any]] | None = None

    async def plan_step(self, steps: Sequence[StepResult], history: Callable[[], Sequence[HistoryMessage]]) -> Plan:
        """What the next step is asked with. ``history`` gives what the model is shown so far.

        Raises:
            ConfigurationError: ``before_step`` gave something that cannot be used.
        """
        if self.before_step is None:
            return self.plan
        plan = self.plan
        context = StepContext(
            request_id=self.turn_id,
            number=len(steps),
            steps=tuple(steps),
            messages=[entry.message for entry in history()],
            model=plan.model,
            system=plan.system,
        )
        config = checks.given(await self.before_step(context), StepConfig, "before_step()")
        return plan if config is None else self._changed(plan, config)

    def _changed(self, plan: Plan, config: StepConfig) -> Plan:
        settings, messages = plan.settings, checks.history(config.messages, "The messages of before_step()")
        if config.tool_choice is not None:
            settings = {**settings, "tool_choice": config.tool_choice}
        active = checks.names(config.active_tools, "active_tools of before_step()")
        return replace(
            plan,
            model=plan.model if config.model is None else checks.model(config.model, "before_step()"),
            system=plan.system if config.system is None else checks.text(config.system, "system of before_step()"),
            tools=only(plan.tools, active, self.added_tools),
            settings=settings,
            messages=messages,
        )

    async def step_finished(self, step: StepResult) -> None:
        """A step is over."""
        if self.on_step_finish is not None:
            await self.on_step_finish(step)

    async def is_over(self, steps: Sequence[StepResult]) -> bool:
        """Whether a condition of the application ends the turn here."""
        for condition in self.stop_when:
            if await condition(steps):
                return True
        return False

    async def repair(self, call: Call, error: str) -> Call | None:
        """What was meant by a call that cannot be run; ``None`` when nobody knows.

        Raises:
            ConfigurationError: ``repair_tool_call`` gave something that is no call.
        """
        if self.repair_tool_call is None:
            return None
        repaired = await self.repair_tool_call(call.tool, copy.deepcopy(call.input), error)
        return None if repaired is None else Call(call.id, *checks.call(repaired, "repair_tool_call()"))


def only(tools: ToolSet, names: Sequence[str] | None, always: frozenset[str] = frozenset()) -> ToolSet:
    """The tools among ``tools`` that are active: those in ``names`` and ``always``; all of them without a list."""
    if names is None:
        return tools
    wanted = {*names, *always}
    return ToolSet({name: tool for name, tool in tools.items() if name in wanted})
