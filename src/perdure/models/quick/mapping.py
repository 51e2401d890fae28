"""Has pydantic-ai map messages of a conversation, many at once, and tells which came to what.

Needs the ``openai`` extra.
"""

from __future__ import annotations

import uuid
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from pydantic_ai.messages import (
    ModelMessage,
    ModelRequest,
    ModelResponse,
    ThinkingPart,
    ToolCallPart,
    ToolReturnPart,
    UserPromptPart,
)
from pydantic_ai.models import ModelRequestParameters
from pydantic_ai.models.openai import OpenAIChatModel

from perdure.models.quick.body import Unwritable
from perdure.models.quick.recording import recorded
from perdure.models.quick.sections import Section, section

__all__ = ["Mapped", "mapped"]

_MARK = uuid.uuid4().hex
"""Stands between the messages, said by a user; nobody else says it."""
_BETWEEN = ModelRequest([UserPromptPart(_MARK)])
_PROBE = ModelResponse([ToolCallPart("probe", {}, "probe")]), ModelRequest([ToolReturnPart("probe", "", "probe")])
"""A call that no reasoning precedes: shows whether it is given an empty field for it."""


class Mapped(NamedTuple):
    """A call of the SDK without its messages, and what those came to."""

    params: dict[str, Any]
    max_retries: int
    instructions: list[dict[str, Any]]
    """What the system says, as messages."""
    fills: bool
    """Whether a call that no reasoning precedes is given an empty field for it."""
    sections: list[tuple[Section, ...]]
    """What each list of messages came to."""


async def mapped(
    model: OpenAIChatModel,
    conversation: Sequence[Sequence[ModelMessage]],
    settings: Mapping[str, Any],
    parameters: ModelRequestParameters,
) -> Mapped:
    """Map lists of messages.

    Each message is mapped as if it had no neighbours, as a user speaks between any two.

    Raises:
        Unwritable: what came of it cannot be told apart.
        Exception: see :func:`~perdure.models.quick.recording.recorded`.
    """
    marked: list[ModelMessage] = [_BETWEEN, *_PROBE, _BETWEEN]
    for messages in conversation:
        for message in messages:
            marked += message, _BETWEEN
    params, max_retries = await recorded(model, marked, settings, parameters)
    instructions, probe, *came_to = _between_marks(params.pop("messages"), len(marked) // 2)
    field = model.profile.get("openai_chat_thinking_field") or ""
    role = model.profile.get("openai_system_prompt_role") or "system"
    made = iter(came_to)
    sections = [tuple(_section(message, next(made), field, role) for message in messages) for messages in conversation]
    return Mapped(params, max_retries, instructions, field in probe[0], sections)


def _between_marks(messages: Sequence[dict[str, Any]], count: int) -> list[list[dict[str, Any]]]:
    """What stands before, between and after the marks, of which there are ``count``."""
    pieces: list[list[dict[str, Any]]] = [[]]
    for message in messages:
        if message.get("content") == _MARK:
            pieces.append([])
        else:
            pieces[-1].append(message)
    if len(pieces) != count + 1 or pieces.pop():
        raise Unwritable("pydantic-ai put messages together that follow each other.")
    return pieces


def _section(message: ModelMessage, came_to: list[dict[str, Any]], field: str, system_role: str) -> Section:
    response = isinstance(message, ModelResponse)
    reasoned = response and any(isinstance(part, ThinkingPart) for part in message.parts)
    if came_to and not reasoned and came_to[-1].get(field) == "":
        # Added because of reasoning in an earlier message of the batch.
        del came_to[-1][field]
    return section(came_to, response=response, reasoned=reasoned, system_role=system_role)
