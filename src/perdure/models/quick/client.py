"""An ``AsyncOpenAI`` whose streamed calls skip the SDK's slow parts: body transformation and per-chunk models.

Connections, headers, retries, timeouts and error classes stay the SDK's own: only what is posted and how the answer is
read is replaced. Needs the ``openai`` extra.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec
import pydantic
from openai import AsyncOpenAI, AsyncStream, NotGiven, Omit, RequestOptions, not_given, omit
from openai.resources.chat import AsyncChat
from openai.resources.chat.completions import AsyncCompletions
from openai.resources.responses import AsyncResponses
from openai.types.chat import ChatCompletion
from openai.types.responses import Response, ResponseStreamEvent

from perdure.models.quick.stream import QuickStream
from perdure.protocol import codec

__all__ = ["QuickAsyncOpenAI"]


class QuickAsyncOpenAI(AsyncOpenAI):
    """A drop-in ``AsyncOpenAI``: same arguments, same requests on the wire, same exceptions.

    Streamed chat completions are decoded by :class:`~perdure.models.quick.stream.QuickStream`; streamed Responses calls
    post the body as given and keep the SDK's decoder. Every other call is the SDK's.
    """

    @classmethod
    def like(cls, client: AsyncOpenAI) -> QuickAsyncOpenAI:
        """One that talks as ``client`` does, over the same connections."""
        return cls(
            api_key=client.api_key,
            organization=client.organization,
            project=client.project,
            base_url=client.base_url,
            timeout=client.timeout,
            max_retries=client.max_retries,
            default_headers=client._custom_headers,  # pyright: ignore[reportPrivateUsage]
            default_query=client._custom_query,  # pyright: ignore[reportPrivateUsage]
            http_client=client._client,  # pyright: ignore[reportPrivateUsage]
        )

    @property
    def user_agent(self) -> str:
        return f"AsyncOpenAI/Python {self._version}"

    @property
    def chat(self) -> AsyncChat:
        return _QuickChat(self)

    @property
    def responses(self) -> AsyncResponses:
        return _QuickResponses(self)


class _QuickChat(AsyncChat):
    @property
    def completions(self) -> AsyncCompletions:
        return _QuickCompletions(self._client)


class _QuickCompletions(AsyncCompletions):
    async def create(  # pyright: ignore[reportIncompatibleMethodOverride]  # the overloads of the SDK, in one
        self, *, stream: Any = omit, **params: Any
    ) -> Any:
        call = _posted(params) if stream is True else None
        if call is None:
            return await super().create(stream=stream, **params)
        content, options = call
        return await self._post(
            "/chat/completions",
            content=content,
            options=options,
            cast_to=ChatCompletion,
            stream=True,
            stream_cls=QuickStream,
        )


class _QuickResponses(AsyncResponses):
    async def create(  # pyright: ignore[reportIncompatibleMethodOverride]  # the overloads of the SDK, in one
        self, *, stream: Any = omit, **params: Any
    ) -> Any:
        call = _posted(params) if stream is True else None
        if call is None:
            return await super().create(stream=stream, **params)
        content, options = call
        return await self._post(
            "/responses",
            content=content,
            options=options,
            cast_to=Response,
            stream=True,
            stream_cls=AsyncStream[ResponseStreamEvent],
        )


def _posted(params: Mapping[str, Any]) -> tuple[bytes, RequestOptions] | None:
    """Body and options of a streamed call; ``None`` when the parameters need the SDK's transformation."""
    extra: dict[str, Any] = params.get("extra_body") or {}
    body = {key: value for key, value in params.items() if key not in _OPTIONS}
    body = {key: value for key, value in {**body, "stream": True, **extra}.items() if _given(value)}
    try:
        content = _encode(body)
    except TypeError:
        return None
    options: RequestOptions = {"security": {"bearer_auth": True}}
    if params.get("extra_headers") is not None:
        options["headers"] = params["extra_headers"]
    if params.get("extra_query") is not None:
        options["params"] = params["extra_query"]
    timeout = params.get("timeout", not_given)
    if not isinstance(timeout, NotGiven):
        options["timeout"] = timeout
    return content, options


_OPTIONS = frozenset({"extra_body", "extra_headers", "extra_query", "timeout"})


def _given(value: object) -> bool:
    return not isinstance(value, (Omit, NotGiven))


def _encode(body: dict[str, Any]) -> bytes:
    try:
        return _encoder.encode(body)
    except UnicodeEncodeError:
        return codec.encode(msgspec.to_builtins(body, enc_hook=_encode_model))


def _encode_model(value: Any) -> Any:
    if isinstance(value, pydantic.BaseModel):
        return value.model_dump(mode="json", by_alias=True, exclude_unset=True)
    raise TypeError(f"{type(value).__name__} is not JSON")


_encoder = msgspec.json.Encoder(enc_hook=_encode_model)
