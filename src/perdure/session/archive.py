"""What of one conversation is not in memory: reads it from the store.

The only reader of messages. Knows no tree and no window.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterable, Sequence
from typing import Any

import msgspec

from perdure.protocol import codec
from perdure.protocol.messages import Role
from perdure.session.node import Node
from perdure.storage.contract import (
    FindFollowing,
    FindMessages,
    LoadAttachments,
    LoadBranch,
    LoadOffPath,
    MessagePlace,
    MessageRow,
    Store,
)

__all__ = ["Archive", "Piece"]

logger = logging.getLogger(__name__)


_AT_ONCE = 200
"""Messages that are made in one go: others are to be served while a long conversation is opened."""


class Piece(msgspec.Struct, frozen=True):
    """The end of a branch."""

    nodes: list[Node]
    """Oldest first; their parents are not set."""
    before: MessagePlace | None = None
    """The message that the first one follows; ``None`` for a root."""


class _Part(msgspec.Struct):
    """Any object."""


class _Message(msgspec.Struct):
    """What every message must have to be shown."""

    id: str
    role: Role
    parts: list[_Part]


class Archive:
    """The stored messages of one agent."""

    def __init__(self, store: Store, agent: str, settled: Callable[[], Awaitable[Any]]) -> None:
        """The archive of the agent with that key.

        Args:
            store: Where it is kept.
            agent: The agent's key.
            settled: Waits until everything that the agent has written is durable: reads see nothing else.
        """
        self._store = store
        self._agent = agent
        self._settled = settled

    async def find(self, identifiers: Sequence[str]) -> list[MessagePlace]:
        """Where these messages stand, those of them that are stored.

        Raises:
            StorageError: the store cannot be read.
        """
        await self._settled()
        return await self._store.read(FindMessages(self._agent, identifiers))

    async def following(self, positions: Sequence[int]) -> list[MessagePlace]:
        """Where the messages stand that follow one of those at these positions.

        Raises:
            StorageError: the store cannot be read.
        """
        await self._settled()
        return await self._store.read(FindFollowing(self._agent, positions))

    async def off_path(self) -> list[MessagePlace]:
        """Where the messages stand that are not on the active path.

        Raises:
            StorageError: the store cannot be read.
        """
        await self._settled()
        return await self._store.read(LoadOffPath(self._agent))

    async def branch(self, leaf: int | None, *, max_bytes: int | None = None, max_rows: int | None = None) -> Piece:
        """The end of the branch whose last message is at ``leaf``; of the active path with ``None``.

        Rows that are damaged are left out, and stay stored.

        Raises:
            StorageError: the store cannot be read.
        """
        await self._settled()
        branch = await self._store.read(LoadBranch(self._agent, leaf, max_bytes, max_rows))
        nodes: list[Node] = []
        for start in range(0, len(branch.rows), _AT_ONCE):
            if start:
                await asyncio.sleep(0)
            nodes += [_node_of(row) for row in branch.rows[start : start + _AT_ONCE] if self._is_sound(row)]
        return Piece(nodes, branch.before)

    async def attachments(self, digests: Iterable[str]) -> dict[str, bytes]:
        """The data of these attachments, by digest.

        Raises:
            StorageError: the store cannot be read.
        """
        wanted = sorted(set(digests))
        if not wanted:
            return {}
        await self._settled()
        found = await self._store.read(LoadAttachments(self._agent, wanted))
        for digest in wanted:
            if digest not in found:
                logger.warning("An attachment of %s is missing in the store: %s", self._agent, digest)
        return found

    def _is_sound(self, row: MessageRow) -> bool:
        try:
            message = codec.decode_as(_Message, row.body)
        except codec.DecodeError as error:
            logger.warning("Left out a damaged message of %s, position %d: %s", self._agent, row.pos, error)
            return False
        if message.id != row.id:
            logger.warning("Left out a damaged message of %s, position %d: its id is wrong", self._agent, row.pos)
            return False
        return True


def _node_of(row: MessageRow) -> Node:
    node = Node(row.pos, row.id, None, row.role)
    node.left_out = row.left_out
    if row.attachments:
        node.take_rest(row.body, row.attachments)
    else:
        node.take(row.body)
    return node
