"""Turns and messages that the server's own code asks for (reference: engine §1.6)."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncGenerator, Callable, Mapping
from typing import Any, Literal

from perdure.agent.hooks import call
from perdure.agent.inputs import MessageInput, as_messages
from perdure.agent.room import Room
from perdure.agent.turn import Turn
from perdure.agent.turn_config import TurnResult
from perdure.agent.turns import Turns
from perdure.errors import BadRequest, TurnFailed
from perdure.models.contract import Chunk
from perdure.protocol import codec
from perdure.storage.contract import Operation

__all__ = ["Driving", "raise_for"]


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

    async def stream(
        self, inputs: MessageInput | Callable[..., Any], *, signal: asyncio.Event | None = None
    ) -> AsyncGenerator[Chunk | TurnResult]:
        """Run a turn; gives its chunks as they are made, and last how it ended. Leaving early stops the turn.

        Raises:
            NestedTurn: called from inside a turn of this agent, or of one that its turn waits for.
            BadRequest: a message cannot be used.
        """
        self._turns.nesting.refuse("stream()")
        turn = self._turns.submit("rpc", inputs=self._checked(inputs))
        chunks: asyncio.Queue[Chunk | None] = asyncio.Queue()
        turn.listener = chunks.put_nowait
        assert turn.result is not None
        turn.result.add_done_callback(lambda _: chunks.put_nowait(None))
        async with self._stopped_with(turn, signal):
            while (chunk := await chunks.get()) is not None:
                yield chunk
            yield await turn.result

    async def chat(
        self,
        inputs: MessageInput | Callable[..., Any],
        callback: Callable[[Chunk], Any] | None,
        *,
        signal: asyncio.Event | None = None,
    ) -> TurnResult:
        """Run a turn; ``callback`` is given its chunks. Gives how it ended.

        Raises:
            TurnFailed: it ended with an error.
        """
        async with contextlib.aclosing(self.stream(inputs, signal=signal)) as items:
            async for item in items:
                if isinstance(item, TurnResult):
                    return raise_for(item)
                if callback is not None:
                    await call(callback, item)
        raise AssertionError("a stream ends with its result")

    async def _wait(self, turn: Turn, signal: asyncio.Event | None) -> TurnResult:
        assert turn.result is not None
        async with self._stopped_with(turn, signal):
            return await asyncio.shield(turn.result)

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
        transcript, services = self._room.transcript, self._room.services
        given = await call(messages, transcript.messages()) if callable(messages) else messages
        if parent is not None and parent not in transcript.known:
            raise BadRequest(f"There is no message {parent!r:.60} that the new one could follow.")
        operations: list[Operation] = []
        for message in as_messages(given, services.new_id):
            if message["id"] not in transcript.known:
                after = transcript.tip(None) if parent is None else parent
                text = codec.encode_text(message)
                operations += transcript.append(message["id"], message["role"], text, after, services.now_ms())
                parent = None if parent is None else message["id"]
            elif mode == "upsert":
                operations += transcript.update(message)
        if not operations:
            return
        commit = services.write(operations)
        if not self._turns.streaming:
            self._room.show()
        await commit


def raise_for(result: TurnResult) -> TurnResult:
    """The result of a turn, if it did not fail.

    Raises:
        TurnFailed: it did.
    """
    if result.status == "error":
        raise TurnFailed(result.error or "The turn failed.")
    return result
