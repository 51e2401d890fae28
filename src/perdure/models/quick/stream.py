"""Reads the answer of one streamed chat completion: bytes to events to chunks.

Owns when an answer counts as complete. Needs the ``openai`` extra.
"""

from __future__ import annotations

import json
import ssl
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing
from typing import Any, Final, cast

import anyio
import httpx2
import msgspec
from anyio.lowlevel import checkpoint
from openai import APIConnectionError, APIError, APITimeoutError, AsyncOpenAI, AsyncStream
from openai.types.chat import ChatCompletion

from perdure.models.quick.request import Posted
from perdure.models.quick.sse import Event, EventDecoder
from perdure.models.quick.wire import WireChunk, decode_chunk

__all__ = ["WireStream", "opened"]

_BREATH: Final = 32
"""After so many chunks others get their turn: what a server sends in one go would be read in one go."""

_DRAIN_SECONDS: Final = 0.1
"""How long the end of a body may take after ``[DONE]``; later the connection is closed instead of kept."""


async def opened(client: AsyncOpenAI, posted: Posted) -> WireStream:
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
        stream_cls=WireStream,
    )


class WireStream(AsyncStream[WireChunk]):
    """The chunks of one answer.

    An answer is complete when ``[DONE]`` came, or a finish reason. A body that ends before both raises
    ``APIConnectionError``: what was read is not the whole answer, and half a tool call must not run.
    """

    def __aiter__(self) -> AsyncIterator[WireChunk]:
        return self._iterator

    async def __stream__(self) -> AsyncIterator[WireChunk]:
        finished = False
        count = 0
        try:
            async with aclosing(self._batches()) as batches:
                async for batch in batches:
                    for event in batch:
                        if event.data.startswith(b"[DONE]"):
                            await _drain(batches)
                            return
                        if event.data:
                            chunk = self._read(event)
                            finished = finished or _finishes(chunk)
                            yield chunk
                            count += 1
                            if not count % _BREATH:
                                await checkpoint()
            if not finished:
                raise APIConnectionError(
                    message="The answer broke off: the server closed the stream before it was finished.",
                    request=self.response.request,
                )
        finally:
            await self.response.aclose()

    async def _batches(self) -> AsyncGenerator[list[Event]]:
        """The events of each read, one list a read: one step of this generator for many chunks."""
        decoder = EventDecoder()
        try:
            async for piece in self.response.aiter_bytes():
                yield decoder.feed(piece)
        except httpx2.TimeoutException as error:
            raise APITimeoutError(request=self.response.request) from error
        except (httpx2.RequestError, ssl.SSLError, anyio.EndOfStream) as error:
            message = f"The answer broke off: {str(error) or type(error).__name__}"
            raise APIConnectionError(message=message, request=self.response.request) from error
        yield decoder.finish()

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

    def _read_leniently(self, value: Any) -> WireChunk:
        if not isinstance(value, dict):
            raise self._error(value)
        if error := cast("dict[str, Any]", value).get("error"):
            return WireChunk(error=error)
        try:
            return msgspec.convert(value, WireChunk)
        except msgspec.ValidationError as error:
            raise self._error(f"The server sent what is no chunk of an answer: {error}") from error

    def _error(self, value: Any) -> APIError:
        """The error that the server put into the stream, as the SDK raises it."""
        body: Any = value
        text: Any = value
        if isinstance(value, dict):
            fields = cast("dict[str, Any]", value)
            body = cast("Any", fields.get("error") or fields)
            text = cast("dict[str, Any]", body).get("message") if isinstance(body, dict) else body
        if not isinstance(text, str) or not text:
            text = "An error occurred during streaming"
        return APIError(text, self.response.request, body=cast("object", body))


def _finishes(chunk: WireChunk) -> bool:
    for choice in chunk.choices or ():  # noqa: SIM110  # once for each chunk, and any() costs three times as much
        if choice.finish_reason:
            return True
    return False


async def _drain(batches: AsyncIterator[list[Event]]) -> None:
    """Read what follows ``[DONE]``, so that the connection can be used again."""
    with anyio.move_on_after(_DRAIN_SECONDS):
        try:
            async for _ in batches:
                pass
        except APIConnectionError:
            return  # the answer is complete; a connection that breaks now is only not used again


def _json_or_text(data: bytes) -> Any:
    try:
        return json.loads(data)
    except ValueError:
        return data.decode(errors="replace")
