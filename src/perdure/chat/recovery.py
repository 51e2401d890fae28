"""What becomes of turns that were not over when the process ended.

A pure decision from what is stored: the answer so far is kept and closed, and people are told. Imports the builder and
the repair beside it.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from perdure.chat.builder import MessageBuilder
from perdure.chat.repair import settle_open_calls
from perdure.protocol.messages import UIMessage

__all__ = ["INTERRUPTED_TURN", "rebuild"]

INTERRUPTED_TURN = "The assistant was interrupted and could not recover. Please try again."
"""The text that clients are shown (reference: protocol §13)."""


def rebuild(message_id: str, chunks: Iterable[dict[str, Any]], extended: UIMessage | None = None) -> UIMessage | None:
    """The answer as far as its stored chunks go, closed; ``None`` when there is nothing worth keeping.

    Args:
        message_id: Its id.
        chunks: Its chunks, in order.
        extended: The message that it goes on with, for a continuation.
    """
    builder = MessageBuilder(message_id) if extended is None else MessageBuilder.going_on(extended)
    for chunk in chunks:
        builder.apply(chunk)
    builder.close()
    settle_open_calls(builder.parts)
    return builder.message() if builder.has_content and builder.changed else None
