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
from perdure.agent.caller_tools import ClientTool, ClientToolCall
from perdure.agent.chat_callbacks import ChatCallbacks
from perdure.agent.chat_hooks import ChatHooks
from perdure.agent.connection import Connection
from perdure.agent.inputs import MessageInput
from perdure.agent.threads import in_loop
from perdure.agent.turn_config import PendingApproval, TurnResult
from perdure.chat.concurrency import Strategy
from perdure.errors import ConfigurationError, TurnFailed
from perdure.models.contract import Chunk
from perdure.protocol.messages import UIMessage
from perdure.tools.merge import ToolSource

__all__ = ["EXPIRE", "ChatFrameKind", "Think"]

EXPIRE = "_expire_approval"
"""The method that is called when a question has expired."""
EXPIRED = "The approval request expired: nobody decided in time."
"""The reason that the model is given then."""

ChatFrameKind = Literal["request", "result", "approval", "clear", "cancel"]
"""What a client wants: an answer, to give the result of a tool call, to approve or deny one, to forget the
conversation, to stop a turn."""


class Think(ChatHooks, Agent):
    """A chat agent. Subclass it, say which model answers and which tools it has."""

    model: Any = None
    """What answers: ``"provider:name"``, ``"demo"``, a :class:`~perdure.ChatModel`, or a pydantic-ai ``Model``."""
    system_prompt: str = "You are a helpful assistant."
    """What the model is told first."""
    max_steps: int = 10
    """Most requests to the model in one turn (reference: engine §1.1)."""
    message_concurrency: Strategy | Mapping[str, Any] = "queue"
    """What becomes of a message that a client sends while a turn runs or waits:

    ``"queue"``: it waits and is answered.
    ``"latest"``: it waits; when another comes before its turn has begun, only that one is answered. People go on seeing
    the others, the model does not.
    ``"merge"``: the same, but the model sees them all.
    :class:`~perdure.Debounce`: like ``"latest"``, and not before it has been quiet for a while. A mapping as in
    TypeScript will do.
    ``"drop"``: it is not taken; the sender's page shows the conversation without it.

    Read with each message, so it can be set in an object as well. All else that starts turns just waits its turn.
    """
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
    approval_ttl: float | None = None
    """Seconds after which a question whether a tool may run is answered with no by itself. Default: never."""
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

    def accepts_chat_frame(self, connection: Connection, kind: ChatFrameKind) -> bool:
        """Whether a client may do this. What is refused changes nothing, and its sender's page shows again what is
        stored; a refused request ends with an error. Watching is not asked for.

        Called between a frame's arrival and its handling, where nothing may wait: it cannot be ``async``. What it
        raises is logged, and refuses.

        Args:
            connection: Who: see :attr:`Connection.readonly`, ``connection.request``, ``connection.state``.
            kind: ``"request"``: ask, edit or ask for another answer; ``"result"``: give the result of a tool call;
                ``"approval"``: approve or deny one; ``"clear"``: forget the conversation; ``"cancel"``: stop a turn.
        """
        return True

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

    # ── tool calls that wait for a person ───────────────────────────

    def has_pending_interaction(self) -> bool:
        """Whether a tool call waits for a person or a page."""
        return self._bound.chat.answering.awaited

    async def wait_until_stable(self, timeout: float | None = None) -> bool:  # noqa: ASYNC109 - the original's name
        """Wait until nothing goes on: no turn runs or waits, none is about to go on after answers, and no tool call
        waits for a person or a page.

        Args:
            timeout: Seconds; without end by default.

        Returns:
            False when the time was over first.

        Raises:
            NestedTurn: called from inside a turn of this agent.
        """
        return await self._bound.chat.driving.rest(timeout)

    def pending_approvals(self) -> list[PendingApproval]:
        """The tool calls that wait for a person's decision, in the order in which they were asked."""
        return self._bound.chat.answering.pending()

    async def approve(self, tool_call_id: str, input: Mapping[str, Any] | None = None, *, go_on: bool = True) -> bool:
        """Let a tool call run; returns when the decision is stored. False when the call does not wait for one.

        Args:
            tool_call_id: Which call.
            input: The arguments to run with instead of the model's; people see them in the call.
            go_on: Whether the conversation goes on once every call of the step is answered: the call runs then.

        Raises:
            InvalidToolInput: ``input`` does not fit the tool: the call still waits.
        """
        decide = self._bound.chat.answering.decide
        return await decide(tool_call_id, approved=True, by="agent", go_on=go_on, edited=input)

    async def reject(self, tool_call_id: str, reason: str | None = None, *, go_on: bool = True) -> bool:
        """Do not let a tool call run: the model is told, with the reason. Otherwise as :meth:`approve`."""
        decide = self._bound.chat.answering.decide
        return await decide(tool_call_id, approved=False, by="agent", go_on=go_on, reason=reason)

    async def _expire_approval(self, approval_id: str) -> None:
        answering = self._bound.chat.answering
        for each in answering.pending():
            # The id of a call may be used again after a clear; that of a question is not.
            if each.approval_id == approval_id:
                await answering.decide(each.tool_call_id, approved=False, by="expiry", go_on=True, reason=EXPIRED)

    # ── turns ───────────────────────────────────────────────────────

    async def save_messages(
        self,
        messages: MessageInput | Callable[[Sequence[UIMessage]], Any],
        *,
        signal: asyncio.Event | None = None,
    ) -> TurnResult:
        """Add messages and answer them. An empty list answers what is there; skipped when nothing is.

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
        client_tools: Sequence[ClientTool] = (),
        on_client_tool_call: Callable[[ClientToolCall], Any] | None = None,
    ) -> AsyncGenerator[Chunk]:
        """Answer ``message`` and give the chunks as they are made: ``async for chunk in child.stream("…")``.

        Leaving the loop early stops the turn. Every connected tab sees it as well. For the arguments see :meth:`chat`.

        Raises:
            TurnFailed: the turn ended with an error.
            NestedTurn: called from inside a turn of this agent.
            ConfigurationError: ``client_tools`` cannot be used.
        """
        driving = self._bound.chat.driving
        own = driving.caller_tools(client_tools, on_client_tool_call)
        async with contextlib.aclosing(driving.stream(message, signal=signal, own=own)) as items:
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
        client_tools: Sequence[ClientTool] = (),
        on_client_tool_call: Callable[[ClientToolCall], Any] | None = None,
        tools: Any = None,
    ) -> TurnResult:
        """Answer ``message``.

        Args:
            message: A text (also an empty one), a message, several, or a function of the conversation that gives them.
            callback: A function that is given each chunk, or an object like :class:`~perdure.ChatCallbacks`.
            signal: Set it to stop the turn, as cancelling this call does. A client tool that runs then is not
                cancelled: the turn ends when it is over.
            client_tools: Tools that the caller runs, for this turn only: made with :func:`~perdure.client_tool`, or
                ``{"name": …, "description": …, "parameters": JSON Schema}``. They replace the agent's tools of the same
                names. Nothing of them is stored, and no approval is asked for.
            on_client_tool_call: Runs one call of them, and gives its result: a JSON value. May be ``async``; otherwise
                it runs in a worker thread. What it raises is the call's error, and the model goes on. Without it their
                calls stay without a result: the turn ends with them, and the next one makes them errors.
            tools: Ignored with a warning: tools belong to the agent that runs the turn.

        Raises:
            TurnFailed: the turn ended with an error, and the callback does not take errors.
            NestedTurn: called from inside a turn of this agent.
            BadRequest: a message cannot be used.
            TypeError: ``callback`` cannot be one.
            ConfigurationError: ``client_tools`` cannot be used.
        """
        if tools is not None:
            warnings.warn(
                "chat(tools=…) is ignored: tools belong to the agent that runs the turn. Give them in its get_tools().",
                stacklevel=2,
            )
        driving = self._bound.chat.driving
        own = driving.caller_tools(client_tools, on_client_tool_call)
        return await driving.chat(message, callback, signal=signal, own=own)

    def cancel_chat(self, request_id: str) -> None:
        """Stop a turn, whether it runs or waits; what was said is kept. An unknown id does nothing."""
        in_loop(lambda: self._bound.chat.cancel(request_id))

    def cancel_all_chats(self) -> None:
        """Stop every turn."""
        in_loop(lambda: self._bound.chat.cancel_all())
