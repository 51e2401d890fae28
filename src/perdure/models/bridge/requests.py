"""What pydantic-ai is given for one step. Does no I/O."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pydantic_ai.messages import InstructionPart, ModelMessage, ModelResponse, UserPromptPart
from pydantic_ai.messages import ModelRequest as ProviderRequest
from pydantic_ai.models import Model, ModelRequestParameters
from pydantic_ai.models.fallback import FallbackModel
from pydantic_ai.tools import ToolDefinition

from perdure.errors import ModelRejected
from perdure.models.bridge.history import MessageConverter
from perdure.models.contract import HistoryMessage, ModelRequest

__all__ = ["GO_ON", "NOTHING_TO_ANSWER", "converter_for", "model_messages", "parameters_of"]

GO_ON = "Go on with your last answer exactly where it stopped. Repeat nothing of it."
"""Said by the user, in the request only, when a conversation ends with the model's words: several providers refuse to
extend an answer or misread the wish."""

NOTHING_TO_ANSWER = "There is no message that the model could answer."

_NATIVE_ERRORS = frozenset({"anthropic", "bedrock", "google", "google-cloud"})
"""Systems that mark a failed tool result as such. For others pydantic-ai would wrap the text in an object."""


def converter_for(model: Model[Any]) -> MessageConverter:
    """How ``model`` is shown UI messages."""
    return MessageConverter(accepted=frozenset(_systems_of(model)), native_errors=model.system in _NATIVE_ERRORS)


def model_messages(history: Sequence[HistoryMessage], converter: MessageConverter) -> list[ModelMessage]:
    """The conversation as ``converter`` shows it.

    Raises:
        ModelRejected: there is nothing in it.
    """
    messages: list[ModelMessage] = []
    for item in history:
        messages += item.derive(converter, converter)
    if not messages:
        raise ModelRejected(NOTHING_TO_ANSWER)
    if isinstance(messages[-1], ModelResponse):
        messages.append(ProviderRequest([UserPromptPart(GO_ON)]))
    return messages


def parameters_of(request: ModelRequest) -> ModelRequestParameters:
    """The tools and the system prompt of a step."""
    return ModelRequestParameters(
        function_tools=[
            ToolDefinition(name=tool.name, description=tool.description, parameters_json_schema=tool.parameters)
            for tool in request.tools
        ],
        instruction_parts=[InstructionPart(request.system)] if request.system else [],
    )


def _systems_of(model: Model[Any]) -> set[str]:
    """The providers whose signed or encrypted parts ``model`` sends back."""
    if isinstance(model, FallbackModel):
        return {system for one in model.models for system in _systems_of(one)}
    return {model.system, model.canonical_system, *model.compatible_systems}
