"""The part of the active path that is in memory: what clients are sent of it, and what a model is shown of it.

Both are kept ready as lists, so that a turn costs slices and a join however long the conversation is. No I/O.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from perdure.chat.shorten import may_be_cut, settled_count, shorten
from perdure.models.contract import HistoryMessage
from perdure.protocol.messages import UIMessage
from perdure.session.node import Node

__all__ = ["Path", "as_old", "must_send"]


class Path:
    """Messages, each following the one before; the last is the leaf."""

    def __init__(self, window: int) -> None:
        """An empty path.

        Args:
            window: Most bytes that clients are sent (see :func:`must_send`).
        """
        self._window = window
        self.nodes: list[Node] = []
        self.bytes = 0
        """Size of all texts."""
        self._texts: list[str] = []
        """The texts, empty for a message whose attachments are not held."""
        self._messages: list[HistoryMessage | None] = []
        """The messages, ``None`` for the same."""
        self._cut: list[HistoryMessage | None] = []
        """The first of these as they are shown when they are old."""
        self._bare = 0
        """How many messages lack their attachments."""
        self._start = 0
        """Index of the first message that clients are sent. All from there on are whole."""
        self._sent = 0
        """Bytes that clients are sent."""
        self._passed: list[Node] = []
        """Messages with attachments that clients are not sent any more."""

    # ── looking ─────────────────────────────────────────────────────

    @property
    def leaf(self) -> Node | None:
        """The last message."""
        return self.nodes[-1] if self.nodes else None

    @property
    def is_windowed(self) -> bool:
        """Whether there are older messages that are not in memory."""
        return bool(self.nodes) and self.nodes[0].parent is not None

    @property
    def bare(self) -> int:
        """How many messages lack their attachments."""
        return self._bare

    def find(self, identifier: str | None) -> int | None:
        """Index of a message, -1 for the place before the first, ``None`` when it is not here."""
        if identifier is None:
            return -1
        for index in range(len(self.nodes) - 1, -1, -1):
            if self.nodes[index].id == identifier:
                return index
        return None

    def texts(self) -> list[str]:
        """What clients are sent: JSON texts, oldest first."""
        return self._texts[self._start :]

    def messages(self) -> list[UIMessage]:
        """The same, decoded. Shared: do not change them."""
        return [entry.message for entry in self._messages[self._start :] if entry is not None]

    def history(self, length: int, step: float) -> list[HistoryMessage | None]:
        """The first ``length`` messages as a model is shown them; ``None`` for those that lack their attachments."""
        old = settled_count(length, step)
        for index in range(len(self._cut), old):
            entry = self._messages[index]
            self._cut.append(None if entry is None else as_old(entry))
        return self._cut[:old] + self._messages[old:length]

    # ── changing ────────────────────────────────────────────────────

    def append(self, node: Node) -> None:
        """Add a message at the end. It is whole."""
        self._enter(node)
        self._sent += node.size
        self._slide()

    def replace(self, nodes: Iterable[Node]) -> None:
        """Take another path."""
        self.truncate(0)
        for node in nodes:
            self._enter(node)
        self._start = len(self.nodes)
        self._slide()
        self._passed += [node for node in self.nodes[: self._start] if node.references]

    def truncate(self, length: int) -> list[Node]:
        """Take out all but the first ``length`` messages, and give them."""
        removed = self.nodes[length:]
        for index, node in enumerate(removed, start=length):
            self.bytes -= node.size
            self._bare -= node.message is None
            if index >= self._start:
                self._sent -= node.size
        for entries in (self.nodes, self._texts, self._messages, self._cut):
            del entries[length:]
        self._start = min(self._start, length)
        return removed

    def drop(self, count: int) -> list[Node]:
        """Take out the oldest ``count`` messages, and give them. Clients are not sent them any more."""
        dropped = self.nodes[:count]
        for index, node in enumerate(dropped):
            self.bytes -= node.size
            self._bare -= node.message is None
            if index >= self._start:
                self._sent -= node.size
        for entries in (self.nodes, self._texts, self._messages, self._cut):
            del entries[:count]
        self._start = max(0, self._start - count)
        return dropped

    def refresh(self, index: int, before: int) -> None:
        """The message at ``index`` has another text, whole, or has it again; its size was ``before``."""
        node = self.nodes[index]
        self.bytes += node.size - before
        if index >= self._start:
            self._sent += node.size - before
        self._bare -= self._messages[index] is None
        self._texts[index], self._messages[index] = node.text or "", node.message
        del self._cut[index:]
        self._slide()

    def release(self) -> None:
        """Let go of the attachments of messages that clients are not sent."""
        if not self._passed:
            return
        places = {node.id: index for index, node in enumerate(self.nodes[: self._start])}
        for node in self._passed:
            index = places.get(node.id)
            if index is None or node.message is None:
                continue
            node.let_go()
            self._bare += 1
            self._texts[index], self._messages[index] = "", None
            if index < len(self._cut):
                self._cut[index] = None
        self._passed.clear()

    def _enter(self, node: Node) -> None:
        self.nodes.append(node)
        self._texts.append(node.text or "")
        self._messages.append(node.message)
        self.bytes += node.size
        self._bare += node.message is None

    def _slide(self) -> None:
        """Send as much as fits, and at least what must be sent."""
        nodes, latest = self.nodes, len(self.nodes) - must_send(self.nodes)
        while self._sent > self._window and self._start < latest:
            self._sent -= nodes[self._start].size
            if nodes[self._start].references:
                self._passed.append(nodes[self._start])
            self._start += 1
        while self._start > 0:
            node = nodes[self._start - 1]
            if node.message is None or (self._sent + node.size > self._window and self._start <= latest):
                break
            self._sent += node.size
            self._start -= 1


def must_send(branch: Sequence[Node]) -> int:
    """How many messages at the end of a branch clients are sent however large they are: the newest one, and the
    question that it answers. A picture is not to vanish because somebody answered."""
    answered = len(branch) > 1 and branch[-1].role == "assistant" and branch[-2].role == "user"
    return 2 if answered else min(len(branch), 1)


def as_old(entry: HistoryMessage) -> HistoryMessage:
    """A message as a model is shown it when it is old: itself when there is nothing to cut."""
    if not may_be_cut(entry.text):
        return entry
    return entry.derive(as_old, _shortened) or entry


def _shortened(message: UIMessage) -> HistoryMessage | None:
    short = shorten(message)
    return None if short is None else HistoryMessage.of(short)
