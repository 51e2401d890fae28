"""The messages of one agent in memory, and the storage operations that keep them.

The only writer of the history. Holds the recent end of the active path, and whatever else of the tree somebody needs
just now. Does no I/O: it gives operations, the caller writes them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from perdure.chat.clean import clean_answer
from perdure.observability import emit
from perdure.protocol import codec
from perdure.protocol.messages import UIMessage
from perdure.session.attachments import cut_out, split
from perdure.session.node import Node
from perdure.session.path import Path
from perdure.storage.contract import (
    AppendMessage,
    AttachmentRef,
    ClearConversation,
    LeaveOutMessage,
    MoveMessage,
    Operation,
    PutAttachment,
    UpdateMessage,
)

__all__ = ["MEMORY", "WINDOW", "Tree"]

MIB = 1024 * 1024

WINDOW = 4 * MIB
"""Most bytes of a conversation that clients are sent, unless told otherwise."""
MEMORY = 32 * MIB
"""Most bytes of a conversation that are held and that a model is shown, unless told otherwise."""

_OTHERS = 1_000
"""Most messages beside a path whose places are kept in memory."""

_KEPT = 0.75
"""What is left of the memory budget when it was outgrown: the beginning of prompts moves seldom then."""


class Tree:
    """The conversation tree: its active path, from a root to the leaf.

    Messages that wait for their turn stand at the end of the path: an answer that is finished meanwhile goes before
    them, so every prompt ends with the messages that it is to answer.

    While a turn is open, nothing that is in memory leaves it. When none is, :meth:`shrink` keeps the end of the path.
    """

    def __init__(self, *, window: int = WINDOW, memory: float = MEMORY, stored: int = 0, next_pos: int = 0) -> None:
        """An empty tree.

        Args:
            window: Most bytes that clients are sent, but for the newest message and the question that it answers, which
                they are sent in any case.
            memory: Most bytes that are held when no turn is open; infinite for no limit. The newest message is held in
                any case.
            stored: How many messages are stored.
            next_pos: Position of the next message.
        """
        self._memory = memory
        self._stored = stored
        self._next_pos = next_pos
        self._nodes: dict[str, Node] = {}
        self._path = Path(window)
        self._absent: set[str] = set()
        """Ids that were looked for in the store and are not there."""
        self._reached: set[str] = set()
        """Messages whose branch was brought into memory as far as it fits."""
        self._left: set[str] = set()
        """Messages that left the path while a turn was open."""
        self._cluttered = False
        """Whether there may be texts in memory beside the path."""
        self._unchecked: list[Node] = []
        """Messages that may be in need of repair."""
        self._leaves_out = False
        """Whether there may be messages in memory that models are not shown."""
        self._generation = 0
        """Counts how often everything was forgotten."""
        self._told_windowed = False

    # ── looking ─────────────────────────────────────────────────────

    @property
    def known(self) -> Mapping[str, Node]:
        """The messages in memory by id, on the path or off it. Of some only the place is known."""
        return self._nodes

    @property
    def leaf(self) -> str | None:
        """Id of the last message of the path."""
        return None if (leaf := self._path.leaf) is None else leaf.id

    def is_on_path(self, identifier: str) -> bool:
        """Whether a message is on the part of the path that is in memory."""
        return self._path.find(identifier) is not None

    @property
    def is_windowed(self) -> bool:
        """Whether older messages of the path are in the store only."""
        return self._path.is_windowed

    def texts(self) -> list[str]:
        """What clients are sent: the newest messages of the path that fit the window, as JSON texts, oldest first."""
        return self._path.texts()

    def messages(self) -> list[UIMessage]:
        """The same, decoded. Shared: do not change the messages."""
        return self._path.messages()

    def tip(self, identifier: str | None) -> str | None:
        """The last message of the path that does not wait for its turn, if ``identifier`` is on the path (``None`` is);
        else ``identifier``."""
        if self._path.find(identifier) is None:
            return identifier
        return next((node.id for node in reversed(self._path.nodes) if not node.waiting), None)

    # ── writing ─────────────────────────────────────────────────────

    def append(
        self, identifier: str, role: str, text: str, parent: str | None, at_ms: int, *, waiting: bool = False
    ) -> list[Operation]:
        """Add a message after ``parent``; it becomes the leaf.

        What followed ``parent`` on the path leaves it and stays in the tree, but for messages that wait for their turn:
        they follow the new one, unless that waits itself. So do those that follow one that waits.
        """
        node, attached = self._new(identifier, role, text, parent)
        node.waiting = waiting
        return [*attached, *self._place(node, at_ms)]

    def answer(self, message: UIMessage, parent: str | None, at_ms: int) -> list[Operation]:
        """Add the answer to ``parent``, before the messages that wait for their turn.

        When ``parent`` has left the path meanwhile (it was edited), its answer is not shown either.
        """
        text = codec.encode_text(clean_answer(message))
        node, attached = self._new(message["id"], message["role"], text, parent)
        if self._path.find(parent) is not None or parent not in self._left:
            return [*attached, *self._place(node, at_ms)]
        self._left.add(node.id)
        self._cluttered = True
        operations = [*attached, self._appended(node, at_ms)]
        if leaf := self._path.leaf:
            operations.append(self._move(leaf, leaf.parent))
        return operations

    def update(self, message: UIMessage) -> list[Operation]:
        """Replace a message; its place stays."""
        node = self._nodes[message["id"]]
        before = node.size
        attached = self._take(node, codec.encode_text(clean_answer(message)))
        index = self._path.find(node.id)
        if index is not None:
            self._path.refresh(index, before)
        else:
            self._cluttered = True
        return [*attached, UpdateMessage(node.pos, *_kept_form(node))]

    def aim_at(self, identifier: str | None) -> None:
        """A turn is to give another answer to this message, which need not be on the path: it will be shown."""
        if identifier is not None:
            self._left.discard(identifier)

    def hold(self, identifiers: Iterable[str]) -> None:
        """These messages wait for their turn."""
        self._mark(identifiers, waiting=True)

    def begin(self, identifiers: Iterable[str]) -> None:
        """The turn of these messages starts, or will never: they wait no longer."""
        self._mark(identifiers, waiting=False)

    def give_up(self, identifiers: Sequence[str]) -> list[str]:
        """The turns of these messages were stopped while they waited. A message waits on as long as others wait before
        it: their answers come before it. Gives those that do."""
        if not identifiers:
            return []
        stopped, left, others_wait = set(identifiers), list[str](), False
        for node in self._path.nodes:
            if node.waiting and node.id not in stopped:
                others_wait = True
            elif node.waiting and others_wait:
                left.append(node.id)
        self.begin(stopped.difference(left))
        return left

    def leave_out(self, identifiers: Iterable[str]) -> list[Operation]:
        """These messages will not be answered: they are shown to people, and to no model."""
        self._leaves_out = True
        return self._set_left_out(identifiers, True)

    def take_in(self, identifier: str | None) -> list[Operation]:
        """This message is answered after all."""
        return self._set_left_out([] if identifier is None else [identifier], False)

    def clear(self) -> list[Operation]:
        """Forget everything."""
        self._generation += 1
        self._stored = 0
        self._nodes.clear()
        self._path.replace(())
        self._unchecked.clear()
        self._leaves_out = False
        self._forget_reading()
        self._tell_window()
        return [ClearConversation()]

    def shrink(self) -> None:
        """No turn is open: let go of what is off the path, and of the oldest messages when there is too much."""
        self._forget_reading()
        path = self._path
        if path.bytes > self._memory:
            self._drop_oldest()
        if self._cluttered:
            self._let_go_of_others()
        path.release()
        self._tell_window()

    def _let_go_of_others(self) -> None:
        """Hold no text but those of the path. Places of others are worth remembering: ids of new messages are looked up
        in the store as long as there are messages that nobody knows of."""
        path = {node.id: node for node in self._path.nodes}
        others = [node for node in self._nodes.values() if node.id not in path]
        if not self._remembers_others(len(others)):
            before = self._path.nodes[0].parent if path else None
            others = [node for node in others if node.id == before]
        self._nodes = {**path, **{node.id: _place_of(node) for node in others}}
        self._unchecked = [node for node in self._unchecked if self._nodes.get(node.id) is node]
        self._cluttered = False

    def _remembers_others(self, count: int) -> bool:
        """Whether the places of that many messages beside the path are kept in memory."""
        return count <= _OTHERS and not self.is_windowed

    def _tell_window(self) -> None:
        """Report when the conversation has become too large to be held as a whole, or small enough."""
        if self.is_windowed != self._told_windowed:
            self._told_windowed = self.is_windowed
            emit(
                "chat:hydration:windowed",
                windowed=self.is_windowed,
                messages=len(self._path.nodes),
                bytes=self._path.bytes,
                storedMessages=self._stored,
            )

    def _drop_oldest(self) -> None:
        nodes = self._path.nodes
        count, left = 0, self._path.bytes
        while count < len(nodes) - 1 and left > self._memory * _KEPT:
            left -= nodes[count].size
            count += 1
        # Of the last one its place is kept: the first message of the path follows it.
        for node in self._path.drop(count):
            self._nodes.pop(node.parent or "", None)
            self._nodes[node.id] = _place_of(node)

    def _forget_reading(self) -> None:
        self._absent.clear()
        self._reached.clear()
        self._left.clear()

    # ── the tree ────────────────────────────────────────────────────

    def _new(self, identifier: str, role: str, text: str, parent: str | None) -> tuple[Node, list[Operation]]:
        node = self._nodes[identifier] = Node(self._take_pos(), identifier, parent, role)
        self._stored += 1
        return node, self._take(node, text)

    def _take(self, node: Node, text: str) -> list[Operation]:
        """Give a message its text. The operations keep its attachments."""
        found = split(text)
        node.take(text, () if found is None else found.references)
        self._unchecked.append(node)
        return [] if found is None else [PutAttachment(digest, data) for digest, data in found.data.items()]

    def _take_pos(self) -> int:
        self._next_pos += 1
        return self._next_pos - 1

    def _mark(self, identifiers: Iterable[str], *, waiting: bool) -> None:
        for identifier in identifiers:
            if node := self._nodes.get(identifier):
                node.waiting = waiting

    def _set_left_out(self, identifiers: Iterable[str], left_out: bool) -> list[Operation]:
        found = [node for each in identifiers if (node := self._nodes.get(each)) is not None]
        changed = [node for node in found if node.left_out != left_out]
        for node in changed:
            node.left_out = left_out
        return [LeaveOutMessage(node.pos, left_out) for node in changed]

    def _branch(self, upto: str | None) -> list[Node]:
        """The branch that ends with a message, as far as its texts are in memory."""
        branch: list[Node] = []
        while upto is not None and (node := self._nodes.get(upto)) is not None and node.loaded:
            branch.append(node)
            upto = node.parent
        return branch[::-1]

    def _place(self, node: Node, at_ms: int) -> list[Operation]:
        """Put ``node`` after its parent, and what waits after ``node``."""
        path = self._path
        index = path.find(node.parent)
        following = path.nodes[index + 1 :] if index is not None else self._take_branch(node.parent)
        if index is not None:
            path.truncate(index + 1)
        carried = [] if node.waiting else _from_first_waiting(following)
        path.append(node)
        operations = [self._appended(node, at_ms)]
        for follower in carried:
            operations += self._move_with_branches(follower, path.nodes[-1].id, carried)
            path.append(follower)
        if len(following) > len(carried):
            self._cluttered = True
            # What is older than the part of the path that is held may well be on it.
            kept, oldest = {each.id for each in path.nodes}, path.nodes[0].pos if path.is_windowed else -1
            self._left = {each.id for each in self._nodes.values() if each.pos > oldest and each.id not in kept}
        return operations

    def _take_branch(self, upto: str | None) -> list[Node]:
        """Make the branch that ends with a message the path. Gives what is not on the path any more."""
        branch = self._branch(upto)
        kept = {node.id for node in branch}
        following = [node for node in self._path.nodes if node.id not in kept]
        self._path.replace(branch)
        return following

    def _move_with_branches(self, node: Node, parent: str, carried: Sequence[Node]) -> list[Operation]:
        """Give ``node`` another place; what else follows it refers to its position and gets a new one as well."""
        operations = [self._move(node, parent)]
        moved = [node]
        while moved and len(self._nodes) > len(self._path.nodes):
            above = moved.pop()
            for child in [child for child in self._nodes.values() if child.parent == above.id]:
                if child not in carried:
                    operations.append(self._move(child, above.id))
                    moved.append(child)
        return operations

    def _appended(self, node: Node, at_ms: int) -> Operation:
        body, attachments = _kept_form(node)
        return AppendMessage(node.pos, node.id, self._pos_of(node.parent), node.role, body, at_ms, attachments)

    def _move(self, node: Node, parent: str | None) -> Operation:
        was, node.pos, node.parent = node.pos, self._take_pos(), parent
        return MoveMessage(was, node.pos, self._pos_of(parent))

    def _pos_of(self, identifier: str | None) -> int | None:
        return None if identifier is None else self._nodes[identifier].pos


def _from_first_waiting(following: Sequence[Node]) -> list[Node]:
    """The messages that wait. One among them that waits no longer, as its turn was cancelled, keeps its place there."""
    first = next((index for index, node in enumerate(following) if node.waiting), len(following))
    return list(following[first:])


def _kept_form(node: Node) -> tuple[str, tuple[AttachmentRef, ...]]:
    """The text as the store keeps it."""
    assert node.text is not None
    if not node.references:
        return node.text, ()
    return cut_out(node.text, node.references), node.references


def _place_of(node: Node) -> Node:
    """The same message without its text and without what it follows."""
    return Node(node.pos, node.id, None, node.role)
