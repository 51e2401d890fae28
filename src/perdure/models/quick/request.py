"""The request of one step: pydantic-ai maps what is new in it, and what was mapped before is put in as it was.

Owns what is kept with a message and when nothing kept may be used. Needs the ``openai`` extra.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from anyio.lowlevel import checkpoint
from openai import RequestOptions
from pydantic_ai.models.openai import OpenAIChatModel

from perdure.errors import ModelRejected
from perdure.models.bridge.requests import GO_ON, NOTHING_TO_ANSWER, converter_for, model_messages, parameters_of
from perdure.models.contract import HistoryMessage, ModelRequest
from perdure.models.quick.body import encode, split
from perdure.models.quick.mapping import Mapped, mapped
from perdure.models.quick.recording import Recorder, recorded
from perdure.models.quick.sections import Backfill, Section, filled, leading
from perdure.protocol.messages import UIMessage

__all__ = ["Posted", "RequestWriter"]

Posted = tuple[bytes, RequestOptions]
"""The body of a request and its options."""

_PLAIN_SETTINGS = frozenset({
    "extra_body", "extra_headers", "frequency_penalty", "logit_bias", "max_retries", "max_tokens",
    "openai_continuous_usage_stats", "openai_logprobs", "openai_prediction", "openai_prompt_cache_key",
    "openai_reasoning_effort", "openai_service_tier", "openai_store", "openai_text_verbosity", "openai_top_logprobs",
    "openai_user", "parallel_tool_calls", "presence_penalty", "seed", "service_tier", "stop_sequences", "temperature",
    "thinking", "timeout", "tool_choice", "top_k", "top_p",
})  # fmt: skip
"""Settings that have no effect on how messages are mapped. With any other, the whole conversation is mapped."""

_BATCH = 100
"""How many messages are mapped at a time; about 2 ms."""

_GO_ON = encode({"role": "user", "content": GO_ON})


class _Kept:
    """Where what a message came to is kept: beside the message."""

    __slots__ = ("sections",)

    def __init__(self, _: UIMessage) -> None:
        self.sections: tuple[Section, ...] | None = None


class RequestWriter:
    """Writes requests for one model."""

    def __init__(self, model: OpenAIChatModel) -> None:
        """For ``model``, whose client is a :class:`~perdure.models.quick.recording.Recorder`."""
        assert isinstance(model.client, Recorder)
        self._model = model
        self._convert = converter_for(model)
        profile = model.profile
        self._told_by_user = profile.get("openai_system_prompt_role") == "user"
        self._merges_system = not profile.get("openai_chat_supports_multiple_system_messages", True)
        self._field = profile.get("openai_chat_thinking_field") or ""
        self._sends_back = profile.get("openai_chat_send_back_thinking_parts", "auto")

    async def write(self, request: ModelRequest) -> Posted:
        """What to post for ``request``.

        Raises:
            ModelRejected: there is nothing to answer.
            Unwritable: there is something in it that only the SDK can write.
            Exception: what pydantic-ai raises for what it has no form for, or cannot fetch.
        """
        if not self._is_plain(request.settings):
            return await self._whole(request)
        call, sections = await self._mapped(request)
        if not sections:
            raise ModelRejected(NOTHING_TO_ANSWER)
        first = leading(sections)
        if first and self._merges_system:
            return await self._whole(request)
        goes_on = sections[-1].response
        pieces = filled(sections, self._backfill(call), user_follows=goes_on)
        pieces[first:first] = [encode(message) for message in call.instructions]
        if goes_on:
            pieces.append(_GO_ON)
        body, options = split(call.params)
        options["max_retries"] = call.max_retries
        return b'%s,"messages":[%s]}' % (encode(body)[:-1], b",".join(piece for piece in pieces if piece)), options

    def _is_plain(self, settings: Mapping[str, Any]) -> bool:
        # Who puts messages into the body means them. Instructions told as a user's stand where the user begins.
        replaced = "messages" in (settings.get("extra_body") or ())
        return _PLAIN_SETTINGS.issuperset(settings) and not replaced and not self._told_by_user

    async def _mapped(self, request: ModelRequest) -> tuple[Mapped, Sequence[Section]]:
        """The call, and what the messages came to."""
        kept = [item.derive(self, _Kept) for item in request.history]
        new = [(item, place) for item, place in zip(request.history, kept, strict=True) if place.sections is None]
        while len(new) > _BATCH:
            # A conversation that was just read from storage: others get their turn in between.
            await self._map(new[:_BATCH], request)
            new = new[_BATCH:]
            await checkpoint()
        call = await self._map(new, request)
        return call, [section for place in kept for section in place.sections or ()]

    async def _map(self, new: Sequence[tuple[HistoryMessage, _Kept]], request: ModelRequest) -> Mapped:
        """Map messages, and keep what they came to."""
        conversation = [self._convert(item.message) for item, _ in new]
        call = await mapped(self._model, conversation, request.settings, parameters_of(request))
        for (_, place), sections in zip(new, call.sections, strict=True):
            place.sections = sections
        return call

    def _backfill(self, call: Mapped) -> Backfill:
        if self._sends_back == "field" and self._field:
            return Backfill("field", self._field, at_once=call.fills)
        return Backfill("auto" if self._sends_back == "auto" else "never")

    async def _whole(self, request: ModelRequest) -> Posted:
        """The same with everything mapped anew."""
        messages = model_messages(request.history, self._convert)
        params, max_retries = await recorded(self._model, messages, request.settings, parameters_of(request))
        body, options = split(params)
        options["max_retries"] = max_retries
        return encode(body), options
