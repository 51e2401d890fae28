"""Any pydantic-ai model as a :class:`~perdure.models.contract.ChatModel`.

Owns one step: request out, events in. Knows no provider by its SDK and no agent. Importing it imports ``pydantic_ai``;
``perdure.models.registry`` does so on first use.
"""

from __future__ import annotations

import uuid
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import AsyncExitStack
from typing import Any, cast

from pydantic_ai.direct import model_request_stream
from pydantic_ai.messages import InstructionPart, ModelMessage, ModelResponse, UserPromptPart
from pydantic_ai.messages import ModelRequest as ProviderRequest
from pydantic_ai.models import Model, ModelRequestParameters
from pydantic_ai.models.fallback import FallbackModel
from pydantic_ai.settings import ModelSettings
from pydantic_ai.tools import ToolDefinition
from pydantic_ai.usage import RequestUsage

from perdure.errors import ModelRejected, ModelUnreachable
from perdure.models.bridge.errors import provider_errors, refused_requests
from perdure.models.bridge.events import ChunkMapper
from perdure.models.bridge.history import MessageConverter
from perdure.models.contract import ChatModel, Chunk, Finish, HistoryMessage, ModelEvent, ModelRequest, Usage
from perdure.protocol.messages import UIMessage, is_tool_part

__all__ = ["GO_ON", "PydanticAIModel"]

GO_ON = "Go on with your last answer exactly where it stopped. Repeat nothing of it."
"""Said by the user, in the request only, when a conversation ends with the model's words: several providers refuse to
extend an answer or misread the wish."""

_NATIVE_ERRORS = frozenset({"anthropic", "bedrock", "google", "google-cloud"})
"""Systems that mark a failed tool result as such. For others pydantic-ai would wrap the text in an object."""

_REASONS = {"stop": "stop", "length": "length", "content_filter": "content-filter", "tool_call": "tool-calls"}


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
        self._new_id = new_id or _new_id
        self._reopen: Callable[[], Model[Any]] | None = None
        self._converter = MessageConverter(
            accepted=frozenset(_systems_of(model)), native_errors=model.system in _NATIVE_ERRORS
        )

    def closed(self, reopen: Callable[[], Model[Any]]) -> None:
        """The connections are closed: the next request is made with the model that ``reopen`` gives."""
        self._reopen = reopen

    async def stream(self, request: ModelRequest) -> AsyncGenerator[ModelEvent]:
        """See :meth:`ChatModel.stream`.

        An answer that ends without a finish reason counts as broken off (:class:`ModelUnreachable`) where the adapter
        shows the lack of one. Tool inputs become final when the step ends.
        """
        if self._reopen is not None:
            self.model, self._reopen = self._reopen(), None
        mapper = ChunkMapper(_taken_in(request.history), self._new_id)
        messages = self._messages(request.history)
        async with AsyncExitStack() as stack:
            with refused_requests(self.name), provider_errors(self.name):
                response = await stack.enter_async_context(
                    model_request_stream(
                        self.model,
                        messages,
                        model_settings=cast("ModelSettings", dict(request.settings)),
                        model_request_parameters=_parameters(request),
                    )
                )
            with provider_errors(self.name):
                async for event in response:
                    for chunk in mapper.map(event):
                        yield chunk
            answer = response.get()
        self._check_complete(answer)
        for chunk in (*_refusal(answer), *mapper.finish()):
            yield chunk
        yield Finish(_reason(answer, called=mapper.called), _usage(answer.usage))

    def _messages(self, history: Sequence[HistoryMessage]) -> list[ModelMessage]:
        messages: list[ModelMessage] = []
        for item in history:
            messages += item.derive(self._converter, self._converter)
        if not messages:
            raise ModelRejected("There is no message that the model could answer.")
        if isinstance(messages[-1], ModelResponse):
            messages.append(ProviderRequest([UserPromptPart(GO_ON)]))
        return messages

    def _check_complete(self, answer: ModelResponse) -> None:
        # Models without a provider are made up in the process (tests); those need not say why they stop.
        silent = answer.finish_reason is None and not _raw_reason(answer) and self.model.provider is not None
        if answer.state == "incomplete" or silent:
            raise ModelUnreachable(f"{self.name}: The answer broke off: it ended without a finish reason.")


def _new_id() -> str:
    return f"call_{uuid.uuid4().hex}"


def _systems_of(model: Model[Any]) -> set[str]:
    """The providers whose signed or encrypted parts ``model`` sends back."""
    if isinstance(model, FallbackModel):
        return {system for one in model.models for system in _systems_of(one)}
    return {model.system, model.canonical_system, *model.compatible_systems}


def _parameters(request: ModelRequest) -> ModelRequestParameters:
    return ModelRequestParameters(
        function_tools=[
            ToolDefinition(name=tool.name, description=tool.description, parameters_json_schema=tool.parameters)
            for tool in request.tools
        ],
        instruction_parts=[InstructionPart(request.system)] if request.system else [],
    )


def _taken_in(history: Sequence[HistoryMessage]) -> Callable[[str], bool]:
    """Whether a tool call id is in use. Looked up when a call comes, so a step without calls pays nothing."""
    return lambda call_id: any(call_id in item.derive(_call_ids, _call_ids) for item in history)


def _call_ids(message: UIMessage) -> frozenset[str]:
    return frozenset(part.get("toolCallId", "") for part in message.get("parts") or () if is_tool_part(part))


def _raw_reason(answer: ModelResponse) -> Any:
    return (answer.provider_details or {}).get("finish_reason")


def _reason(answer: ModelResponse, *, called: bool) -> str:
    """The AI SDK's name for why the model stopped."""
    reason = answer.finish_reason
    if called and (reason is None or reason == "stop"):
        return "tool-calls"  # not every provider says so itself
    if reason is None:
        return "other" if _raw_reason(answer) else "stop"
    return _REASONS.get(reason, "error")


def _refusal(answer: ModelResponse) -> list[Chunk]:
    """The words of a model that declined: pydantic-ai keeps them off the text, a person still wants to read them."""
    text = (answer.provider_details or {}).get("refusal")
    if not isinstance(text, str) or not text:
        return []
    return [
        {"type": "text-start", "id": "refusal"},
        {"type": "text-delta", "id": "refusal", "delta": text},
        {"type": "text-end", "id": "refusal"},
    ]


def _usage(usage: RequestUsage) -> Usage:
    return Usage(
        input_tokens=usage.input_tokens,
        output_tokens=usage.output_tokens,
        cached_tokens=usage.cache_read_tokens,
        reasoning_tokens=usage.output_reasoning_tokens or usage.details.get("reasoning_tokens", 0),
    )
