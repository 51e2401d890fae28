"""The hooks of a chat agent, as they are when the application has none: they change nothing."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from perdure.agent.turn_config import (
    ChatErrorContext,
    ChatResponse,
    StepConfig,
    StepContext,
    StepResult,
    ToolCallContext,
    ToolCallDecision,
    ToolCallResult,
    TurnConfig,
    TurnContext,
)
from perdure.models.contract import Chunk

__all__ = ["ChatHooks"]


class ChatHooks:
    """What :class:`~perdure.Think` asks and tells the application. Each may be ``async``.

    What a hook raises ends the turn with an error, unless it says otherwise.
    """

    def before_turn(self, ctx: TurnContext) -> TurnConfig | Any | None:
        """A turn is about to run. Give a :class:`~perdure.TurnConfig` to change it; raise to end it."""

    def before_step(self, ctx: StepContext) -> StepConfig | Any | None:
        """A step is about to be asked for. Give a :class:`~perdure.StepConfig` to change it."""

    def before_tool_call(self, ctx: ToolCallContext) -> ToolCallDecision | Any | None:
        """A server tool is about to run. Give ``allow(input)``, ``block(reason)`` or ``substitute(output)``; without,
        it runs. What it raises is the call's error."""

    def after_tool_call(self, result: ToolCallResult) -> Any:
        """A call of a server tool is over."""

    def on_step_finish(self, step: StepResult) -> Any:
        """A step is over."""

    def on_chunk(self, chunk: Chunk) -> Any:
        """The model has made a chunk. Do not change it."""

    def repair_tool_call(self, tool_name: str, input: Any, error: str) -> tuple[str, Mapping[str, Any]] | Any | None:
        """The model's call of a tool cannot be run. Give the name and arguments that were meant, or nothing."""

    def on_chat_response(self, response: ChatResponse) -> Any:
        """A turn is over and stored. The next one starts when this returns; what it raises is logged."""

    def on_chat_error(self, error: Exception, ctx: ChatErrorContext) -> str | Any | None:
        """A turn failed. Give the text that people are shown, or nothing for the usual one."""

    def classify_chat_error(self, error: Exception, ctx: ChatErrorContext) -> str | Any | None:
        """A turn failed: say what kind of error it is, like ``"rate_limit"``, for :meth:`on_chat_error`."""
