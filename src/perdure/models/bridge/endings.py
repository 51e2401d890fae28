"""How an answer ends: why, what it cost, the words of a refusal, and ids for calls that need one."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Sequence

from pydantic_ai.usage import RequestUsage

from perdure.models.contract import Chunk, HistoryMessage, Usage

__all__ = ["new_call_id", "reason_of", "refusal_chunks", "taken_in", "usage_of"]

_REASONS = {"stop": "stop", "length": "length", "content_filter": "content-filter", "tool_call": "tool-calls"}


def reason_of(reason: str | None, raw: object, *, called: bool) -> str:
    """The AI SDK's name for why the model stopped.

    Args:
        reason: pydantic-ai's name for it, if it has one.
        raw: what the provider said, if it said something.
        called: whether the model called a tool.
    """
    if called and (reason is None or reason == "stop"):
        return "tool-calls"  # not every provider says so itself
    if reason is None:
        return "other" if raw else "stop"
    return _REASONS.get(reason, "error")


def usage_of(usage: RequestUsage) -> Usage:
    """The tokens of a step."""
    return Usage(
        input_tokens=usage.input_tokens,
        output_tokens=usage.output_tokens,
        cached_tokens=usage.cache_read_tokens,
        reasoning_tokens=usage.output_reasoning_tokens or usage.details.get("reasoning_tokens", 0),
    )


def refusal_chunks(text: object) -> list[Chunk]:
    """The words of a model that declined; they are not part of its text, and a person still wants to read them."""
    if not isinstance(text, str) or not text:
        return []
    return [
        {"type": "text-start", "id": "refusal"},
        {"type": "text-delta", "id": "refusal", "delta": text},
        {"type": "text-end", "id": "refusal"},
    ]


def taken_in(history: Sequence[HistoryMessage]) -> Callable[[str], bool]:
    """Whether a tool call id is in use. Looked up when a call comes, so a step without calls pays nothing."""
    return lambda call_id: any(call_id in item.calls for item in history)


def new_call_id() -> str:
    """An id for a call."""
    return f"call_{uuid.uuid4().hex}"
