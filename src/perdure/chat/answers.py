"""What an answer does to the tool part that waited for it (reference: protocol §8.2). Pure.

Each function gives the part anew; the given one is not changed.
"""

from __future__ import annotations

from collections.abc import Callable, Container
from typing import Any, cast

from perdure.chat.interactions import Interaction
from perdure.protocol.messages import Part, UIMessage, is_settled, is_tool_part

__all__ = ["DENIED", "NOT_RUN", "decided", "failed", "finished", "is_unseen", "refused", "with_part"]

DENIED = "Tool execution denied by user"
"""The error of a call that a page answers with an error without a text."""
NOT_RUN = "The tool call was approved but did not run before the next turn started."
"""The error of an approved call that was overtaken."""

_RESULT = frozenset({"output", "preliminary", "errorText"})


def finished(part: Part, output: Any) -> Part:
    """It has this result."""
    return {**_without_result(part), "state": "output-available", "output": output, "preliminary": False}


def failed(part: Part, text: str) -> Part:
    """It failed."""
    return {**_without_result(part), "state": "output-error", "errorText": text}


def decided(part: Part, interaction: Interaction) -> Part:
    """Somebody said whether it may run. What else is known of the question stays."""
    approved = interaction.decision == "approved"
    before = _question(part)
    approval: dict[str, Any] = {**before, "id": before.get("id") or interaction.call, "approved": approved}
    if interaction.reason is not None:
        approval["reason"] = interaction.reason
    state = "approval-responded" if approved else "output-denied"
    return {**part, "input": interaction.arguments, "state": state, "approval": approval}


def refused(part: Part, why: str) -> Part:
    """A decision on it could not be taken: it is asked again."""
    return {**part, "approval": {**_question(part), "error": why}}


def with_part(message: UIMessage, call: str, change: Callable[[Part], Part]) -> UIMessage | None:
    """A message in which the part of a call is changed; ``None`` when it has no such part, or that is settled."""
    for index, part in enumerate(message["parts"]):
        if is_tool_part(part) and part.get("toolCallId") == call and not is_settled(part):
            parts = [*message["parts"][:index], change(part), *message["parts"][index + 1 :]]
            return {**message, "parts": parts}
    return None


def is_unseen(message: UIMessage, approved: Container[str] = ()) -> bool:
    """Whether the last step made calls that are all settled, or ``approved`` and to be run: the model has not been
    shown their results yet."""
    parts = message["parts"]
    step = max((index for index, part in enumerate(parts) if part["type"] == "step-start"), default=-1)
    calls = [part for part in parts[step + 1 :] if is_tool_part(part) and not part.get("providerExecuted")]
    return bool(calls) and all(is_settled(part) or part["toolCallId"] in approved for part in calls)


def _question(part: Part) -> dict[str, Any]:
    """What is known of the question; nothing when an old transcript says something odd."""
    question = part.get("approval")
    return cast("dict[str, Any]", question) if isinstance(question, dict) else {}


def _without_result(part: Part) -> Part:
    return {key: value for key, value in part.items() if key not in _RESULT}
