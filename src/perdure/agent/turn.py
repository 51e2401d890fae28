"""One turn: everything that belongs to it and to nothing else. Data only."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import anyio

from perdure.chat.builder import MessageBuilder
from perdure.protocol import codec

__all__ = ["Turn"]


@dataclass(kw_only=True, slots=True)
class Turn:
    """A turn from its admission to its end."""

    id: str
    """The request id: the client's for a chat request."""
    trigger: str
    """What asked for it: ``ws-chat``, …"""
    message_id: str
    """Id of the assistant message that it writes."""
    parent: str | None
    """Id of the message that it answers."""
    own_messages: Sequence[str]
    """Ids of the messages that came with it."""
    origin_ids: Sequence[str]
    """Ids of the user messages that its terminal frame names."""
    generation: int
    """The conversation's generation when it was admitted; a clear starts a new one."""
    body: Mapping[str, Any] = field(default_factory=dict[str, Any])
    """Fields that the page sent beside the messages."""
    scope: anyio.CancelScope = field(default_factory=anyio.CancelScope)
    """Cancelling it stops the turn, also before it runs."""
    builder: MessageBuilder = field(init=False)

    def __post_init__(self) -> None:
        self.builder = MessageBuilder(self.message_id)

    def to_json(self) -> str:
        """What is needed to know, after a restart, what this turn was to do."""
        return codec.encode_text(
            {"parent": self.parent, "own": self.own_messages, "origin": self.origin_ids, "body": self.body}
        )
