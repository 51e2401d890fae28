"""Any pydantic-ai model as a :class:`~perdure.models.contract.ChatModel`.

Owns one step: request out, events in. Knows no provider by its SDK and no agent. Importing it imports ``pydantic_ai``;
``perdure.models.registry`` does so on first use.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable
from contextlib import AsyncExitStack
from typing import Any, cast

from pydantic_ai.direct import model_request_stream
from pydantic_ai.messages import ModelResponse
from pydantic_ai.models import Model
from pydantic_ai.settings import ModelSettings

from perdure.errors import ModelUnreachable
from perdure.models.bridge.endings import new_call_id, reason_of, refusal_chunks, taken_in, usage_of
from perdure.models.bridge.errors import provider_errors, refused_requests
from perdure.models.bridge.events import ChunkMapper
from perdure.models.bridge.requests import converter_for, model_messages, parameters_of
from perdure.models.contract import ChatModel, Finish, ModelEvent, ModelRequest

__all__ = ["PydanticAIModel"]


class PydanticAIModel(ChatModel):
    """A provider's model.

    Args:
        model: the pydantic-ai model that makes the requests. Whoever made it closes it.
        name: for logs; the model's own ``system:name`` unless given.
        new_id: makes ids for tool calls that come without one or with one that is taken, and for sources.
    """

    def __init__(self, model: Model[Any], *, name: str | None = None, new_id: Callable[[], str] | None = None) -> None:
        self.model = model
        self.name = name or f"{model.system}:{model.model_name}"
        self._new_id = new_id or new_call_id
        self._reopen: Callable[[], Model[Any]] | None = None
        self._converter = converter_for(model)

    def closed(self, reopen: Callable[[], Model[Any]]) -> None:
        """The connections are closed: the next request is made with the model that ``reopen`` gives."""
        self._reopen = reopen

    async def stream(self, request: ModelRequest) -> AsyncGenerator[ModelEvent]:
        """See :meth:`ChatModel.stream`.

        An answer that ends without a finish reason counts as broken off (:class:`ModelUnreachable`) where the adapter
        shows the lack of one. Tool inputs become final when the step ends.
        """
        self._open()
        mapper = ChunkMapper(taken_in(request.history), self._new_id)
        messages = model_messages(request.history, self._converter)
        async with AsyncExitStack() as stack:
            with refused_requests(self.name), provider_errors(self.name):
                response = await stack.enter_async_context(
                    model_request_stream(
                        self.model,
                        messages,
                        model_settings=cast("ModelSettings", dict(request.settings)),
                        model_request_parameters=parameters_of(request),
                    )
                )
            with provider_errors(self.name):
                async for event in response:
                    for chunk in mapper.map(event):
                        yield chunk
            answer = response.get()
        details = answer.provider_details or {}
        self._check_complete(answer, details.get("finish_reason"))
        for chunk in (*refusal_chunks(details.get("refusal")), *mapper.finish()):
            yield chunk
        reason = reason_of(answer.finish_reason, details.get("finish_reason"), called=mapper.called)
        yield Finish(reason, usage_of(answer.usage))

    def _open(self) -> None:
        """See to it that the model has connections."""
        if self._reopen is not None:
            self.model, self._reopen = self._reopen(), None

    def _check_complete(self, answer: ModelResponse, raw_reason: object) -> None:
        # Models without a provider are made up in the process (tests); those need not say why they stop.
        silent = answer.finish_reason is None and not raw_reason and self.model.provider is not None
        if answer.state == "incomplete" or silent:
            raise ModelUnreachable(f"{self.name}: The answer broke off: it ended without a finish reason.")
