"""One run of one turn, as its chunks go out: into the message, the log, and to everyone who listens."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

from perdure.agent.base import Agent
from perdure.agent.dialogue import Runs
from perdure.agent.room import Room, kept
from perdure.agent.stream import LiveStream
from perdure.agent.think import EXPIRE
from perdure.agent.tool_runner import Call
from perdure.agent.turn import Turn
from perdure.chat.interactions import Interaction
from perdure.models.contract import Chunk
from perdure.protocol import server_frames as frames

__all__ = ["Answer"]

_RESULTS = frozenset({"tool-output-available", "tool-output-error"})


class Answer:
    """The sink of the loop, for one turn."""

    def __init__(self, turn: Turn, room: Room) -> None:
        self.builder = turn.builder
        self.stream = LiveStream(turn.id, room.services, continuation=turn.continuation)
        self.opened = False
        self._turn = turn
        self._room = room
        self._services = room.services
        self._handshake = room.handshake
        self._discarded = False

    def open(self, metadata: Mapping[str, Any] | None = None) -> None:
        """The stream starts: whoever waits for it is offered it before its first chunk."""
        if self._discarded:
            return
        self.opened = True
        self.builder = self._turn.builder
        for peer in self._handshake.streaming(self._turn.id):
            self._services.send((peer,), frames.resuming(self._turn.id))
        start: Chunk = {"type": "start"}
        if not self._turn.continuation:
            start["messageId"] = self._turn.message_id
        if metadata is not None:
            start["messageMetadata"] = dict(metadata)
        self.emit(start)

    def emit(self, chunk: Chunk) -> None:
        """Take one chunk: it is in the message, in the log and on its way to everyone in one step."""
        if not self._discarded:
            self.take(chunk)()

    def take(self, chunk: Chunk) -> Callable[[], None]:
        """Take one chunk that must be stored before anybody is shown it: into the message and the log. Call what this
        gives at once when it was handed over to be stored."""
        # First, as it fails for a chunk that has no JSON form: that must not get into the message.
        frame = self.stream.add(chunk)
        self.builder.apply(chunk)
        if chunk["type"] in _RESULTS and not chunk.get("preliminary"):
            self._note_result(chunk["toolCallId"])
        return partial(self._show, chunk, frame)

    def _show(self, chunk: Chunk, frame: str) -> None:
        self._services.send(self._handshake.listeners, frame)
        if self._turn.listener is not None:
            self._turn.listener(chunk)

    def wait_for(self, call: Call, runs: Runs, approval: str | None) -> None:
        """A call waits for somebody. It is recorded: only what is recorded can be answered."""
        if self._discarded or call.tool in self._turn.unanswered:
            return
        now, ttl = self._services.now_ms(), self._room.think.approval_ttl
        interaction = Interaction(
            call=call.id,
            turn=self._turn.id,
            message=self.builder.id,
            tool=call.tool,
            runs=runs,
            input=call.input,
            asked_ms=now,
            approval=approval,
            expires_ms=None if approval is None or ttl is None else now + round(ttl * 1000),
        )
        if interaction.expires_ms is not None and ttl is not None:
            # The application may well have a tool or a method of that name.
            Agent.schedule(self._room.think, ttl, EXPIRE, approval)
        self._room.interactions.ask(interaction)
        self._services.checkpoint([*self.stream.unstored(), kept(interaction)])

    async def begin(self, calls: Sequence[str]) -> Sequence[str]:
        """Approved calls are about to run. Gives those that may; returns when that is stored."""
        begun = self._room.interactions.begin(calls)
        await asyncio.shield(self._services.write([kept(interaction) for interaction in begun]))
        return [interaction.call for interaction in begun]

    def _note_result(self, call: str) -> None:
        if (interaction := self._room.interactions.settle(call)) is not None:
            self.stream.along(kept(interaction))

    def fail(self, text: str) -> None:
        """The model failed: say so in the stream. The end follows."""
        if self._discarded:
            return
        frame = self.stream.frames.error(text, self._turn.origin_ids)
        self._services.send(self._handshake.listeners, frame)

    def discard(self) -> None:
        """The conversation was cleared: nothing more of this answer is shown or stored."""
        self._discarded = True
        self.stream.stop()

    async def durable(self) -> None:
        """Wait until every chunk so far is stored."""
        if not self._discarded:
            await self.stream.flush()
