"""One run of one turn, as its chunks go out: into the message, the log, and to everyone who listens."""

from __future__ import annotations

from perdure.agent.services import PeerId, Services
from perdure.agent.stream import LiveStream
from perdure.agent.turn import Turn
from perdure.chat.handshake import Handshake
from perdure.models.contract import Chunk
from perdure.protocol import server_frames as frames

__all__ = ["Answer"]


class Answer:
    """The sink of the loop, for one turn."""

    def __init__(self, turn: Turn, services: Services, handshake: Handshake[PeerId]) -> None:
        self.builder = turn.builder
        self.stream = LiveStream(turn.id, services)
        self.opened = False
        self._turn = turn
        self._services = services
        self._handshake = handshake
        self._discarded = False

    def open(self) -> None:
        """The stream starts: whoever waits for it is offered it before its first chunk."""
        if self._discarded:
            return
        self.opened = True
        for peer in self._handshake.streaming(self._turn.id):
            self._services.send((peer,), frames.resuming(self._turn.id))
        self.emit({"type": "start", "messageId": self._turn.message_id})

    def emit(self, chunk: Chunk) -> None:
        """Take one chunk: it is in the message, in the log and on its way to everyone in one step."""
        if self._discarded:
            return
        self.builder.apply(chunk)
        self._services.send(self._handshake.listeners, self.stream.add(chunk))

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
