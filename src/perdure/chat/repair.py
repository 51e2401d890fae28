"""Settles the tool calls of a turn that is over (reference: engine §2.11).

A call whose outcome is unknown is never run again: it becomes an error that the model and the people see. Pure.
"""

from __future__ import annotations

from collections.abc import Iterable

from perdure.protocol.messages import SETTLED, Part, is_tool_part

__all__ = ["INTERRUPTED", "settle_open_calls"]

INTERRUPTED = "The tool call was interrupted before a result was recorded."


def settle_open_calls(parts: Iterable[Part], text: str = INTERRUPTED) -> list[str]:
    """Give every open tool call among ``parts`` the error ``text``; gives the ids of the calls that changed."""
    changed: list[str] = []
    for part in parts:
        if is_tool_part(part) and part["state"] not in SETTLED:
            if not isinstance(part.get("input"), dict):
                part["input"] = {}
            part.update(state="output-error", errorText=text)
            changed.append(part["toolCallId"])
    return changed
