"""Models behind OpenAI's chat completions, and behind servers that speak them.

pydantic-ai says what is posted and explains errors, the SDK posts it, and what comes back is read here: no object of
either is made for a chunk. Needs the ``openai`` extra.
"""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing
from typing import cast

from openai import APIError, AsyncOpenAI
from pydantic_ai.models.openai import OpenAIChatModel
from pydantic_ai.profiles import DEFAULT_THINKING_TAGS

from perdure.errors import ModelUnreachable
from perdure.models.bridge.endings import taken_in
from perdure.models.bridge.errors import provider_errors, refused_requests
from perdure.models.contract import Finish, ModelEvent, ModelRequest, Usage
from perdure.models.pydantic_ai import PydanticAIModel
from perdure.models.quick.answer import Answer
from perdure.models.quick.body import Unwritable
from perdure.models.quick.completion import opened
from perdure.models.quick.recording import explained
from perdure.models.quick.request import Posted, RequestWriter
from perdure.models.quick.runs import Manner
from perdure.models.quick.tokens_used import tokens_used

__all__ = ["QuickChatModel"]

_FOREIGN_SETTINGS = frozenset({"first_event_timeout", "openai_include_raw_annotations", "request_timeout"})
"""Settings that pydantic-ai itself acts on while it reads an answer."""

_READ_FIELDS = ("reasoning", "reasoning_content")
"""Where reasoning is looked for."""


class QuickChatModel(PydanticAIModel):
    """A model behind an API of chat completions. What it does not know, it has pydantic-ai do.

    Args:
        model: the model as pydantic-ai asks it, with the SDK's plain client. Whoever made it closes it.
        recording: the same model with a client that is a :class:`~perdure.models.quick.recording.Recorder`.
        name: for logs.
        new_id: makes ids for tool calls that come without one or with one that is taken, and for sources.
    """

    def __init__(
        self,
        model: OpenAIChatModel,
        recording: OpenAIChatModel,
        *,
        name: str,
        new_id: Callable[[], str] | None = None,
    ) -> None:
        super().__init__(model, name=name, new_id=new_id)
        self._recording = recording
        self._writer = RequestWriter(recording)
        self._manner = _manner_of(model)

    @staticmethod
    def fits(model: OpenAIChatModel) -> bool:
        """Whether ``model`` is of the plain kind that this class knows."""
        field = model.profile.get("openai_chat_thinking_field")
        return type(model) is OpenAIChatModel and type(model.client) is AsyncOpenAI and field in {None, *_READ_FIELDS}

    async def stream(self, request: ModelRequest) -> AsyncGenerator[ModelEvent]:
        """See :meth:`ChatModel.stream`.

        An answer that ends without ``[DONE]`` or a finish reason counts as broken off (:class:`ModelUnreachable`). Tool
        inputs become final when the step ends.
        """
        posted = await self._written(request)
        if posted is None:
            async with aclosing(super().stream(request)) as events:
                async for event in events:
                    yield event
            return
        self._open()
        client = cast("OpenAIChatModel", self.model).client
        answer = Answer(self._manner, taken_in(request.history), self._new_id)
        try:
            async with await opened(client, posted) as stream, aclosing(aiter(stream)) as received:
                async for one in received:
                    for chunk in answer.take(one):
                        yield chunk
        except (APIError, json.JSONDecodeError, UnicodeDecodeError) as error:
            with provider_errors(self.name):
                raise await explained(self._recording, error)  # noqa: B904  # it has a cause of its own
        if not answer.begun:
            raise ModelUnreachable(f"{self.name}: The answer holds nothing.")
        for chunk in answer.finish():
            yield chunk
        yield Finish(answer.reason, self._usage(answer, request))

    async def _written(self, request: ModelRequest) -> Posted | None:
        """What to post; None for what pydantic-ai has to do itself."""
        if not _FOREIGN_SETTINGS.isdisjoint(request.settings):
            return None
        with refused_requests(self.name), provider_errors(self.name):
            try:
                return await self._writer.write(request)
            except Unwritable:
                return None

    def _usage(self, answer: Answer, request: ModelRequest) -> Usage:
        return tokens_used(
            answer.usages,
            cumulative=bool(request.settings.get("openai_continuous_usage_stats")),
            model=answer.model or self._recording.model_name,
            provider=self._recording.system,
            provider_url=self._recording.base_url,
        )


def _manner_of(model: OpenAIChatModel) -> Manner:
    profile = model.profile
    own = profile.get("openai_chat_thinking_field")
    return Manner(
        provider=model.system,
        reasoning_fields=tuple(dict.fromkeys([*([own] if own else []), *_READ_FIELDS])),
        tags=profile.get("thinking_tags", DEFAULT_THINKING_TAGS),
        trims=profile.get("ignore_streamed_leading_whitespace", False),
        restores=profile.get("may_tokenize_special_tokens_in_content", False),
    )
