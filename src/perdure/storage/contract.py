"""The contract of a store: named writes and named reads, keyed by the agent.

No connection and no SQL is seen above ``storage/``. A write is a list of operations that become durable together or not
at all; one agent's writes become durable in the order in which they were made. Imports nothing of perdure.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Generic, Protocol, TypeVar

import msgspec

__all__ = [
    "CLOSED_TURNS_KEPT",
    "AgentRecord",
    "AppendChunks",
    "AppendMessage",
    "AttachmentRef",
    "Branch",
    "ChunkSegment",
    "ClearConversation",
    "CloseTurn",
    "Commit",
    "DeleteValue",
    "DropChunks",
    "FindFollowing",
    "FindMessages",
    "LeaveOutMessage",
    "LoadAgent",
    "LoadAttachments",
    "LoadBranch",
    "LoadChunks",
    "LoadOffPath",
    "LoadPath",
    "LoadValue",
    "MessagePlace",
    "MessageRow",
    "MoveMessage",
    "OpenAgents",
    "OpenTurn",
    "Operation",
    "PutAttachment",
    "PutValue",
    "Query",
    "Store",
    "TurnRow",
    "UpdateMessage",
    "UpdateTurn",
]

R = TypeVar("R")

Commit = asyncio.Future[None]
"""Done when the write is durable; failed with a :class:`~perdure.errors.StorageError` when none of it was stored.

A write that fails takes along the writes of the same agent that were handed over before the failure was known: what is
stored of an agent never has a gap. Writes handed over afterwards are on their own again. A stale epoch takes nothing
along. Cancelling a commit does not take the write back.
"""


# ── operations ──────────────────────────────────────────────────────


class Operation(msgspec.Struct, frozen=True):
    """One change of one agent's data."""


class AttachmentRef(msgspec.Struct, frozen=True, array_like=True):
    """A place in a message's text where base64 text was taken out: its data is kept beside the row."""

    offset: int
    """Where it belongs, in characters of the text as it is kept."""
    digest: str
    """SHA-256 of the data, in hexadecimal."""
    size: int
    """Characters that were taken out."""


class PutAttachment(Operation, frozen=True):
    """Data that messages of the agent refer to. Kept once for each digest, until no message refers to it any more.

    Comes before the message that refers to it, in the same write.
    """

    digest: str
    data: bytes


class AppendMessage(Operation, frozen=True):
    """A new message of the conversation tree. It becomes the leaf of the active path.

    Fails when the id or the position is taken, and when there is no message at ``parent``.
    """

    pos: int
    """Position, greater than every earlier one of this agent; the greatest is the leaf."""
    id: str
    """Unique within the agent."""
    parent: int | None
    """Position of the message that it follows; lower than ``pos``. ``None`` for a root."""
    role: str
    body: str
    """The message as JSON text, kept byte for byte."""
    at_ms: int
    """Unix time in milliseconds."""
    attachments: tuple[AttachmentRef, ...] = ()
    """What was taken out of the body, in order."""


class UpdateMessage(Operation, frozen=True):
    """New text for a message; its place in the tree stays. Fails when there is no message at ``pos``."""

    pos: int
    body: str
    attachments: tuple[AttachmentRef, ...] = ()
    """What was taken out of the body, in order."""


class MoveMessage(Operation, frozen=True):
    """Give a message another place in the tree. Its text and its time stay."""

    pos: int
    """Where it is."""
    to: int
    """Its new position, greater than every earlier one of this agent."""
    parent: int | None
    """Position of the message that it follows now."""


class LeaveOutMessage(Operation, frozen=True):
    """Models are not to be shown a message any more, or are again. Fails when there is no message at ``pos``."""

    pos: int
    left_out: bool = True


class OpenTurn(Operation, frozen=True):
    """A turn that was accepted. Fails when the agent has a turn of that id."""

    id: str
    status: str
    """``queued`` or ``running``."""
    trigger: str
    """What asked for it: ``ws-chat``, ``programmatic``, …"""
    request: str
    """JSON text: what is needed to run it (or run it again)."""
    message_id: str
    """Id of the assistant message that it writes."""
    at_ms: int


class UpdateTurn(Operation, frozen=True):
    """A turn that goes on: ``queued`` → ``running`` → ``awaiting-input`` …; or ``superseded``, which will never run.
    Fails when no open turn has that id."""

    id: str
    status: str


class CloseTurn(Operation, frozen=True):
    """A turn that is over: ``completed``, ``aborted``, ``error``, ``skipped`` or ``interrupted``.

    A turn closes once: fails when no open turn has that id. Its chunk log stays until :class:`DropChunks`.
    """

    id: str
    status: str
    error: str | None
    """The text shown to clients, for ``error`` and ``interrupted``."""
    at_ms: int


class AppendChunks(Operation, frozen=True):
    """A segment of a turn's chunk log. Fails when there is no such turn, or a segment of that index."""

    turn: str
    index: int
    """``seq`` of the first chunk in the segment."""
    bodies: str
    """JSON text: a list of chunk bodies (each itself JSON text)."""


class DropChunks(Operation, frozen=True):
    """Forget a turn's chunk log, if there is one."""

    turn: str


class ClearConversation(Operation, frozen=True):
    """Forget all messages with their attachments, turns (the open ones too) with their chunks, and interactions. Values
    stay. Positions begin at 0 again."""


class PutValue(Operation, frozen=True):
    """A named JSON value: state, configuration, … It replaces an earlier one."""

    namespace: str
    key: str
    body: str


class DeleteValue(Operation, frozen=True):
    """Forget a named value, if there is one."""

    namespace: str
    key: str


# ── queries ─────────────────────────────────────────────────────────


class Query(msgspec.Struct, Generic[R], frozen=True):
    """A named read. ``R`` is what it gives."""


class TurnRow(msgspec.Struct, frozen=True):
    """One turn as stored."""

    id: str
    status: str
    trigger: str
    request: str
    message_id: str
    error: str | None
    opened_ms: int
    closed_ms: int | None


class AgentRecord(msgspec.Struct, frozen=True):
    """What is needed to wake an agent, beside its messages."""

    next_pos: int
    """Position of the next message: one after the greatest; 0 when there is none, so also after
    :class:`ClearConversation`."""
    messages: int
    """How many messages there are, on the active path or off it."""
    open_turns: list[TurnRow]
    """Turns that are not closed, in the order in which they were accepted."""
    last_turn: TurnRow | None
    """The turn that closed last, in the order of the writes; ``None`` when none has."""
    closed_turns: list[str]
    """Ids of the closed turns that are kept, the one that closed last at the end."""
    withdrawn: list[TurnRow] = []
    """Closed turns that were accepted after one which is not closed: they were stopped while they waited. In the order
    in which they were accepted."""


CLOSED_TURNS_KEPT = 256
"""A store keeps at least this many closed turns of an agent: a request that comes again is known by its id."""


class LoadAgent(Query[AgentRecord], frozen=True):
    """What is needed to wake an agent. Empty for an agent that was never written, which stays unknown to the store."""

    agent: str


class OpenAgents(Query[list[str]], frozen=True):
    """Keys of the agents that have turns which are not closed; the one whose turn was accepted first comes first."""


class MessageRow(msgspec.Struct, frozen=True):
    """One message as stored."""

    pos: int
    id: str
    parent: int | None
    role: str
    body: str
    attachments: tuple[AttachmentRef, ...] = ()
    left_out: bool = False
    """Whether models are not shown it."""


class MessagePlace(msgspec.Struct, frozen=True):
    """Where a message stands, without its text."""

    pos: int
    id: str
    parent: int | None
    role: str


class FindMessages(Query[list[MessagePlace]], frozen=True):
    """Which of these messages are stored, on the active path or off it. In no order."""

    agent: str
    ids: Sequence[str]


class FindFollowing(Query[list[MessagePlace]], frozen=True):
    """The messages that follow one of those at these positions: each begins a branch. Lowest position first."""

    agent: str
    parents: Sequence[int]


class Branch(msgspec.Struct, frozen=True):
    """The end of a branch."""

    rows: list[MessageRow]
    """Oldest first."""
    before: MessagePlace | None
    """The message that the first of the rows follows; ``None`` when that is a root, or when there are no rows."""


class LoadBranch(Query[Branch], frozen=True):
    """The end of the branch whose last message is at ``leaf``, as far as it fits.

    Always at least that message, if it is stored.
    """

    agent: str
    leaf: int | None = None
    """Position of the last message; ``None`` for the leaf of the active path."""
    max_bytes: int | None = None
    """Most bytes of text, what was taken out of it included; ``None`` for no limit."""
    max_rows: int | None = None
    """Most messages; ``None`` for no limit."""


class LoadAttachments(Query[dict[str, bytes]], frozen=True):
    """The data of these attachments, by digest; those that are not stored are missing."""

    agent: str
    digests: Sequence[str]


class LoadPath(Query[list[MessageRow]], frozen=True):
    """The active path, oldest first: from a root to the leaf (the message with the greatest position)."""

    agent: str


class LoadOffPath(Query[list[MessagePlace]], frozen=True):
    """Where the messages stand that are not on the active path. Lowest position first."""

    agent: str


class ChunkSegment(msgspec.Struct, frozen=True):
    """A segment of a chunk log, as written by :class:`AppendChunks`."""

    index: int
    bodies: str


class LoadChunks(Query[list[ChunkSegment]], frozen=True):
    """A turn's chunk log, in order."""

    agent: str
    turn: str


class LoadValue(Query[str | None], frozen=True):
    """A named value; ``None`` when there is none."""

    agent: str
    namespace: str
    key: str


class Store(Protocol):
    """Where agents are kept."""

    @property
    def epoch(self) -> int:
        """Counts the openings of this store: a greater one fences every smaller one."""
        ...

    def write(self, agent: str, epoch: int, operations: Sequence[Operation]) -> Commit:
        """Hand over a write. Returns at once; never blocks the event loop.

        Args:
            agent: The agent's key: its canonical path.
            epoch: The epoch under which the caller owns the agent; a stale one fails the write with ``Fenced``.
            operations: What changes, applied in order, all or nothing. None at all is a barrier: its commit is done
                when every earlier one is.
        """
        ...

    async def read(self, query: Query[R]) -> R:
        """Answer a query from what is durable.

        Raises:
            StorageError: the store cannot be read.
        """
        ...

    async def close(self) -> None:
        """Finish the writes that were handed over, then let go of the files."""
        ...
