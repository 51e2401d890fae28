"""Turns and messages that the server's own code asks for (reference: engine §1.6)."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from typing import Any, Literal

import anyio

from perdure.agent.caller_tools import CallerTools, ClientTool, Executor
from perdure.agent.chat_callbacks import INTERRUPTED, callbacks_of
from perdure.agent.hooks import call
from perdure.agent.inputs import MessageInput, as_messages
from perdure.agent.overtaking import settled_in
from perdure.agent.room import Room
from perdure.agent.turn import Turn
from perdure.agent.turn_config import TurnResult
from perdure.agent.turns import Turns
from perdure.errors import BadRequest
from perdure.models.contract import Chunk
from perdure.protocol import codec
from perdure.protocol.messages import UIMessage
from perdure.storage.contract import Operation

__all__ = ["Driving"]


class Driving:
    """What ``Think``'s methods do."""

    def __init__(self, room: Room, turns: Turns) -> None:
        self._room = room
        self._turns = turns

    async def run(
        self,
        what: str,
        *,
        inputs: MessageInput | Callable[..., Any] | None = None,
        continuation: bool = False,
        body: Mapping[str, Any] | None = None,
        trigger: str = "programmatic",
        signal: asyncio.Event | None = None,
    ) -> TurnResult:
        """Run a turn and wait for its end. Cancelling the wait, or setting ``signal``, stops the turn.

        Raises:
            NestedTurn: called from inside a turn of this agent, or of one that its turn waits for.
            BadRequest: a message cannot be used.
        """
        self._turns.nesting.refuse(what)
        inputs = self._checked(inputs)
        turn = self._turns.submit(trigger, inputs=inputs, continuation=continuation, body=body)
        return await self._wait(turn, signal)

    def caller_tools(self, given: Sequence[ClientTool], executor: Executor | None) -> CallerTools:
        """Tools that a caller brings along for one turn.

        Raises:
            ConfigurationError: something of it cannot be used.
        """
        return CallerTools.of(given, executor, self._room.services.spawn)

    async def stream(
        self,
        inputs: MessageInput | Callable[..., Any],
        *,
        signal: asyncio.Event | None = None,
        what: str = "stream()",
        accepted: Callable[[str], Any] | None = None,
        own: CallerTools | None = None,
    ) -> AsyncGenerator[Chunk | TurnResult]:
        """Run a turn; gives its chunks as they are made, and last how it ended. Leaving early stops the turn.

        ``accepted`` is told its id first. ``own`` are tools that the caller runs.

        Raises:
            NestedTurn: called from inside a turn of this agent, or of one that its turn waits for.
            BadRequest: a message cannot be used.
        """
        self._turns.nesting.refuse(what)
        own = own or CallerTools()
        turn = self._turns.submit(
            "rpc", inputs=self._checked(inputs), client_tools=own.tools, unanswered=own.unanswered
        )
        chunks: asyncio.Queue[Chunk | None] = asyncio.Queue()
        turn.listener = chunks.put_nowait
        assert turn.result is not None
        turn.result.add_done_callback(lambda _: chunks.put_nowait(None))
        async with self._stopped_with(turn, signal):
            if accepted is not None:
                await call(accepted, turn.id)
            while (chunk := await chunks.get()) is not None:
                yield chunk
            yield await _result_of(turn)

    async def chat(
        self,
        inputs: MessageInput | Callable[..., Any],
        callback: Any,
        *,
        signal: asyncio.Event | None = None,
        what: str = "chat()",
        own: CallerTools | None = None,
    ) -> TurnResult:
        """Run a turn; ``callback`` is told of it. Gives how it ended.

        Raises:
            TypeError: ``callback`` cannot be one.
            TurnFailed: it ended with an error, and the callback does not take errors.
            Exception: what the callback raises.
        """
        callbacks = callbacks_of(callback)
        turn = self.stream(inputs, signal=signal, what=what, accepted=callbacks.on_start, own=own)
        async with contextlib.aclosing(turn) as items:
            async for item in items:
                if not isinstance(item, TurnResult):
                    await call(callbacks.on_event, item)
                    continue
                match item.status:
                    case "completed" | "skipped":
                        await call(callbacks.on_done)
                    case "error":
                        await call(callbacks.on_error, item.error or "The turn failed.")
                    case "interrupted":
                        await call(callbacks.on_interrupted)
                    case "aborted":
                        pass
                return item
        raise AssertionError("a stream ends with its result")

    async def rest(self, seconds: float | None) -> bool:
        """Wait until no turn runs or waits and no call waits for somebody. False when so many seconds are over first.

        Raises:
            NestedTurn: called from inside a turn of this agent, or of one that its turn waits for.
        """
        self._turns.nesting.refuse("wait_until_stable()")
        with anyio.move_on_after(seconds), self._turns.nesting.awaited():
            while self._turns.active is not None or self._room.interactions.waiting:
                await self._room.moved.next()
        return self._turns.active is None and not self._room.interactions.waiting

    async def skip(self, callback: Any) -> TurnResult:
        """What comes of a turn that has nothing to answer: the model is not asked, and nobody else is told.

        Raises:
            TypeError: ``callback`` cannot be one.
            Exception: what the callback raises.
        """
        callbacks = callbacks_of(callback)
        await call(callbacks.on_start, "")
        await call(callbacks.on_done)
        return TurnResult(request_id="", status="skipped")

    async def _wait(self, turn: Turn, signal: asyncio.Event | None) -> TurnResult:
        async with self._stopped_with(turn, signal):
            return await _result_of(turn)

    @contextlib.asynccontextmanager
    async def _stopped_with(self, turn: Turn, signal: asyncio.Event | None) -> AsyncGenerator[None]:
        """Whoever stops waiting for the turn stops it; so does ``signal``."""
        watch = None if signal is None else asyncio.ensure_future(self._watch(turn, signal))
        try:
            with self._turns.nesting.awaited():
                yield
        finally:
            self._turns.cancel(turn.id)
            if watch is not None:
                watch.cancel()

    async def _watch(self, turn: Turn, signal: asyncio.Event) -> None:
        await signal.wait()
        self._turns.cancel(turn.id)

    def _checked(self, inputs: Any) -> Any:
        """Messages that are given now are looked at now; a function gives its own when the turn starts."""
        return inputs if inputs is None or callable(inputs) else as_messages(inputs, self._room.services.new_id)

    async def add(
        self,
        messages: MessageInput | Callable[..., Any],
        *,
        parent: str | None = None,
        mode: Literal["append", "upsert"] = "append",
    ) -> None:
        """Add messages without a turn. A message whose id is known is left alone, or with ``upsert`` replaced.

        Raises:
            BadRequest: a message cannot be used, or there is no message ``parent``.
        """
        transcript = self._room.transcript
        given = await call(messages, transcript.messages()) if callable(messages) else messages
        new = as_messages(given, self._room.services.new_id)
        await transcript.reach([message["id"] for message in new], parent)
        if parent is not None and parent not in transcript.known:
            raise BadRequest(f"There is no message {parent!r:.60} that the new one could follow.")
        if taken := self._turns.answers.intersection(message["id"] for message in new).difference(transcript.known):
            raise BadRequest(f"The id {taken.pop()!r:.60} is that of an answer that is being made.")
        operations = self._kept(new, parent, mode)
        if not operations:
            return
        self._turns.store(operations)
        if not self._turns.streaming:
            self._room.show()
        if self._turns.active is None:
            transcript.shrink()
        await self._room.services.settled()

    def _kept(self, new: Sequence[UIMessage], parent: str | None, mode: Literal["append", "upsert"]) -> list[Operation]:
        """What stores these messages, and that calls which were waited for are settled in them."""
        transcript, now = self._room.transcript, self._room.services.now_ms()
        operations: list[Operation] = []
        for message in new:
            if message["id"] not in transcript.known:
                after = transcript.tip(None) if parent is None else parent
                text = codec.encode_text(message)
                operations += transcript.append(message["id"], message["role"], text, after, now)
                parent = None if parent is None else message["id"]
            elif mode == "upsert":
                operations += transcript.update(message)
                operations += settled_in(self._room, message)
        return operations


async def _result_of(turn: Turn) -> TurnResult:
    """How a turn ended."""
    assert turn.result is not None
    try:
        return await asyncio.shield(turn.result)
    except asyncio.CancelledError:
        task = asyncio.current_task()
        if not turn.result.cancelled() or (task is not None and task.cancelling()):
            raise
        return TurnResult(request_id=turn.id, status="interrupted", error=INTERRUPTED, continuation=turn.continuation)
