"""The class that users subclass: a small facade. What it says is read by the conversation; it holds no turn.

The hooks are in ``chat_hooks``.
"""

from __future__ import annotations

import asyncio
import contextlib
import warnings
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from typing import Any, Literal

from perdure.agent.base import Agent
from perdure.agent.chat_callbacks import ChatCallbacks
from perdure.agent.chat_hooks import ChatHooks
from perdure.agent.inputs import MessageInput
from perdure.agent.threads import in_loop
from perdure.agent.turn_config import TurnResult
from perdure.errors import ConfigurationError, TurnFailed
from perdure.models.contract import Chunk
from perdure.protocol.messages import UIMessage
from perdure.tools.merge import ToolSource

__all__ = ["Think"]


class Think(ChatHooks, Agent):
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
    truncation_step: float = 8
    """Of old messages the model is shown long tool outputs and texts cut; this is by how many messages the old part
    grows at once. ``math.inf`` shows everything whole (reference: engine §2.10)."""
    hydration_byte_budget: float = 32 * 1024 * 1024
    """Most bytes of the conversation that are held in memory and shown to the model: its newest messages, at least one.
    ``math.inf``, or a number that makes no sense, for no limit. Clients are sent the newest of these that fit
    ``Limits.window``."""
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

    # ── the conversation ────────────────────────────────────────────

    @property
    def messages(self) -> Sequence[UIMessage]:
        """The conversation so far, as clients are sent it: its newest stored messages, oldest first. For older ones
        see :meth:`get_messages`. Do not change them."""
        return self._bound.chat.messages()

    async def get_messages(self, *, before: str | None = None, limit: int | None = None) -> list[UIMessage]:
        """Stored messages of the conversation, however old, oldest first. They are copies.

        Args:
            before: Id of a message: only those before it. Default: up to the newest.
            limit: Most messages; the newest of them are given. Default: all.

        Raises:
            BadRequest: there is no message ``before``.
            StorageError: the store cannot be read.
        """
        return await self._bound.chat.page(before, limit)

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
        callback: ChatCallbacks | Callable[[Chunk], Any] | None = None,
        *,
        continuation: bool = False,
        signal: asyncio.Event | None = None,
    ) -> TurnResult:
        """Run one turn and wait for its end: on ``input``, or as a continuation.

        An empty text or list is skipped; a function is always asked, and what it gives answered. With a ``callback``
        this is :meth:`chat`.

        Raises:
            TypeError: both or neither of ``input`` and ``continuation``, or a continuation with a ``callback``.
            NestedTurn: called from inside a turn of this agent.
            BadRequest: a message cannot be used.
            TurnFailed: the turn ended with an error, and there is a ``callback`` that does not take errors.
        """
        if continuation == (input is not None):
            raise TypeError("run_turn() takes either an input or continuation=True.")
        if continuation and callback is not None:
            raise TypeError("run_turn() streams no continuation: leave out the callback.")
        driving = self._bound.chat.driving
        if continuation:
            return await driving.run("run_turn()", continuation=True, signal=signal)
        if not callable(input) and not input:
            return await driving.skip(callback)
        if callback is not None:
            return await driving.chat(input, callback, signal=signal, what="run_turn()")
        return await driving.run("run_turn()", inputs=input, signal=signal)

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
                elif item.status in {"error", "interrupted"}:
                    raise TurnFailed(item.error or "The turn failed.")

    async def chat(
        self,
        message: MessageInput | Callable[[Sequence[UIMessage]], Any],
        callback: ChatCallbacks | Callable[[Chunk], Any] | None = None,
        *,
        signal: asyncio.Event | None = None,
        tools: Any = None,
    ) -> TurnResult:
        """Answer ``message``.

        Args:
            message: A text (also an empty one), a message, several, or a function of the conversation that gives them.
            callback: A function that is given each chunk, or an object like :class:`~perdure.ChatCallbacks`.
            signal: Set it to stop the turn, as cancelling this call does.
            tools: Ignored with a warning: tools belong to the agent that runs the turn.

        Raises:
            TurnFailed: the turn ended with an error, and the callback does not take errors.
            NestedTurn: called from inside a turn of this agent.
            BadRequest: a message cannot be used.
            TypeError: ``callback`` cannot be one.
        """
        if tools is not None:
            warnings.warn(
                "chat(tools=…) is ignored: tools belong to the agent that runs the turn. Give them in its get_tools().",
                stacklevel=2,
            )
        return await self._bound.chat.driving.chat(message, callback, signal=signal)

    def cancel_chat(self, request_id: str) -> None:
        """Stop a turn, whether it runs or waits; what was said is kept. An unknown id does nothing."""
        in_loop(lambda: self._bound.chat.cancel(request_id))

    def cancel_all_chats(self) -> None:
        """Stop every turn."""
        in_loop(lambda: self._bound.chat.cancel_all())
