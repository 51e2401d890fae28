"""Reads the body of a streamed answer: bytes to events to what they mean.

Owns when an answer counts as broken off, and that others get their turn. Needs the ``openai`` extra.
"""

from __future__ import annotations

import ssl
from abc import abstractmethod
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing
from typing import Any, Final, Generic, TypeVar, cast

import anyio
import httpx2
from anyio.lowlevel import checkpoint
from openai import APIConnectionError, APIError, APITimeoutError

from perdure.models.quick.sse import Event, EventDecoder

__all__ = ["EventReader"]

T = TypeVar("T")

_BREATH: Final = 32
"""After so many events others get their turn: what a server sends in one go would be read in one go."""

_DRAIN_SECONDS: Final = 0.1
"""How long the end of a body may take after ``[DONE]``; later the connection is closed instead of kept."""


class EventReader(Generic[T]):
    """How an ``AsyncStream`` reads: what the events of one answer mean. Mixed in before it, as the SDK wants to see its
    own class among the bases.

    Raises ``APIConnectionError`` for a body that ends before ``[DONE]`` came, or what completes the answer: what was
    read is not the whole answer, and half a tool call must not run.
    """

    response: httpx2.Response
    _iterator: AsyncIterator[T]

    @abstractmethod
    def _read(self, event: Event) -> T:
        """What an event means. ``APIError`` for one that is an error, ``ValueError`` for one that is not JSON."""

    @abstractmethod
    def _completes(self, value: T) -> bool:
        """Whether the answer may end after ``value``."""

    def __aiter__(self) -> AsyncGenerator[T]:
        return cast("AsyncGenerator[T]", self._iterator)

    async def __stream__(self) -> AsyncGenerator[T]:
        complete = False
        count = 0
        try:
            async with aclosing(self._batches()) as batches:
                async for batch in batches:
                    for event in batch:
                        if event.data.startswith(b"[DONE]"):
                            await _drain(batches)
                            return
                        if event.data:
                            value = self._read(event)
                            complete = complete or self._completes(value)
                            yield value
                            count += 1
                            if not count % _BREATH:
                                await checkpoint()
            if not complete:
                raise APIConnectionError(
                    message="The answer broke off: the server closed the stream before it was finished.",
                    request=self.response.request,
                )
        finally:
            await self.response.aclose()

    async def _batches(self) -> AsyncGenerator[list[Event]]:
        """The events of each read, one list a read: one step of this generator for many events."""
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


async def _drain(batches: AsyncIterator[list[Event]]) -> None:
    """Read what follows ``[DONE]``, so that the connection can be used again."""
    with anyio.move_on_after(_DRAIN_SECONDS):
        try:
            async for _ in batches:
                pass
        except APIConnectionError:
            return  # the answer is complete; a connection that breaks now is only not used again
