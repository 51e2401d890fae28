"""How large a message may be that a client adds. Pure."""

from __future__ import annotations

from collections.abc import Iterable

from perdure.chat.reconcile import NewMessage
from perdure.errors import BadRequest

__all__ = ["check_uploads"]


def check_uploads(messages: Iterable[NewMessage], limit: float) -> None:
    """Check messages that are about to be stored.

    Clients post all that they are shown in one frame, so what counts is what a message takes there: its JSON text as a
    JSON string.

    Args:
        messages: The messages.
        limit: Most bytes of one.

    Raises:
        BadRequest: one is larger.
    """
    for message in messages:
        size = _size_as_string(message.text, limit)
        if size > limit:
            raise BadRequest(
                f"The message {message.id!r:.60} is too large: it takes {size:,} bytes, and at most {limit:,} are "
                "taken in one message (Limits.upload)."
            )


def _size_as_string(text: str, limit: float) -> int:
    """Bytes of ``text`` as a JSON string; some number up to ``limit`` when it is clear that they are no more."""
    if 4 * len(text) <= limit:
        return len(text)
    return len(text if text.isascii() else text.encode()) + text.count('"') + text.count("\\")
