"""The messages of one agent in memory, and the storage operations that keep them.

The only writer of the history. Holds the tree, with the active path ready to be sent and to be shown to a model. Does
no I/O: it gives operations, the caller writes them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from perdure.models.contract import HistoryMessage
from perdure.protocol.messages import UIMessage
from perdure.storage.contract import AppendMessage, ClearConversation, MessageRow, MoveMessage, Operation, UpdateMessage

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
        index = self._find(upto)
        branch = self._path[: index + 1] if index is not None else self._branch(upto)
        return [node.message for node in branch]

    def append(
        self, identifier: str, role: str, text: str, parent: str | None, at_ms: int, *, waiting: bool = False
    ) -> list[Operation]:
        """Add a message after ``parent``; it becomes the leaf.

        What followed ``parent`` on the path leaves it and stays in the tree, but for messages that wait for their turn:
        they follow the new one, unless that waits itself. So do those that follow one that waits.
        """
        node = self._new(identifier, role, HistoryMessage(text), parent)
        node.waiting = waiting
        return self._place(node, at_ms)

    def answer(self, message: UIMessage, parent: str | None, at_ms: int) -> list[Operation]:
        """Add the answer to ``parent``, before the messages that wait for their turn.

        When ``parent`` has left the path meanwhile (it was edited), so does its answer.
        """
        node = self._new(message["id"], message["role"], HistoryMessage.of(message), parent)
        if self._find(parent) is not None:
            return self._place(node, at_ms)
        operations = [self._stored(node, at_ms)]
        if self._path:
            operations.append(self._move(self._path[-1], self._path[-1].parent))
        return operations

    def update(self, message: UIMessage) -> list[Operation]:
        """Replace a message that the server made; its place stays."""
        node = self._nodes[message["id"]]
        node.message = HistoryMessage.of(message)
        return [UpdateMessage(node.pos, node.text)]

    def tip(self, identifier: str | None) -> str | None:
        """The last message of the path that does not wait for its turn, if ``identifier`` is on the path (``None`` is);
        else ``identifier``."""
        if self._find(identifier) is None:
            return identifier
        return next((node.id for node in reversed(self._path) if not node.waiting), None)

    def hold(self, identifiers: Iterable[str]) -> None:
        """These messages wait for their turn."""
        self._mark(identifiers, waiting=True)

    def begin(self, identifiers: Iterable[str]) -> None:
        """The turn of these messages starts, or will never: they wait no longer."""
        self._mark(identifiers, waiting=False)

    def clear(self) -> list[Operation]:
        """Forget everything."""
        self._nodes.clear()
        self._path.clear()
        return [ClearConversation()]

    def _new(self, identifier: str, role: str, message: HistoryMessage, parent: str | None) -> Node:
        node = self._nodes[identifier] = Node(self._take_pos(), identifier, parent, role, message)
        return node

    def _take_pos(self) -> int:
        self._next_pos += 1
        return self._next_pos - 1

    def _mark(self, identifiers: Iterable[str], *, waiting: bool) -> None:
        for identifier in identifiers:
            if node := self._nodes.get(identifier):
                node.waiting = waiting

    def _find(self, identifier: str | None) -> int | None:
        """Index on the path, -1 for the place before the first message, ``None`` when it is not there."""
        if identifier is None:
            return -1
        for index in range(len(self._path) - 1, -1, -1):
            if self._path[index].id == identifier:
                return index
        return None

    def _branch(self, upto: str | None) -> list[Node]:
        branch: list[Node] = []
        while upto is not None:
            node = self._nodes[upto]
            branch.append(node)
            upto = node.parent
        return branch[::-1]

    def _place(self, node: Node, at_ms: int) -> list[Operation]:
        """Put ``node`` after its parent, and what waits after ``node``."""
        index = self._find(node.parent)
        before = self._path[: index + 1] if index is not None else self._branch(node.parent)
        following = self._path[len(before) if index is not None else _shared(before, self._path) :]
        carried = [] if node.waiting else _from_first_waiting(following)
        self._path = [*before, node]
        operations = [self._stored(node, at_ms)]
        for follower in carried:
            operations += self._move_with_branches(follower, self._path[-1].id, carried)
            self._path.append(follower)
        return operations

    def _move_with_branches(self, node: Node, parent: str, carried: Sequence[Node]) -> list[Operation]:
        """Give ``node`` another place; what else follows it refers to its position and gets a new one as well."""
        operations = [self._move(node, parent)]
        moved = [node]
        while moved and len(self._nodes) > len(self._path):
            above = moved.pop()
            for child in [child for child in self._nodes.values() if child.parent == above.id]:
                if child not in carried:
                    operations.append(self._move(child, above.id))
                    moved.append(child)
        return operations

    def _stored(self, node: Node, at_ms: int) -> Operation:
        return AppendMessage(node.pos, node.id, self._pos_of(node.parent), node.role, node.text, at_ms)

    def _move(self, node: Node, parent: str | None) -> Operation:
        was, node.pos, node.parent = node.pos, self._take_pos(), parent
        return MoveMessage(was, node.pos, self._pos_of(parent))

    def _pos_of(self, identifier: str | None) -> int | None:
        return None if identifier is None else self._nodes[identifier].pos


def _shared(branch: Sequence[Node], path: Sequence[Node]) -> int:
    """How many messages two branches have in common."""
    pairs = zip(branch, path, strict=False)
    return next((index for index, (one, other) in enumerate(pairs) if one is not other), min(len(branch), len(path)))


def _from_first_waiting(following: Sequence[Node]) -> list[Node]:
    """The messages that wait. One among them that waits no longer, as its turn was cancelled, keeps its place there."""
    first = next((index for index, node in enumerate(following) if node.waiting), len(following))
    return list(following[first:])
