"""Chunks in short form, and any sequence of them."""

from collections.abc import Iterable
from typing import Any

from hypothesis import strategies as st

from perdure.chat.builder import MessageBuilder
from tests.protocol.samples import json_values

__all__ = ["Chunk", "any_chunks", "build", "called", "said"]

Chunk = dict[str, Any]


def build(*chunks: Chunk, message_id: str = "m") -> MessageBuilder:
    """A builder that took ``chunks``."""
    builder = MessageBuilder(message_id)
    for chunk in chunks:
        builder.apply(chunk)
    return builder


def said(*deltas: str, id: str = "0", kind: str = "text") -> list[Chunk]:
    """A whole text or reasoning part."""
    pieces: Iterable[Chunk] = ({"type": f"{kind}-delta", "id": id, "delta": delta} for delta in deltas)
    return [{"type": f"{kind}-start", "id": id}, *pieces, {"type": f"{kind}-end", "id": id}]


def called(tool: str, call: str, input: Any) -> list[Chunk]:
    """A whole tool call, without its result."""
    return [
        {"type": "tool-input-start", "toolCallId": call, "toolName": tool},
        {"type": "tool-input-delta", "toolCallId": call, "inputTextDelta": "{…}"},
        {"type": "tool-input-available", "toolCallId": call, "toolName": tool, "input": input},
    ]


_KINDS = [
    *("start", "start-step", "finish-step", "reset-step", "finish", "message-metadata", "abort", "error", "unknown"),
    *("text-start", "text-delta", "text-end", "reasoning-start", "reasoning-delta", "reasoning-end"),
    *("tool-input-start", "tool-input-delta", "tool-input-available", "tool-input-error"),
    *("tool-output-available", "tool-output-error", "tool-output-denied", "tool-approval-request"),
    *("file", "source-url", "data-x", "data-y"),
]

_names = st.sampled_from(["0", "1", "2"])
_FIELDS: dict[str, st.SearchStrategy[Any]] = {
    "id": _names,
    "messageId": _names,
    "delta": st.text(max_size=3),
    "toolCallId": _names,
    "toolName": st.sampled_from(["add", "sub"]),
    "inputTextDelta": st.text(max_size=3),
    "input": st.dictionaries(st.text(max_size=2), st.integers(), max_size=2) | json_values(2),
    "output": json_values(2),
    "errorText": st.text(max_size=3),
    "data": json_values(2),
    "transient": st.booleans(),
    "preliminary": st.just(True),
    "providerMetadata": st.just({"p": {"x": 1}}),
    "messageMetadata": st.dictionaries(_names, st.integers(), max_size=2),
    "title": st.text(max_size=2),
}


@st.composite
def _chunk(draw: st.DrawFn, *, whole: bool) -> Chunk:
    fields = {name: draw(value) for name, value in _FIELDS.items() if whole or draw(st.integers(0, 3))}
    if not whole and fields and draw(st.booleans()):
        fields[draw(st.sampled_from(sorted(fields)))] = draw(json_values(2))
    return {"type": draw(st.sampled_from(_KINDS)), **fields}


def any_chunks(*, whole: bool) -> st.SearchStrategy[list[Chunk]]:
    """Chunks of all types in any order.

    Args:
        whole: Whether each has every field that its type may have; otherwise fields may be missing or of a wrong type.
    """
    return st.lists(_chunk(whole=whole), max_size=12)
