"""What of older messages a model is shown: long tool outputs and texts cut, media left out (reference: engine §2.10).

Only the model's copy is cut; stored messages stay as they are. Pure.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any, cast

from perdure.protocol import codec
from perdure.protocol.messages import Part, UIMessage, is_tool_part

__all__ = ["DEPTH", "OUTPUT", "TEXT", "may_be_cut", "settled_count", "shorten"]

OUTPUT = 500
"""Characters that are left of an older tool output, in its JSON form."""
TEXT = 10_000
"""Characters that are left of an older text."""
DEPTH = 8
"""Levels of a tool output that are looked at; what lies deeper is left out when the output is too long."""

_KEPT = 4
"""At least this many of the newest messages are shown whole."""


def settled_count(count: int, step: float) -> int:
    """How many of ``count`` messages are old: shown cut. It grows in steps, so that prompts keep their beginning.

    Args:
        count: Messages in the history.
        step: By how many messages it grows at once; infinite for never. A number that makes no sense counts as 1.
    """
    if step == math.inf:
        return 0
    width = int(step) if step >= 1 else 1
    return max(0, (count - _KEPT) // width * width)


def may_be_cut(text: str) -> bool:
    """Whether the message with this JSON text can have anything to cut; cheap, and never wrongly false."""
    return len(text) > TEXT or (len(text) > OUTPUT and '"output' in text)


def shorten(message: UIMessage) -> UIMessage | None:
    """A message as it is shown when it is old; ``None`` when there is nothing to cut."""
    parts = [_part(part) for part in message["parts"]]
    if all(new is old for new, old in zip(parts, message["parts"], strict=True)):
        return None
    return {**message, "parts": parts}


def _part(part: Part) -> Part:
    if part.get("type") == "text":
        text = part.get("text")
        return {**part, "text": _cut(text, TEXT)} if isinstance(text, str) and len(text) > TEXT else part
    if not is_tool_part(part) or part.get("providerExecuted"):
        return part
    changed: Part = {}
    if "output" in part:
        output = _without_media(part["output"], DEPTH)
        if len(_text_of(output)) > OUTPUT:
            output = _Budget(OUTPUT).cut(output, DEPTH)
        if output is not part["output"]:
            changed["output"] = output
    error = part.get("errorText")
    if isinstance(error, str) and len(error) > OUTPUT:
        changed["errorText"] = _cut(error, OUTPUT)
    return {**part, **changed} if changed else part


def _cut(text: str, length: int) -> str:
    return f"{text[:length]}... [truncated {len(text) - length} chars]"


def _text_of(value: Any) -> str:
    return value if isinstance(value, str) else codec.encode_text(value)


# ── media ───────────────────────────────────────────────────────────


def _without_media(value: Any, depth: int) -> Any:
    """The value with a note in the place of inline media; the same object when there is none."""
    if isinstance(value, str):
        return _note(value[5 : value.index(";")]) if _is_data_url(value) else value
    if depth == 0 or not isinstance(value, list | dict):
        return value
    if isinstance(value, list):
        items = cast("list[Any]", value)
        new = [_without_media(item, depth - 1) for item in items]
        return new if _differs(new, items) else items
    fields = cast("dict[str, Any]", value)
    if media_type := _inline_media(fields):
        return {"type": "text", "text": _note(media_type)}
    changed = {key: _without_media(item, depth - 1) for key, item in fields.items()}
    return changed if _differs(changed.values(), fields.values()) else fields


def _is_data_url(text: str) -> bool:
    return text.startswith("data:") and ";base64," in text[:200]


def _inline_media(fields: dict[str, Any]) -> str | None:
    """The media type of an object that holds base64 data, as tools give images: ``{mediaType, data}``."""
    media_type = fields.get("mediaType") or fields.get("mimeType")
    data = fields.get("data")
    if not isinstance(media_type, str) or not isinstance(data, str) or media_type.startswith("text/"):
        return None
    return media_type


def _note(media_type: str) -> str:
    return f"[{media_type} omitted from an older tool result]"


def _differs(new: Iterable[Any], old: Iterable[Any]) -> bool:
    return any(a is not b for a, b in zip(new, old, strict=True))


# ── size ────────────────────────────────────────────────────────────


class _Budget:
    """Cuts a value so that its shape stays: an object is still an object, small fields keep their values."""

    def __init__(self, characters: int) -> None:
        self._left = characters

    def cut(self, value: Any, depth: int) -> Any:
        """The value, as far as the characters that are left reach."""
        size = len(_text_of(value))
        if size <= self._left:
            self._left -= size
            return value
        if isinstance(value, str):
            kept, self._left = max(self._left, 0), 0
            return _cut(value, kept)
        if depth == 0 or not isinstance(value, list | dict):
            return f"[truncated {size} chars]"
        if isinstance(value, dict):
            return self._cut_fields(cast("dict[str, Any]", value), depth)
        return self._cut_items(cast("list[Any]", value), depth)

    def _cut_fields(self, fields: dict[str, Any], depth: int) -> dict[str, Any]:
        """Small fields first, each in its place; what does not fit even by its name is counted."""
        kept: dict[str, Any] = {}
        for key in sorted(fields, key=lambda key: len(_text_of(fields[key]))):
            if len(key) + 3 > self._left:
                break
            self._left -= len(key) + 3
            kept[key] = self.cut(fields[key], depth - 1)
        shown = {key: kept[key] for key in fields if key in kept}
        if len(shown) < len(fields):
            shown["__truncated"] = f"{len(fields) - len(shown)} more fields"
        return shown

    def _cut_items(self, items: list[Any], depth: int) -> list[Any]:
        shown: list[Any] = []
        for item in items:
            if self._left <= 0:
                break
            shown.append(self.cut(item, depth - 1))
        if len(shown) < len(items):
            shown.append(f"[truncated {len(items) - len(shown)} items]")
        return shown
