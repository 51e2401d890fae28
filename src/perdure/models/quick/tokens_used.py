"""The tokens of a step, from what an OpenAI-compatible server says of them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

from pydantic_ai.usage import RequestUsage

from perdure.models.bridge.endings import usage_of
from perdure.models.contract import Usage

__all__ = ["tokens_used"]


def tokens_used(
    said: Sequence[dict[str, Any]], *, cumulative: bool, model: str, provider: str, provider_url: str
) -> Usage:
    """The sum of what was said; the last of it, where each says all so far.

    Args:
        said: the ``usage`` objects of an answer.
        cumulative: whether each counts from the beginning.
        model: the model's name.
        provider: its provider, which may have fields of its own.
        provider_url: where it is.
    """
    total = RequestUsage()
    for one in said[-1:] if cumulative else said:
        usage = _without_null(one)
        details = usage.get("completion_tokens_details")
        total += RequestUsage.extract(
            {"model": model, "usage": usage},
            provider=provider,
            provider_url=provider_url,
            provider_fallback="openai",
            api_flavor="chat",
            details=cast("dict[str, Any]", details) if isinstance(details, dict) else {},
        )
    return usage_of(total)


def _without_null(value: dict[str, Any]) -> dict[str, Any]:
    return {
        key: _without_null(cast("dict[str, Any]", item)) if isinstance(item, dict) else item
        for key, item in value.items()
        if item is not None
    }
