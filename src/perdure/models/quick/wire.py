"""What a chat completions stream carries, as far as it is read. No I/O.

The values are typed loosely: compatible servers send what they like, and what is not understood is passed over where it
is read.
"""

from __future__ import annotations

from typing import Any, cast

import msgspec

__all__ = ["WireCall", "WireChunk", "WireDelta", "decode_chunk", "text_of"]


class _Function(msgspec.Struct):
    name: Any = None
    arguments: Any = None


class WireCall(msgspec.Struct):
    """A piece of a tool call."""

    index: Any = None
    id: Any = None
    function: _Function | None = None
    extra_content: Any = None
    """What the provider wants back with the call (thought signatures)."""


class WireDelta(msgspec.Struct):
    """What a chunk adds."""

    content: Any = None
    reasoning: Any = None
    reasoning_content: Any = None
    refusal: Any = None
    tool_calls: list[WireCall] | None = None
    annotations: Any = None


class _Choice(msgspec.Struct):
    delta: WireDelta | None = None
    finish_reason: Any = None


class WireChunk(msgspec.Struct):
    """One chunk."""

    choices: list[_Choice] | None = None
    usage: Any = None
    model: Any = None
    error: Any = None


decode_chunk = msgspec.json.Decoder(WireChunk).decode
"""A :class:`WireChunk` from JSON bytes. Raises ``msgspec.DecodeError``."""


def text_of(content: Any) -> str:
    """The text in a delta's content; some servers send it as a list of parts."""
    if isinstance(content, str):
        return content
    parts = cast("list[Any]", content) if isinstance(content, list) else []
    return "".join(part if isinstance(part, str) else _text_in(part) for part in parts)


def _text_in(part: Any) -> str:
    fields = cast("dict[str, Any]", part) if isinstance(part, dict) else {}
    text = fields.get("text") if fields.get("type") == "text" else None
    return text if isinstance(text, str) else ""
