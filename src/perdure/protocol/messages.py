"""UI messages and their parts, as the AI SDK's clients hold them (reference: protocol §7.3).

A message is kept as the JSON text it travels as, so that fields unknown here survive; these types name the fields that
the server reads. Owns no logic beyond looking at a part. Imports nothing of perdure.
"""

from __future__ import annotations

from typing import Any, Literal, NotRequired, TypedDict

__all__ = ["SETTLED", "Part", "Role", "UIMessage", "is_settled", "is_tool_part", "text_of", "tool_name"]

Role = Literal["system", "user", "assistant"]

Part = dict[str, Any]
"""One part. ``type`` is ``text``, ``reasoning``, ``file``, ``step-start``, ``tool-<name>``, ``dynamic-tool``, …"""

SETTLED = frozenset({"output-available", "output-error", "output-denied"})
"""The tool states that nothing follows."""


class UIMessage(TypedDict):
    """One message of a conversation."""

    id: str
    role: Role
    parts: list[Part]
    metadata: NotRequired[Any]


def is_tool_part(part: Part) -> bool:
    """Whether ``part`` is a tool call, declared (``tool-<name>``) or dynamic."""
    kind = part.get("type", "")
    return kind.startswith("tool-") or kind == "dynamic-tool"


def tool_name(part: Part) -> str:
    """The tool of a tool part: what follows the first ``-`` of its type, or ``toolName`` of a dynamic one."""
    if part["type"] == "dynamic-tool":
        return part.get("toolName", "")
    return part["type"].split("-", 1)[1]


def is_settled(part: Part) -> bool:
    """Whether nothing follows for a tool part. What a tool shows before its result settles nothing."""
    return part.get("state") in SETTLED and not part.get("preliminary")


def text_of(message: UIMessage) -> str:
    """The text parts of ``message``, joined. A client may have posted some that hold no text."""
    texts = (part.get("text") for part in message["parts"] if part.get("type") == "text")
    return "".join(text for text in texts if isinstance(text, str))
