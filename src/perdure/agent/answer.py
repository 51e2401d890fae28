"""One run of one turn, as its chunks go out: into the message, the log, and to everyone who listens."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from perdure.agent.room import Room
from perdure.agent.stream import LiveStream
from perdure.agent.turn import Turn
from perdure.models.contract import Chunk
from perdure.protocol import server_frames as frames

__all__ = ["Answer"]


class Answer:
    """The sink of the loop, for one turn."""

    def __init__(self, turn: Turn, room: Room) -> None:
        self.builder = turn.builder
        self.stream = LiveStream(turn.id, room.services, continuation=turn.continuation)
        self.opened = False
        self._turn = turn
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
        if self._discarded:
            return
        # First, as it fails for a chunk that has no JSON form: that must not get into the message.
        frame = self.stream.add(chunk)
        self.builder.apply(chunk)
        self._services.send(self._handshake.listeners, frame)
        if self._turn.listener is not None:
            self._turn.listener(chunk)

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
