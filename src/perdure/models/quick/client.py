"""Clients that talk like others, over the same connections. Needs the ``openai`` extra."""

from __future__ import annotations

from typing import TypeVar

from openai import AsyncOpenAI
from openai.resources.responses import AsyncResponses

from perdure.models.quick.responses import QuickResponses

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
    """A drop-in ``AsyncOpenAI`` whose streamed Responses calls are quick.

    Everything else (connections, headers, retries, timeouts, error classes) is the SDK's.
    """

    @property
    def user_agent(self) -> str:
        return f"AsyncOpenAI/Python {self._version}"

    @property
    def responses(self) -> AsyncResponses:
        return QuickResponses(self)
