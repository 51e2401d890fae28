"""What was said, in the form in which the GenAI conventions put it into spans. Pure."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any

__all__ = ["as_json", "genai_messages"]


def as_json(value: Any) -> str:
    """``value`` as JSON text; what has no JSON form, as its ``str``."""
    return json.dumps(value, ensure_ascii=False, default=str)


def genai_messages(messages: Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """UI messages as the conventions write them."""
    return [
        {"role": message["role"], "parts": [made for part in message["parts"] for made in _parts(part)]}
        for message in messages
    ]


def _parts(part: Mapping[str, Any]) -> list[dict[str, Any]]:
    kind: str = part.get("type", "")
    if kind in {"text", "reasoning"}:
        return [{"type": kind, "content": part.get("text", "")}]
    if kind == "file":
        # The address of a file may hold the file itself: megabytes that no tracing server takes.
        return [{"type": "file", "mime_type": part.get("mediaType", ""), "name": part.get("filename", "")}]
    if kind.startswith("tool-") or kind == "dynamic-tool":
        return _call(part, part.get("toolName") or kind.partition("-")[2])
    return []


def _call(part: Mapping[str, Any], name: str) -> list[dict[str, Any]]:
    call = {"type": "tool_call", "id": part.get("toolCallId", ""), "name": name, "arguments": part.get("input")}
    answer = part.get("output", part.get("errorText"))
    if answer is None:
        return [call]
    return [call, {"type": "tool_call_response", "id": call["id"], "response": answer}]
