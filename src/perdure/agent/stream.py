"""The chunks of a running turn: numbered, kept for replay, and checkpointed to storage.

A chunk is encoded and quoted once; that text is the live frame's, every replay's and the stored log's.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence

from perdure.agent.services import Services, Timer
from perdure.models.contract import Chunk
from perdure.protocol.codec import decode, quote
from perdure.protocol.server_frames import ChunkFrames, body_of
from perdure.storage.contract import AppendChunks, ChunkSegment, Operation

__all__ = ["ChunkLog", "LiveStream", "bodies_of"]

SEGMENT = 64
"""A checkpoint is made after this many chunks …"""
INTERVAL = 0.25
"""… or this many seconds after the first chunk that is not stored yet."""


class ChunkLog:
    """The chunks of one stream, as they were sent."""

    def __init__(self, turn: str, bodies: Sequence[str] = (), *, continuation: bool = False) -> None:
        self.turn = turn
        self.frames = ChunkFrames(turn, continuation=continuation)
        self.bodies = list(bodies)
        """The chunks as quoted text; the index is ``seq``."""

    def replay(self) -> Iterator[str]:
        """The frames that bring a connection up to date."""
        return (self.frames.replayed(body, seq) for seq, body in enumerate(self.bodies))


class LiveStream(ChunkLog):
    """A stream that is being made."""

    def __init__(self, turn: str, services: Services, *, continuation: bool = False) -> None:
        super().__init__(turn, continuation=continuation)
        self._services = services
        self._stored = 0
        self._along: list[Operation] = []
        """What is to be stored in the same write as the chunks so far."""
        self._timer: Timer | None = None

    def add(self, chunk: Chunk) -> str:
        """Take a chunk; gives the frame to send."""
        body = body_of(chunk)
        seq = len(self.bodies)
        self.bodies.append(body)
        if seq + 1 - self._stored >= SEGMENT:
            self._checkpoint()
        elif self._timer is None:
            self._timer = self._services.later(INTERVAL, self._checkpoint)
        return self.frames.live(body, seq)

    def along(self, operation: Operation) -> None:
        """This holds with the chunks so far: it is stored in the same write."""
        self._along.append(operation)

    async def flush(self) -> None:
        """Wait until every chunk so far is durable."""
        # With nothing left to store it still waits for the checkpoint before. Shielded: who waits may be stopped, and a
        # commit that is cancelled would not tell of its failure.
        await asyncio.shield(self._services.checkpoint(self.unstored()))

    def unstored(self) -> list[Operation]:
        """What is left to store. The caller stores it."""
        self.stop()
        operations, self._along = self._along, []
        if self._stored < len(self.bodies):
            operations.insert(0, AppendChunks(self.turn, self._stored, f"[{','.join(self.bodies[self._stored :])}]"))
            self._stored = len(self.bodies)
        return operations

    def forget(self) -> list[Operation]:
        """The chunks need not be kept any more. Gives what was to be stored along with them."""
        self.stop()
        operations, self._along = self._along, []
        return operations

    def stop(self) -> None:
        """No checkpoint will be made by itself any more."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _checkpoint(self) -> None:
        operations = self.unstored()
        if operations:
            self._services.checkpoint(operations)


def bodies_of(segments: Sequence[ChunkSegment]) -> list[str]:
    """The quoted bodies of a stored log."""
    return [quote(body) for segment in segments for body in decode(segment.bodies)]
