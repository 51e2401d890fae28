"""The conversation in a request, as JSON: what each message came to, and how the pieces are put together.

What a message comes to is made by pydantic-ai and does not depend on its neighbours but for one thing: servers that
reason want their reasoning field, be it empty, in calls that follow reasoning. That is added here. No I/O.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

import msgspec

from perdure.models.quick.body import encode

__all__ = ["Backfill", "Group", "Section", "filled", "leading", "section"]


class Section(msgspec.Struct, frozen=True, gc=False):
    """What one of pydantic-ai's messages came to: none, one or more messages of the request."""

    json: bytes
    """The messages, separated by commas."""
    response: bool
    """Whether it is the model's."""
    reasoned: bool
    """Whether there is reasoning in it, sent or not."""
    user: bool
    """Whether one of the messages is a user's."""
    system: bool
    """Whether the messages are nothing but system prompts."""
    fields: tuple[str, ...]
    """The reasoning fields that it carries."""
    calls: bool
    """Whether it ends with a message that calls tools."""


class Group(msgspec.Struct, frozen=True):
    """What one UI message came to."""

    sections: tuple[Section, ...]
    json: bytes
    """All of them, separated by commas."""
    plain: bool
    """Whether there is neither reasoning nor a call in it, so that nothing is ever added."""
    system: bool
    """Whether it is nothing but system prompts."""

    @classmethod
    def of(cls, sections: Sequence[Section]) -> Group:
        """All of one UI message."""
        return cls(
            tuple(sections),
            b",".join(one.json for one in sections if one.json),
            not any(one.reasoned or one.fields or one.calls for one in sections),
            bool(sections) and all(one.system for one in sections),
        )


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
    last = messages[-1] if messages else {}
    return Section(
        json=b",".join(encode(message) for message in messages),
        response=response,
        reasoned=reasoned,
        user="user" in roles,
        system=bool(roles) and all(role == system_role for role in roles),
        fields=tuple(name for name in _FIELDS if any(name in message for message in messages)),
        calls=bool(last.get("tool_calls")),
    )


def leading(groups: Sequence[Group]) -> int:
    """How many of the first groups are system prompts of the conversation."""
    return next((number for number, group in enumerate(groups) if not group.system), len(groups))


def filled(groups: Sequence[Group], backfill: Backfill, *, user_follows: bool) -> list[bytes]:
    """The JSON of each group, with the reasoning field where servers insist on it.

    ``user_follows``: whether something that the user says comes after them.
    """
    if all(group.plain for group in groups) or backfill.mode == "never":
        return [group.json for group in groups]
    if backfill.mode == "field":
        return _since_reasoning(groups, backfill)
    fields = {name for group in groups if not group.plain for one in group.sections for name in one.fields}
    if len(fields) != 1 or user_follows:
        return [group.json for group in groups]
    return _since_user(groups, *fields)


def _since_reasoning(groups: Sequence[Group], backfill: Backfill) -> list[bytes]:
    pieces: list[bytes] = []
    begun = backfill.at_once
    for group in groups:
        reasoned = (place for place, one in enumerate(group.sections) if one.reasoned)
        first = 0 if begun else next(reasoned, len(group.sections))
        begun = begun or first < len(group.sections)
        pieces.append(group.json if group.plain else _with_field(group.sections, first, backfill.field))
    return pieces


def _since_user(groups: Sequence[Group], field: str) -> list[bytes]:
    pieces = [group.json for group in groups]
    for number in reversed(range(len(groups))):
        sections = groups[number].sections
        spoken = max((place for place, one in enumerate(sections) if one.user), default=-1)
        # Reasoning that is told as the user's words stands before the answer that it belongs to.
        first = spoken if spoken >= 0 and sections[spoken].response else spoken + 1
        pieces[number] = _with_field(sections, first, field)
        if spoken >= 0:
            break
    return pieces


def _with_field(sections: Sequence[Section], first: int, field: str) -> bytes:
    """The JSON of a group; calls from section ``first`` on have the field."""
    pieces: list[bytes] = []
    for place, one in enumerate(sections):
        if place >= first and one.calls and field not in one.fields:
            # The message that calls is the last of its section.
            pieces.append(b'%s,"%s":""}' % (one.json[:-1], field.encode()))
        elif one.json:
            pieces.append(one.json)
    return b",".join(pieces)


_FIELDS = ("reasoning", "reasoning_content")
