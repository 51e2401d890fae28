"""The demo model as a stream of words. Imports the model contract, ``protocol``, ``errors`` and ``answers``."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterator
from typing import Any
from uuid import uuid4

from perdure.errors import ModelRejected
from perdure.models.contract import ChatModel, Chunk, Finish, ModelEvent, ModelRequest
from perdure.models.demo.answers import Answer, answer
from perdure.models.demo.calls import PlannedCall
from perdure.protocol import codec

__all__ = ["DemoModel"]

_WORD = re.compile(r"\s*\S+\s*")


class DemoModel(ChatModel):
    """Answers in a sentence or two, calls tools when asked, and can fail, think and talk long on request.

    The same conversation always gets the same answer. ``help`` lists what it understands.
    """

    name = "demo"

    def __init__(
        self,
        *,
        pace: float = 0.025,
        sleep: Callable[[float], Awaitable[Any]] = asyncio.sleep,
        new_id: Callable[[], str] = lambda: f"call_{uuid4().hex}",
    ) -> None:
        """A demo model.

        Args:
            pace: Seconds between two words.
            sleep: How it waits.
            new_id: Makes the id of a tool call.
        """
        self._pace = pace
        self._sleep = sleep
        self._new_id = new_id

    async def stream(self, request: ModelRequest) -> AsyncGenerator[ModelEvent, None]:
        """One step.

        Raises:
            ModelRejected: the user asked for an error.
        """
        decided = answer(request)
        if decided.error is not None:
            raise ModelRejected(decided.error)
        for chunk in self._chunks(decided):
            if chunk["type"].endswith("-delta"):
                await self._sleep(self._pace)
            yield chunk
        yield Finish("tool-calls" if decided.calls else "stop")

    def _chunks(self, decided: Answer) -> Iterator[Chunk]:
        if decided.reasoning:
            yield from _words("reasoning", "r", decided.reasoning)
        if decided.text:
            yield from _words("text", "t", decided.text)
        for call in decided.calls:
            yield from _call(self._new_id(), call)


def _words(kind: str, id: str, text: str) -> Iterator[Chunk]:
    yield {"type": f"{kind}-start", "id": id}
    for word in _WORD.findall(text):
        yield {"type": f"{kind}-delta", "id": id, "delta": word}
    yield {"type": f"{kind}-end", "id": id}


def _call(id: str, call: PlannedCall) -> Iterator[Chunk]:
    yield {"type": "tool-input-start", "toolCallId": id, "toolName": call.tool}
    yield {"type": "tool-input-delta", "toolCallId": id, "inputTextDelta": codec.encode_text(call.input)}
    yield {"type": "tool-input-available", "toolCallId": id, "toolName": call.tool, "input": call.input}
