"""What becomes of turns that were not over when the process ended.

A pure decision from what is stored: the answer so far is kept and closed, and people are told.
"""

from __future__ import annotations

from collections.abc import Container, Iterable
from functools import partial
from typing import Any

from perdure.chat.answers import decided
from perdure.chat.builder import MessageBuilder
from perdure.chat.interactions import Interaction
from perdure.chat.repair import settle_open_calls
from perdure.protocol.messages import UIMessage

__all__ = ["INTERRUPTED_TURN", "rebuild"]

INTERRUPTED_TURN = "The assistant was interrupted and could not recover. Please try again."
"""The text that clients are shown (reference: protocol §13)."""


def rebuild(
    message_id: str,
    chunks: Iterable[dict[str, Any]],
    extended: UIMessage | None = None,
    interactions: Iterable[Interaction] = (),
    *,
    left: Container[str] = (),
) -> UIMessage | None:
    """The answer as far as its stored chunks go, closed; ``None`` when there is nothing worth keeping.

    Args:
        message_id: Its id.
        chunks: Its chunks, in order.
        extended: The message that it goes on with, for a continuation.
        interactions: Its calls on which somebody may have decided meanwhile: that is in no chunk.
        left: Calls that stay open, as somebody is asked, or as they are still to run.
    """
    builder = MessageBuilder(message_id) if extended is None else MessageBuilder.going_on(extended)
    decisions = {each.call: each for each in interactions if each.decision in {"approved", "denied"}}
    for chunk in chunks:
        builder.apply(chunk)
        if chunk.get("type") == "tool-approval-request" and (made := decisions.get(str(chunk.get("toolCallId")))):
            # Here, as the result may follow: a settled part takes no decision.
            builder.change(made.call, partial(decided, interaction=made))
    builder.close()
    settled = settle_open_calls(builder.parts, left=left)
    return builder.message() if builder.has_content and (builder.changed or settled) else None
