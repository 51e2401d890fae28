"""Results of tools as the demo model tells them: readable text. Imports ``protocol``."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

from perdure.protocol import codec
from perdure.protocol.messages import Part, tool_name

__all__ = ["readable", "tell_results"]

MAX_CHARS = 800


def tell_results(parts: Sequence[Part]) -> str:
    """One sentence for a single settled call, a list for several."""
    if len(parts) == 1:
        return f"{'Here is the result. ' if _succeeded(parts[0]) else ''}{_tell(parts[0])}"
    intro = "Here are the results:" if all(map(_succeeded, parts)) else "Not everything went well:"
    return "\n".join([intro, "", *(f"- {_tell(part)}" for part in parts)])


def _succeeded(part: Part) -> bool:
    return part["state"] == "output-available"


def _tell(part: Part) -> str:
    name = tool_name(part)
    match part["state"]:
        case "output-available":
            return _sentence(f"{name}: {readable(part.get('output'))}")
        case "output-error":
            return _sentence(f"{name} failed: {part.get('errorText') or 'without saying why'}")
        case _:
            approval: dict[str, Any] = part.get("approval") or {}
            return _sentence(f"{name} was not allowed{_because(approval.get('reason'))}")


def _because(reason: str | None) -> str:
    return f": {reason}" if reason else ""


def _sentence(text: str) -> str:
    if len(text) > MAX_CHARS:
        return text[: MAX_CHARS - 1] + "…"
    return text if text.endswith((".", "!", "?", "…", "`")) else text + "."


def readable(value: Any) -> str:
    """A JSON value as text for people. What is nested stays JSON."""
    if isinstance(value, dict):
        items = cast("dict[str, Any]", value)
        if items and all(map(_is_scalar, items.values())):
            return ", ".join(f"{key.replace('_', ' ')} {_scalar(item)}" for key, item in items.items())
    elif isinstance(value, list):
        entries = cast("list[Any]", value)
        if all(map(_is_scalar, entries)):
            return ", ".join(map(_scalar, entries)) or "nothing"
    else:
        return _scalar(value)
    return f"`{codec.encode_text(value)}`"


def _is_scalar(value: Any) -> bool:
    return not isinstance(value, dict | list)


def _scalar(value: Any) -> str:
    if value is None:
        return "none"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    return str(value)
