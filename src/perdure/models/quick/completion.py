"""Posts a chat completion and reads its chunks. Needs the ``openai`` extra."""

from __future__ import annotations

import json
from typing import Any, cast

import msgspec
from openai import AsyncOpenAI, AsyncStream
from openai.types.chat import ChatCompletion

from perdure.models.quick.request import Posted
from perdure.models.quick.sse import Event
from perdure.models.quick.stream import EventReader
from perdure.models.quick.wire import WireChunk, decode_chunk

__all__ = ["CompletionStream", "opened"]


class CompletionStream(EventReader[WireChunk], AsyncStream[WireChunk]):
    """The chunks of one completion. A finish reason completes it."""

    def _read(self, event: Event) -> WireChunk:
        if event.name == b"error":
            raise self._error(_json_or_text(event.data))
        try:
            chunk = decode_chunk(event.data)
        except msgspec.DecodeError:
            # Not JSON as msgspec reads it (half characters, NaN), or not a chunk.
            chunk = self._read_leniently(json.loads(event.data))
        if chunk.error:
            raise self._error({"error": chunk.error})
        return chunk

    def _completes(self, value: WireChunk) -> bool:
        for choice in value.choices or ():  # noqa: SIM110  # once for each chunk, and any() takes three times as long
            if choice.finish_reason:
                return True
        return False

    def _read_leniently(self, value: Any) -> WireChunk:
        if not isinstance(value, dict):
            raise self._error(value)
        if error := cast("dict[str, Any]", value).get("error"):
            return WireChunk(error=error)
        try:
            return msgspec.convert(value, WireChunk)
        except msgspec.ValidationError as error:
            raise self._error(f"The server sent what is no chunk of an answer: {error}") from error


async def opened(client: AsyncOpenAI, posted: Posted) -> CompletionStream:
    """Post a request. The SDK tries again what fails for a passing reason.

    Raises:
        openai.APIError: as the SDK.
    """
    content, options = posted
    return await client.post(
        "/chat/completions",
        content=content,
        options=options,
        cast_to=ChatCompletion,
        stream=True,
        stream_cls=CompletionStream,
    )


def _json_or_text(data: bytes) -> Any:
    try:
        return json.loads(data)
    except ValueError:
        return data.decode(errors="replace")
