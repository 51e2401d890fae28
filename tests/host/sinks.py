"""A connection without a socket."""

import asyncio
import json
from typing import Any

__all__ = ["RecordingSink"]


class RecordingSink:
    """Keeps what it is sent, and how it was closed."""

    def __init__(self) -> None:
        self.frames: list[dict[str, Any]] = []
        self.closed: tuple[int, str] | None = None
        self._changed = asyncio.Event()

    def send(self, frame: str) -> None:
        self.frames.append(json.loads(frame))
        self._changed.set()

    def close(self, code: int, reason: str) -> None:
        assert self.closed is None, "closed twice"
        self.closed = (code, reason)
        self._changed.set()

    @property
    def types(self) -> list[str]:
        return [frame["type"] for frame in self.frames]

    async def seen(self, **fields: Any) -> dict[str, Any]:
        """The first frame with these fields, once it is there."""
        while True:
            for frame in self.frames:
                if fields.items() <= frame.items():
                    return frame
            self._changed.clear()
            await self._changed.wait()

    async def ended(self) -> tuple[int, str]:
        """How it was closed, once it is."""
        while self.closed is None:
            self._changed.clear()
            await self._changed.wait()
        return self.closed
