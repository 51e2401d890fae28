"""The conversation in a request, as JSON: what each message came to, and how the pieces are put together.

What a message comes to is made by pydantic-ai and does not depend on its neighbours but for one thing: servers that
reason want their reasoning field, be it empty, in calls that follow reasoning. That is added here. No I/O.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

import msgspec

from perdure.models.quick.body import encode

__all__ = ["Backfill", "Section", "filled", "leading", "section"]

_FIELDS = ("reasoning", "reasoning_content")


class Section(msgspec.Struct, frozen=True, gc=False):
    """What one of pydantic-ai's messages came to: none, one or more messages of the request."""

    json: bytes
    """The messages, separated by commas."""
    response: bool
    """Whether it is the model's."""
    reasoned: bool
    """Whether the model reasons in it, sent or not."""
    user: bool
    """Whether one of the messages is a user's."""
    system: bool
    """Whether the messages are nothing but system prompts."""
    fields: tuple[str, ...]
    """The reasoning fields that it carries."""
    calls: bool
    """Whether it ends with a message that calls tools."""
    plain: bool
    """Whether there is neither reasoning nor a call in it."""


class Backfill(msgspec.Struct, frozen=True):
    """Which field is added to calls that lack it."""

    mode: Literal["auto", "field", "never"]
    """``auto``: the one that the conversation carries, in the calls since the user spoke. ``field``: the provider's
    own, in every call from the first reasoning on."""
    field: str = ""
    """The provider's own."""
    at_once: bool = False
    """With ``field``: from the first message on."""


def section(messages: Sequence[dict[str, Any]], *, response: bool, reasoned: bool, system_role: str) -> Section:
    """``messages`` of a request, which one of pydantic-ai's messages came to."""
    roles = [message["role"] for message in messages]
    fields = tuple(name for name in _FIELDS if any(name in message for message in messages))
    calls = bool(messages and messages[-1].get("tool_calls"))
    return Section(
        json=b",".join(encode(message) for message in messages),
        response=response,
        reasoned=reasoned,
        user="user" in roles,
        system=bool(roles) and all(role == system_role for role in roles),
        fields=fields,
        calls=calls,
        plain=not (reasoned or fields or calls),
    )


def leading(sections: Sequence[Section]) -> int:
    """How many of the first sections are system prompts of the conversation."""
    return next((number for number, one in enumerate(sections) if not one.system), len(sections))


def filled(sections: Sequence[Section], backfill: Backfill, *, user_follows: bool) -> list[bytes]:
    """The JSON of each section, with the reasoning field where servers insist on it.

    ``user_follows``: whether something that the user says comes after them.
    """
    if backfill.mode == "never" or all(one.plain for one in sections):
        return [one.json for one in sections]
    if backfill.mode == "field":
        reasoned = (number for number, one in enumerate(sections) if one.reasoned)
        first = 0 if backfill.at_once else next(reasoned, len(sections))
        return _with_field(sections, first, backfill.field)
    fields = {name for one in sections for name in one.fields}
    if len(fields) != 1 or user_follows:
        return [one.json for one in sections]
    return _with_field(sections, _since_user(sections), *fields)


def _since_user(sections: Sequence[Section]) -> int:
    """Where that begins which follows the user's last words."""
    last = max((number for number, one in enumerate(sections) if one.user), default=-1)
    # Reasoning that is told as the user's words stands before the answer that it belongs to.
    return last if last >= 0 and sections[last].response else last + 1


def _with_field(sections: Sequence[Section], first: int, field: str) -> list[bytes]:
    """The JSON of each section; calls from ``first`` on have the field."""
    # The message that calls is the last of its section.
    return [
        b'%s,"%s":""}' % (one.json[:-1], field.encode())
        if number >= first and one.calls and field not in one.fields
        else one.json
        for number, one in enumerate(sections)
    ]
