"""The messages of one agent in memory, and the storage operations that keep them.

The only writer of the history. Holds the tree, with the active path ready to be sent and to be shown to a model. Does no
I/O: it gives operations, the caller writes them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from perdure.models.contract import HistoryMessage
from perdure.protocol.messages import UIMessage
from perdure.storage.contract import AppendMessage, ClearConversation, MessageRow, Operation, RemoveMessage

__all__ = ["Node", "Transcript"]


class Node:
    """A message in the tree."""

    __slots__ = ("id", "message", "parent", "pos", "role", "waiting")

    def __init__(self, pos: int, identifier: str, parent: str | None, role: str, message: HistoryMessage) -> None:
        self.pos = pos
        """Where it is stored; the greatest position is the leaf of the active path."""
        self.id = identifier
        self.parent = parent
        """Id of the message that it follows."""
        self.role = role
        self.message = message
        self.waiting = False
        """Whether it was accepted while another turn ran and its own has not started."""

    @property
    def text(self) -> str:
        """The message as JSON text."""
        return self.message.text


class Transcript:
    """The conversation tree: its active path, from a root to the leaf.

    Messages that wait for their turn stand at the end of the path: an answer that is finished meanwhile goes before
    them, so every prompt ends with the messages that it is to answer.
    """

    def __init__(
        self, path: Sequence[MessageRow] = (), elsewhere: Iterable[MessageRow] = (), next_pos: int = 0
    ) -> None:
        """Take over what is stored.

        Args:
            path: The active path, oldest first.
            elsewhere: The messages off the path.
            next_pos: Position of the next message.
        """
        self._next_pos = next_pos
        self._nodes: dict[str, Node] = {}
        rows = [*elsewhere, *path]
        ids = {row.pos: row.id for row in rows}
        for row in rows:
            parent = None if row.parent is None else ids[row.parent]
            self._nodes[row.id] = Node(row.pos, row.id, parent, row.role, HistoryMessage(row.body))
        self._path: list[Node] = [self._nodes[row.id] for row in path]

    @property
    def known(self) -> Mapping[str, Node]:
        """Every message by id, on the path or off it."""
        return self._nodes

    @property
    def leaf(self) -> str | None:
        """Id of the last message of the path."""
        return self._path[-1].id if self._path else None

    def texts(self) -> list[str]:
        """The path as JSON texts, oldest first."""
        return [node.message.text for node in self._path]

    def messages(self) -> list[UIMessage]:
        """The path, decoded. Shared: do not change the messages."""
        return [node.message.message for node in self._path]

    def history(self, upto: str | None) -> list[HistoryMessage]:
        """The branch that ends with message ``upto``, oldest first, as a model is shown it (``None``: nothing)."""
        if self._path and self._path[-1].id == upto:
            return [node.message for node in self._path]
        branch: list[HistoryMessage] = []
        while upto is not None:
            node = self._nodes[upto]
            branch.append(node.message)
            upto = node.parent
        return branch[::-1]

    def append(
        self, identifier: str, role: str, text: str, parent: str | None, at_ms: int, *, waiting: bool = False
    ) -> list[Operation]:
        """Add a message after ``parent``; it becomes the leaf.

        What followed ``parent`` on the path leaves it and stays in the tree, but for messages that wait for their turn.
        """
        node = Node(self._take_pos(), identifier, parent, role, HistoryMessage(text))
        node.waiting = waiting
        return self._place(node, at_ms)

    def answer(self, message: UIMessage, parent: str | None, at_ms: int) -> list[Operation]:
        """Add the answer to ``parent``, before the messages that wait for their turn."""
        node = Node(self._take_pos(), message["id"], parent, message["role"], HistoryMessage.of(message))
        return self._place(node, at_ms)

    def begin(self, identifiers: Iterable[str]) -> None:
        """The turn of these messages starts: they wait no longer."""
        for identifier in identifiers:
            if node := self._nodes.get(identifier):
                node.waiting = False

    def clear(self) -> list[Operation]:
        """Forget everything."""
        self._nodes.clear()
        self._path.clear()
        return [ClearConversation()]

    def _take_pos(self) -> int:
        self._next_pos += 1
        return self._next_pos - 1

    def _place(self, node: Node, at_ms: int) -> list[Operation]:
        """Put ``node`` after its parent, then what waits after ``node``."""
        followers: list[Node] = []
        while self._path and self._path[-1].id != node.parent:
            followers.append(self._path.pop())
        waiting = [] if node.waiting else [follower for follower in reversed(followers) if follower.waiting]
        operations = [self._store(node, at_ms)]
        operations += [RemoveMessage(follower.pos) for follower in reversed(waiting)]
        previous = node
        for follower in waiting:
            follower.pos, follower.parent = self._take_pos(), previous.id
            operations.append(self._store(follower, at_ms))
            previous = follower
        return operations

    def _store(self, node: Node, at_ms: int) -> Operation:
        self._nodes[node.id] = node
        self._path.append(node)
        parent = None if node.parent is None else self._nodes[node.parent].pos
        return AppendMessage(node.pos, node.id, parent, node.role, node.text, at_ms)
