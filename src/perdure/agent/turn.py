"""One turn: everything that belongs to it and to nothing else. Data only."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from contextvars import Context, copy_context
from dataclasses import dataclass, field
from typing import Any

import anyio

from perdure.agent.services import PeerId
from perdure.agent.turn_config import TurnResult
from perdure.chat.builder import MessageBuilder
from perdure.models.contract import Chunk
from perdure.protocol import codec
from perdure.tools import ToolSet

__all__ = ["Turn"]


@dataclass(kw_only=True, slots=True)
class Turn:
    """A turn from its admission to its end."""

    id: str
    """The request id: the client's for a chat request."""
    trigger: str
    """What asked for it: ``ws-chat``, ``programmatic``, ``rpc``, ``auto-continuation``."""
    message_id: str
    """Id of the assistant message that it writes."""
    generation: int
    """The conversation's generation when it was admitted; a clear starts a new one."""
    parent: str | None = None
    """Id of the message that it answers."""
    branches: bool = False
    """Whether its answer starts a branch: another answer to a message that may have one."""
    continuation: bool = False
    """Whether it goes on with the last answer instead of making a new one."""
    group: str | None = None
    """The turn whose tool calls were answered, for one that goes on after that."""
    not_before_ms: int = 0
    """When it may start: Unix time in milliseconds."""
    attempts: int = 0
    """How often it was begun before and cut off by the end of the process."""
    own_messages: Sequence[str] = ()
    """Ids of the messages that came with it."""
    origin_ids: Sequence[str] = ()
    """Ids of the user messages that its terminal frame names."""
    senders: list[PeerId] = field(default_factory=list[PeerId])
    """The connections that asked for it: a page that reconnects may send its request once more."""
    body: Mapping[str, Any] = field(default_factory=dict[str, Any])
    """Fields that the page sent beside the messages."""
    client_tools: ToolSet = field(default_factory=lambda: ToolSet({}))
    """Tools that the page, or whoever asked for the turn, gave along."""
    unanswered: frozenset[str] = frozenset()
    """Those among them whose calls nobody can answer: they are left open, and waited for by nobody."""
    inputs: Any = None
    """Messages to add when it starts, or a function that gives them then."""
    listener: Callable[[Chunk], None] | None = None
    """Told each chunk, for whoever asked for the turn from within the server."""
    result: asyncio.Future[TurnResult] | None = None
    """How it ended, for whoever waits."""
    scope: anyio.CancelScope = field(default_factory=anyio.CancelScope)
    """Cancelling it stops the turn, also before it runs."""
    context: Context = field(default_factory=copy_context)
    """The context variables of whoever asked for it."""
    builder: MessageBuilder = field(init=False)

    def __post_init__(self) -> None:
        self.builder = MessageBuilder(self.message_id)

    def to_json(self) -> str:
        """What is needed to know, after a restart, what this turn was to do."""
        stored: dict[str, Any] = {
            "parent": self.parent,
            "own": self.own_messages,
            "origin": self.origin_ids,
            "body": self.body,
        }
        marks = {"continuation": self.continuation, "branches": self.branches}
        if self.group is not None:
            stored |= {"group": self.group, "attempts": self.attempts}
        return codec.encode_text({**stored, **{name: True for name, is_set in marks.items() if is_set}})
