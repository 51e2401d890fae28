"""Posts calls of the Responses API as they are, and reads their commonest events without the SDK's slow parts.

The result is the SDK's objects, so pydantic-ai reads the answer as ever. Needs the ``openai`` extra.
"""

from __future__ import annotations

import json
from typing import Any, cast

from openai import AsyncStream, omit
from openai.resources.responses import AsyncResponses
from openai.types.responses import (
    Response,
    ResponseFunctionCallArgumentsDeltaEvent,
    ResponseReasoningSummaryTextDeltaEvent,
    ResponseReasoningTextDeltaEvent,
    ResponseStreamEvent,
    ResponseTextDeltaEvent,
)
from pydantic import BaseModel, ValidationError

from perdure.models.quick.body import Unwritable, encode, split
from perdure.models.quick.sse import Event
from perdure.models.quick.stream import EventReader

__all__ = ["QuickResponses"]

_DELTAS: dict[bytes, type[BaseModel]] = {
    b"response.output_text.delta": ResponseTextDeltaEvent,
    b"response.function_call_arguments.delta": ResponseFunctionCallArgumentsDeltaEvent,
    b"response.reasoning_summary_text.delta": ResponseReasoningSummaryTextDeltaEvent,
    b"response.reasoning_text.delta": ResponseReasoningTextDeltaEvent,
}
"""Most of a stream. pydantic reads them at once where the SDK decides field by field."""


class QuickResponses(AsyncResponses):
    """The SDK's resource with a ``create`` of our own for streams."""

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
            "/responses", content=content, options=options, cast_to=Response, stream=True, stream_cls=_Stream
        )


class _Stream(EventReader[Any], AsyncStream[Any]):
    def _read(self, event: Event) -> Any:
        delta = _DELTAS.get(event.name)
        if delta is not None:
            try:
                return delta.model_validate_json(event.data, strict=True)
            except ValidationError:
                pass  # not as OpenAI sends it: the SDK takes what it can get
        value: Any = json.loads(event.data)
        if isinstance(value, dict) and cast("dict[str, Any]", value).get("error"):
            raise self._error(value)
        return self._client._process_response_data(  # pyright: ignore[reportPrivateUsage]
            data=cast("Any", value), cast_to=cast("Any", ResponseStreamEvent), response=self.response
        )

    def _completes(self, value: Any) -> bool:
        return True  # pydantic-ai sees to it: the events say whether the answer is complete
