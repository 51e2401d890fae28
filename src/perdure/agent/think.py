"""The class that users subclass: a small facade. What it says is read by the conversation; it holds no turn."""

from __future__ import annotations

import asyncio
import contextlib
import warnings
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from typing import Any, Literal

from perdure.agent.base import Agent
from perdure.agent.inputs import MessageInput
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
    TurnResult,
)
from perdure.errors import ConfigurationError, TurnFailed
from perdure.models.contract import Chunk
from perdure.protocol.messages import UIMessage
from perdure.tools.merge import ToolSource

__all__ = ["Think"]


class Think(Agent):
    """A chat agent. Subclass it, say which model answers and which tools it has."""

    model: Any = None
    """What answers: ``"provider:name"``, ``"demo"``, a :class:`~perdure.ChatModel`, or a pydantic-ai ``Model``."""
    system_prompt: str = "You are a helpful assistant."
    """What the model is told first."""
    max_steps: int = 10
    """Most requests to the model in one turn (reference: engine §1.1)."""
    send_reasoning: bool = True
    """Whether the model's reasoning goes to clients and into the conversation."""
    message_metadata: Mapping[str, Any] | None = None
    """Metadata of every assistant message."""
    store_messages: bool = False
    """Whether what is said goes into OpenTelemetry spans."""
    store_tools: bool = False
    """Whether inputs and outputs of tools do."""

    # ── what a turn runs with ───────────────────────────────────────

    def get_model(self) -> Any:
        """What answers. Called for each turn; may be ``async``. Default: the class attribute ``model``.

        Raises:
            ConfigurationError: there is no ``model``.
        """
        if self.model is None:
            raise ConfigurationError(
                f'{type(self).__name__} has no model. Set model = "provider:name" in the class '
                '(model = "demo" needs no key), or override get_model().'
            )
        return self.model

    def get_system_prompt(self) -> Any:
        """What the model is told first: a ``str``. Called for each turn; may be ``async``."""
        return self.system_prompt

    def get_tools(self) -> ToolSource:
        """The server's tools: a list, or a dict whose keys are the names. Called for each turn; may be ``async``."""
        return []

    # ── hooks; each may be ``async`` ────────────────────────────────

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

    # ── the conversation ────────────────────────────────────────────

    @property
    def messages(self) -> Sequence[UIMessage]:
        """The conversation so far: stored messages, oldest first. Do not change them."""
        return self._bound.chat.messages()

    @property
    def active_turn(self) -> str | None:
        """Request id of the turn that runs."""
        turn = self._bound.chat.active
        return None if turn is None else turn.id

    async def add_messages(
        self,
        messages: MessageInput | Callable[[Sequence[UIMessage]], Any],
        *,
        parent: str | None = None,
        mode: Literal["append", "upsert"] = "append",
    ) -> None:
        """Add to the conversation without a turn; returns when it is stored. Works in the middle of a turn.

        Args:
            messages: A text, a message, several, or a function of the conversation that gives them.
            parent: Id of the message to follow; the last one by default.
            mode: What becomes of a message whose id is known: left alone, or replaced in its place.

        Raises:
            BadRequest: a message cannot be used, or there is no message ``parent``.
        """
        await self._bound.chat.driving.add(messages, parent=parent, mode=mode)

    async def clear_messages(self) -> None:
        """Forget the conversation and stop every turn; all clients are told. Returns when it is stored."""
        chat = self._bound.chat
        chat.clear()
        await chat.stored_messages()

    # ── turns ───────────────────────────────────────────────────────

    async def save_messages(
        self,
        messages: MessageInput | Callable[[Sequence[UIMessage]], Any],
        *,
        signal: asyncio.Event | None = None,
    ) -> TurnResult:
        """Add messages and answer them. An empty list answers what is there.

        Args:
            messages: A text, a message, several, or a function that is given the conversation when the turn starts.
            signal: Set it to stop the turn. The messages are stored even when it is set from the beginning.

        Raises:
            NestedTurn: called from inside a turn of this agent.
            BadRequest: a message cannot be used.
        """
        return await self._bound.chat.driving.run("save_messages()", inputs=messages, signal=signal)

    async def continue_last_turn(
        self, body: Mapping[str, Any] | None = None, *, signal: asyncio.Event | None = None
    ) -> TurnResult:
        """Go on with the last answer, in the same message. Skipped when the last message is no answer.

        Raises:
            NestedTurn: called from inside a turn of this agent.
        """
        return await self._bound.chat.driving.run("continue_last_turn()", continuation=True, body=body, signal=signal)

    async def run_turn(
        self,
        input: MessageInput | Callable[[Sequence[UIMessage]], Any] | None = None,
        *,
        continuation: bool = False,
        signal: asyncio.Event | None = None,
    ) -> TurnResult:
        """Run one turn and wait for its end: on ``input``, or as a continuation.

        An empty text or list is skipped; a function is always asked, and what it gives answered.

        Raises:
            TypeError: both or neither of ``input`` and ``continuation``.
            NestedTurn: called from inside a turn of this agent.
            BadRequest: a message cannot be used.
        """
        if continuation == (input is not None):
            raise TypeError("run_turn() takes either an input or continuation=True.")
        if continuation:
            return await self.continue_last_turn(signal=signal)
        if not callable(input) and not input:
            return TurnResult(request_id="", status="skipped")
        return await self._bound.chat.driving.run("run_turn()", inputs=input, signal=signal)

    async def stream(
        self,
        message: MessageInput | Callable[[Sequence[UIMessage]], Any],
        *,
        signal: asyncio.Event | None = None,
    ) -> AsyncGenerator[Chunk]:
        """Answer ``message`` and give the chunks as they are made: ``async for chunk in child.stream("…")``.

        Leaving the loop early stops the turn. Every connected tab sees it as well.

        Raises:
            TurnFailed: the turn ended with an error.
            NestedTurn: called from inside a turn of this agent.
        """
        async with contextlib.aclosing(self._bound.chat.driving.stream(message, signal=signal)) as items:
            async for item in items:
                if not isinstance(item, TurnResult):
                    yield item
                elif item.status == "error":
                    raise TurnFailed(item.error or "The turn failed.")

    async def chat(
        self,
        message: MessageInput | Callable[[Sequence[UIMessage]], Any],
        callback: Callable[[Chunk], Any] | None = None,
        *,
        signal: asyncio.Event | None = None,
        tools: Any = None,
    ) -> TurnResult:
        """Answer ``message``; ``callback`` is given each chunk, and may be ``async``.

        Tools belong to the agent that runs the turn: ``tools`` is ignored with a warning.

        Raises:
            TurnFailed: the turn ended with an error.
            NestedTurn: called from inside a turn of this agent.
        """
        if tools is not None:
            warnings.warn(
                "chat(tools=…) is ignored: tools belong to the agent that runs the turn. Give them in its get_tools().",
                stacklevel=2,
            )
        return await self._bound.chat.driving.chat(message, callback, signal=signal)

    def cancel_chat(self, request_id: str) -> None:
        """Stop a turn, whether it runs or waits; what was said is kept. An unknown id does nothing."""
        self._bound.chat.cancel(request_id)

    def cancel_all_chats(self) -> None:
        """Stop every turn."""
        self._bound.chat.cancel_all()
