"""The forms in which messages may be given: a text, a message, or several. Pure."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, cast

from perdure.errors import BadRequest
from perdure.protocol.messages import UIMessage

__all__ = ["MessageInput", "as_messages"]

MessageInput = str | Mapping[str, Any] | Sequence[Mapping[str, Any]]
"""A text (a user message), a UI message, or UI messages."""


def as_messages(given: MessageInput, new_id: Callable[[], str]) -> list[UIMessage]:
    """What was given as UI messages; a message without an id gets one.

    Raises:
        BadRequest: it is none of these forms, or a message has no role or no parts.
    """
    if isinstance(given, str):
        return [{"id": new_id(), "role": "user", "parts": [{"type": "text", "text": given}]}]
    if isinstance(given, Mapping):
        return [_message(given, new_id)]
    return [_message(message, new_id) for message in given]


def _message(given: Mapping[str, Any], new_id: Callable[[], str]) -> UIMessage:
    message = {"id": given.get("id") or new_id(), **{key: value for key, value in given.items() if key != "id"}}
    if message.get("role") not in {"user", "assistant", "system"}:
        raise BadRequest(f"A message has the role {message.get('role')!r}: it must be user, assistant or system.")
    if not isinstance(message.get("parts"), list):
        raise BadRequest('A message has no list of parts, like [{"type": "text", "text": "…"}].')
    return cast("UIMessage", message)
