"""The forms in which messages may be given: a text, a message, or several. Pure."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, cast

import msgspec

from perdure.errors import BadRequest
from perdure.protocol import codec
from perdure.protocol.bounds import Id
from perdure.protocol.messages import Role, UIMessage

__all__ = ["MessageInput", "as_messages"]

MessageInput = str | Mapping[str, Any] | Sequence[Mapping[str, Any]]
"""A text (a user message), a UI message, or UI messages."""


def as_messages(given: MessageInput, new_id: Callable[[], str]) -> list[UIMessage]:
    """What was given as UI messages, sharing nothing with it; a message without an id gets one.

    Raises:
        BadRequest: it is none of these forms, or a message has no role, no parts or no JSON form.
    """
    value: Any = given
    if isinstance(value, str):
        value = {"role": "user", "parts": [{"type": "text", "text": value}]}
    if isinstance(value, Mapping):
        value = [value]
    if not isinstance(value, Sequence) or isinstance(value, bytes | bytearray):
        raise BadRequest(f"Messages are a text, a UI message, or a list of UI messages; not {type(given).__name__}.")
    return [_message(message, new_id) for message in cast("Sequence[Any]", value)]


def _message(given: Any, new_id: Callable[[], str]) -> UIMessage:
    if not isinstance(given, Mapping):
        raise BadRequest(f"A message is {type(given).__name__}; it must be an object with id, role and parts.")
    fields = cast("Mapping[str, Any]", given)
    try:
        text = codec.encode_text({"id": fields.get("id") or new_id(), **_without_id(fields)})
        message = codec.decode(text)
    except TypeError as error:
        raise BadRequest(f"A message has no JSON form: {error}") from None
    try:
        codec.decode_as(_Message, text)
    except codec.DecodeError as error:
        raise BadRequest(
            f'A message cannot be used: {error}. It looks like {{"role": "user", "parts": [{{"type": "text", …}}]}}.'
        ) from None
    return cast("UIMessage", message)


def _without_id(fields: Mapping[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in fields.items() if key != "id"}


class _Part(msgspec.Struct):
    type: str


class _Message(msgspec.Struct):
    id: Id
    role: Role
    parts: list[_Part]
