"""An ``AsyncOpenAI`` whose streamed Responses calls skip the SDK's check of the body.

Everything else (connections, headers, retries, timeouts, error classes, the decoder) is the SDK's. Needs the ``openai``
extra.
"""

from __future__ import annotations

from typing import Any, TypeVar

from openai import AsyncOpenAI, AsyncStream, omit
from openai.resources.responses import AsyncResponses
from openai.types.responses import Response, ResponseStreamEvent

from perdure.models.quick.body import Unwritable, encode, split

__all__ = ["QuickAsyncOpenAI", "talking_like"]

C = TypeVar("C", bound=AsyncOpenAI)


def talking_like(client: AsyncOpenAI, kind: type[C]) -> C:
    """A client of another kind that talks as ``client`` does, over the same connections."""
    return kind(
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


class QuickAsyncOpenAI(AsyncOpenAI):
    """A drop-in ``AsyncOpenAI``: same arguments, same requests on the wire, same answers, same exceptions."""

    @property
    def user_agent(self) -> str:
        return f"AsyncOpenAI/Python {self._version}"

    @property
    def responses(self) -> AsyncResponses:
        return _QuickResponses(self)


class _QuickResponses(AsyncResponses):
    async def create(  # pyright: ignore[reportIncompatibleMethodOverride]  # the overloads of the SDK, in one
        self, *, stream: Any = omit, **params: Any
    ) -> Any:
        by_sdk: Any = super().create
        if stream is not True:
            return await by_sdk(stream=stream, **params)
        body, options = split(params)
        try:
            content = encode(body)
        except Unwritable:
            return await by_sdk(stream=stream, **params)
        return await self._post(
            "/responses",
            content=content,
            options=options,
            cast_to=Response,
            stream=True,
            stream_cls=AsyncStream[ResponseStreamEvent],
        )
