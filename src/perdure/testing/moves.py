"""What a scripted model can do within one step. Plain data; imports the model contract for its types."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Literal

from perdure.models.contract import Chunk, Usage
from perdure.protocol import codec

__all__ = ["Call", "End", "Fail", "Gate", "Move", "Pause", "Raw", "Run"]


class Gate:
    """Where a scripted step waits until the test lets it go on."""

    def __init__(self) -> None:
        self._opened = asyncio.Event()
        self._reached = asyncio.Event()

    def open(self) -> None:
        """Lets through everyone who waits here or comes later."""
        self._opened.set()

    async def reached(self) -> None:
        """Returns once someone has come to the gate, whether it is open or not."""
        await self._reached.wait()

    async def passed(self) -> None:
        """Comes to the gate and waits until it is open."""
        self._reached.set()
        await self._opened.wait()


@dataclass(frozen=True)
class Run:
    """Deltas of one text or reasoning part."""

    kind: Literal["text", "reasoning"]
    deltas: tuple[str, ...]


@dataclass(frozen=True)
class Call:
    """A tool call."""

    name: str
    input: dict[str, Any]
    id: str | None
    raw: str | None
    """Arguments as the model wrote them, when they are no JSON object."""

    def chunks(self, id: str) -> Iterator[Chunk]:
        """The call as chunks, under the id that it got."""
        text = codec.encode_text(self.input) if self.raw is None else self.raw
        yield {"type": "tool-input-start", "toolCallId": id, "toolName": self.name}
        yield {"type": "tool-input-delta", "toolCallId": id, "inputTextDelta": text}
        if self.raw is None:
            yield {"type": "tool-input-available", "toolCallId": id, "toolName": self.name, "input": codec.decode(text)}
        else:
            error = f"The arguments of {self.name} are not a JSON object."
            kind = "tool-input-error"
            yield {"type": kind, "toolCallId": id, "toolName": self.name, "input": text, "errorText": error}


@dataclass(frozen=True)
class Raw:
    """A chunk exactly as given."""

    chunk: Chunk


@dataclass(frozen=True)
class Pause:
    """A wait; an open text goes on after it."""

    gate: Gate


@dataclass(frozen=True)
class Fail:
    """The end of the step with an exception."""

    error: BaseException


@dataclass(frozen=True)
class End:
    """How the step finishes, when not as usual."""

    reason: str
    usage: Usage


Move = Run | Call | Raw | Pause | Fail | End
