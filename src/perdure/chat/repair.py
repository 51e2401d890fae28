"""Settles the tool calls of a turn that is over, and puts right what is odd in stored ones (reference: engine §2.11).

A call whose outcome is unknown is never run again: it becomes an error that the model and the people see. Pure.
"""

from __future__ import annotations

from collections.abc import Container, Iterable
from typing import Any, cast

import msgspec

from perdure.protocol import codec
from perdure.protocol.messages import Part, UIMessage, is_settled, is_tool_part

__all__ = ["INTERRUPTED", "Repaired", "may_need_repair", "normalise_inputs", "repair", "settle_open_calls"]

INTERRUPTED = "The tool call was interrupted before a result was recorded."


class Repaired(msgspec.Struct, frozen=True):
    """A message that was put right."""

    message: UIMessage
    settled: list[str]
    """Ids of the calls that had no outcome."""
    normalised: list[str]
    """Ids of the calls whose input was no object."""


def settle_open_calls(parts: Iterable[Part], text: str = INTERRUPTED, *, left: Container[str] = ()) -> list[str]:
    """Give every open tool call among ``parts`` the error ``text``, but for those ``left`` as they are.

    Gives the ids of the calls that changed.
    """
    changed: list[str] = []
    for part in parts:
        if is_tool_part(part) and not is_settled(part) and part["toolCallId"] not in left:
            if not isinstance(part.get("input"), dict):
                part["input"] = {}
            part.pop("output", None)
            part.pop("preliminary", None)
            part.update(state="output-error", errorText=text)
            changed.append(part["toolCallId"])
    return changed


def normalise_inputs(part: Part) -> Part | None:
    """A copy of a tool part with an object as its input; ``None`` when it has one, or is none.

    Text that holds a JSON object is read; of everything else nothing is left but, if it was text, ``rawInput``.
    """
    if not is_tool_part(part) or isinstance(part.get("input"), dict):
        return None
    given = part.get("input")
    found = _object_in(given)
    fixed: Part = {**part, "input": {} if found is None else found}
    if found is None and isinstance(given, str) and given:
        fixed.setdefault("rawInput", given)
    return fixed


def may_need_repair(text: str) -> bool:
    """Whether the message with this JSON text can need :func:`repair`; cheap, and never wrongly false."""
    return '"toolCallId"' in text or '"tool-' in text or '"dynamic-tool"' in text


def repair(message: UIMessage, left: Container[str] = ()) -> Repaired | None:
    """A message without open calls, but for those ``left`` as they are, and with objects as inputs; ``None`` when it is
    so already. It is not changed."""
    settled: list[str] = []
    normalised: list[str] = []
    parts: list[Part] = []
    for part in message["parts"]:
        fixed = part
        if is_tool_part(part):
            call: str = part.get("toolCallId", "")
            if (with_object := normalise_inputs(part)) is not None:
                fixed = with_object
                normalised.append(call)
            if not is_settled(part) and call not in left:
                kept = {key: value for key, value in fixed.items() if key not in {"output", "preliminary"}}
                fixed = {**kept, "state": "output-error", "errorText": INTERRUPTED}
                settled.append(call)
        parts.append(fixed)
    if not settled and not normalised:
        return None
    return Repaired({**message, "parts": parts}, settled, normalised)


def _object_in(value: Any) -> dict[str, Any] | None:
    if isinstance(value, str):
        try:
            value = codec.decode(value)
        except codec.DecodeError:
            return None
    return cast("dict[str, Any]", value) if isinstance(value, dict) else None
