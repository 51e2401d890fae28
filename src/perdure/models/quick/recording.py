"""Asks pydantic-ai what it would post, without posting it, and how it explains an error of the SDK.

So settings, tools, files and the ways of single providers are mapped in one place: there. Needs the ``openai`` extra.
"""

from __future__ import annotations

from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, NoReturn, cast

from openai import AsyncOpenAI
from openai.resources.chat import AsyncChat
from openai.resources.chat.completions import AsyncCompletions
from pydantic_ai.direct import model_request_stream
from pydantic_ai.exceptions import ModelAPIError
from pydantic_ai.messages import ModelMessage, ModelRequest, UserPromptPart
from pydantic_ai.models import Model, ModelRequestParameters
from pydantic_ai.settings import ModelSettings

__all__ = ["Recorder", "explained", "recorded"]


class _Recorded(Exception):
    def __init__(self, params: dict[str, Any], max_retries: int) -> None:
        super().__init__()
        self.params = params
        self.max_retries = max_retries


_failure: ContextVar[Exception | None] = ContextVar("failure", default=None)
"""What the next call raises instead of being recorded."""


class Recorder(AsyncOpenAI):
    """A client that makes no call: ``chat.completions.create`` tells the call that waits for it instead."""

    @property
    def chat(self) -> AsyncChat:
        return _Chat(self)


class _Chat(AsyncChat):
    @property
    def completions(self) -> AsyncCompletions:
        return _Completions(self._client)


class _Completions(AsyncCompletions):
    async def create(  # pyright: ignore[reportIncompatibleMethodOverride]  # the overloads of the SDK, in one
        self, **params: Any
    ) -> NoReturn:
        raise _failure.get() or _Recorded(params, self._client.max_retries)


async def recorded(
    model: Model[Any],
    messages: Sequence[ModelMessage],
    settings: Mapping[str, Any],
    parameters: ModelRequestParameters,
) -> tuple[dict[str, Any], int]:
    """What ``model``, whose client is a :class:`Recorder`, would post.

    Gives the arguments of ``chat.completions.create`` and how often a request that fails is tried again.

    Raises:
        Exception: what pydantic-ai raises for a conversation or a setting that the provider has no form for, and for a
            file that it cannot fetch.
    """
    opening = model_request_stream(
        model,
        messages,
        model_settings=cast("ModelSettings", dict(settings)),
        model_request_parameters=parameters,
        instrument=False,
    )
    try:
        async with opening:
            raise AssertionError("The recording client was not asked.")
    except _Recorded as call:
        return call.params, call.max_retries


async def explained(model: Model[Any], error: Exception) -> Exception:
    """``error``, which the SDK raised for a call, as pydantic-ai raises it."""
    with _failing(error):
        try:
            await recorded(model, [ModelRequest([UserPromptPart("")])], {}, ModelRequestParameters())
        except ModelAPIError as explanation:
            return explanation
    return error


@contextmanager
def _failing(error: Exception) -> Generator[None]:
    token = _failure.set(error)
    try:
        yield
    finally:
        _failure.reset(token)
