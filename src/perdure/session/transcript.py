"""The conversation of one agent: the tree in memory, and what it reads from the store when it lacks something.

What is decided synchronously (which messages are new, where an answer belongs) needs certain messages in memory. Ask
:meth:`Transcript.unknown` and :meth:`Transcript.lacks` first, read what is missing, look again; act without awaiting.
"""

from __future__ import annotations

import math
from collections.abc import Container, Iterable, Sequence
from typing import cast

import msgspec

from perdure.chat.repair import may_need_repair, repair
from perdure.chat.shorten import settled_count
from perdure.errors import BadRequest
from perdure.models.contract import HistoryMessage
from perdure.protocol import codec
from perdure.protocol.messages import UIMessage
from perdure.session.archive import Archive, Piece
from perdure.session.node import Node
from perdure.session.path import as_old, must_send
from perdure.session.tree import MEMORY, WINDOW, Tree
from perdure.storage.contract import AgentRecord, MessagePlace, Operation

__all__ = ["WINDOW", "Repairs", "Transcript"]

_EARLIER = "[Earlier messages are left out.]"
_BEGINS = "[The assistant begins the conversation.]"


class Repairs(msgspec.Struct, frozen=True):
    """What was put right in stored messages."""

    operations: list[Operation]
    """Store it."""
    settled: list[str]
    """Ids of the tool calls that had no outcome: errors now."""
    normalised: list[str]
    """Ids of the tool calls whose input was no object."""


class Transcript(Tree):
    """The conversation of one agent. Made by :meth:`open`, or empty."""

    def __init__(
        self, archive: Archive, *, window: int = WINDOW, memory: float = MEMORY, stored: int = 0, next_pos: int = 0
    ) -> None:
        """A conversation of which nothing is in memory. For the arguments see :class:`Tree`."""
        super().__init__(window=window, memory=memory, stored=stored, next_pos=next_pos)
        self._archive = archive
        self._window = window

    @classmethod
    async def open(
        cls, archive: Archive, record: AgentRecord, *, window: int = WINDOW, memory: float = MEMORY
    ) -> Transcript:
        """The stored conversation, its recent end in memory.

        Raises:
            StorageError: it cannot be read.
        """
        transcript = cls(archive, window=window, memory=memory, stored=record.messages, next_pos=record.next_pos)
        if record.messages:
            nodes = transcript._adopt(await archive.branch(None, max_bytes=_limit(memory)))
            await transcript._make_whole(nodes)
            transcript._path.replace(nodes)
            if transcript._remembers_others(record.messages - len(nodes)):
                transcript._remember(await archive.off_path())
            transcript._tell_window()
        return transcript

    # ── what is missing ─────────────────────────────────────────────

    @property
    def is_all_here(self) -> bool:
        """Whether the path is in memory as a whole, and there is nothing beside it: nothing is ever missing."""
        return self._stored == len(self._path.nodes) and not self._path.bare

    def unknown(self, identifiers: Iterable[str]) -> list[str]:
        """Those of these messages of which nobody knows whether they are stored: :meth:`recall` them."""
        if self._stored == len(self._nodes):
            return []
        return [each for each in identifiers if each not in self._nodes and each not in self._absent]

    def lacks(self, identifier: str | None) -> bool:
        """Whether the branch that ends with this message has to be read before anything follows it: :meth:`load` it."""
        if self.is_all_here or identifier is None or identifier in self._reached or identifier == self.leaf:
            return False
        branch = self._branch(identifier)
        if not branch:
            return True
        if branch[0].parent is not None and sum(node.size for node in branch) < self._memory / 2:
            return True
        return any(node.message is None for node in self._to_send(branch))

    async def recall(self, identifiers: Sequence[str]) -> None:
        """Look for messages in the store. Those that are there are known afterwards, by their place at least.

        Raises:
            StorageError: the store cannot be read.
        """
        wanted = self.unknown(identifiers)
        if not wanted:
            return
        generation = self._generation
        found = await self._archive.find(wanted)
        if generation == self._generation:
            self._remember(found)
            self._absent.update(wanted)

    async def load(self, identifier: str) -> None:
        """Bring the branch that ends with this known message into memory, as far as it fits.

        Raises:
            StorageError: the store cannot be read.
        """
        generation = self._generation
        branch = self._branch(identifier)
        first = self._nodes.get((branch[0].parent if branch else identifier) or "")
        room = self._memory - sum(node.size for node in branch)
        older = Piece([])
        if first is not None and room > 0:
            older = await self._archive.branch(first.pos, max_bytes=_limit(room))
        if generation != self._generation:
            return
        adopted = self._adopt(older)
        await self._make_whole(_joined(adopted, branch))
        if generation == self._generation:
            self._reached.add(identifier)
            path = self._path.nodes
            if adopted and path and path[0].parent == adopted[-1].id:
                self._path.replace([*adopted, *path])

    async def reach(self, identifiers: Sequence[str], parent: str | None = None) -> None:
        """Read whatever is missing to decide on these messages, and to let something follow ``parent``.

        Raises:
            StorageError: the store cannot be read.
        """
        while unknown := self.unknown([*identifiers, *([] if parent is None else [parent])]):
            await self.recall(unknown)
        while parent in self._nodes and self.lacks(parent):
            await self.load(parent)

    async def extend(self, identifiers: Iterable[str]) -> None:
        """Hold more of the path, until these messages are in memory, as far as they are on it.

        Raises:
            StorageError: the store cannot be read.
        """
        wanted = list(identifiers)
        await self.recall(wanted)
        lowest = min((self._nodes[each].pos for each in wanted if each in self._nodes), default=None)
        while lowest is not None and self.is_windowed and self._path.nodes[0].pos > lowest:
            before = self._nodes[self._path.nodes[0].parent or ""]
            older = self._adopt(await self._archive.branch(before.pos, max_bytes=_limit(self._memory)))
            if not older:
                break  # damaged, all of it
            self._path.replace(_joined(older, self._path.nodes))
        self._left.update(each for each in wanted if self._path.find(each) is None)

    async def recall_following(self, identifiers: Iterable[str]) -> None:
        """Know of everything that follows these known messages, on any branch: it moves when they do.

        Raises:
            StorageError: the store cannot be read.
        """
        above = {node.pos: node.id for each in identifiers if (node := self._nodes.get(each)) is not None}
        while above:
            places = await self._archive.following(list(above))
            for place in places:
                self._remember([place])
                node = self._nodes[place.id]
                node.parent = node.parent or above[place.parent or 0]
            above = {place.pos: place.id for place in places}

    # ── reading ─────────────────────────────────────────────────────

    async def history(self, upto: str | None, step: float = 8) -> list[HistoryMessage]:
        """The branch that ends with message ``upto`` as a model is shown it: what of it is in memory, oldest first,
        but for the messages that models are not shown.

        Args:
            upto: Id of the last message; ``None`` for nothing.
            step: By how many messages the part that is shown cut grows at once; infinite to cut nothing.

        Raises:
            StorageError: attachments cannot be read.
        """
        index = self._path.find(upto)
        if index is not None and not self._path.bare:
            nodes = self._path.nodes
            shown = cast("list[HistoryMessage]", self._path.history(index + 1, step))
        else:
            nodes = self._branch(upto)
            data = await self._archive.attachments(missing_data(nodes))
            shown = [node.whole(data) for node in nodes]
            old = settled_count(len(nodes), step)
            shown[:old] = [as_old(entry) for entry in shown[:old]]
        if self._leaves_out:
            shown = [entry for entry, node in zip(shown, nodes, strict=False) if not node.left_out]
        return _begun_by_user(shown, nodes)

    async def page(self, before: str | None = None, limit: int | None = None) -> list[UIMessage]:
        """Messages of the path, oldest first, as copies: the newest ``limit`` of those before message ``before``.

        Raises:
            BadRequest: there is no message ``before``.
            StorageError: the store cannot be read.
        """
        await self.reach([] if before is None else [before])
        if before is not None and before not in self._nodes:
            raise BadRequest(f"There is no message {before!r:.60}.")
        if limit is not None and limit <= 0:
            return []
        leaf, more = (None, 0) if before is None else (self._nodes[before].pos, 1)
        piece = await self._archive.branch(leaf, max_rows=None if limit is None else limit + more)
        nodes = [node for node in piece.nodes if node.id != before]
        data = await self._archive.attachments(missing_data(nodes))
        return [codec.decode(node.whole(data).text) for node in nodes]

    # ── putting right ───────────────────────────────────────────────

    def repair(self, left: Container[str] = ()) -> Repairs:
        """Put right what no model must be shown: calls without an outcome, inputs that are no objects.

        Each message is looked at once, but for those with calls that are ``left`` as they are.
        """
        done, again = Repairs([], [], []), list[Node]()
        unchecked, self._unchecked = self._unchecked, []
        for node in unchecked:
            text = node.text
            if node.role != "assistant" or text is None or not may_need_repair(text):
                continue
            if self._nodes.get(node.id) is not node:
                continue
            message = codec.decode(text)
            if any(part.get("toolCallId") in left for part in message["parts"]):
                again.append(node)
            if (repaired := repair(message, left)) is not None:
                done.operations.extend(self.update(repaired.message))
                done.settled.extend(repaired.settled)
                done.normalised.extend(repaired.normalised)
        self._unchecked = again
        return done

    # ── what was read ───────────────────────────────────────────────

    def _remember(self, places: Iterable[MessagePlace]) -> None:
        self._cluttered = True
        for place in places:
            self._nodes.setdefault(place.id, Node(place.pos, place.id, None, place.role))

    def _adopt(self, piece: Piece) -> list[Node]:
        """Hold the messages that were read. Those that are in memory already are what counts."""
        self._cluttered = True
        previous: str | None = None
        if (before := piece.before) is not None:
            self._nodes.setdefault(before.id, Node(before.pos, before.id, None, before.role))
            previous = before.id
        nodes: list[Node] = []
        for read in piece.nodes:
            node = self._nodes.get(read.id)
            if node is None or not node.loaded:
                node = self._nodes[read.id] = read
                self._leaves_out = self._leaves_out or node.left_out
                node.parent = previous
                self._unchecked.append(node)
            nodes.append(node)
            previous = node.id
        return nodes

    async def _make_whole(self, branch: Sequence[Node]) -> None:
        """Give the messages of a branch that clients would be sent their attachments."""
        nodes = self._to_send(branch)
        lacking = [node for node in nodes if node.message is None]
        data = await self._archive.attachments(missing_data(lacking))
        for node in lacking:
            if node.message is None:
                before = node.size
                node.take(node.whole(data).text, node.references)
                index = self._path.find(node.id)
                if index is not None:
                    self._path.refresh(index, before)

    def _to_send(self, branch: Sequence[Node]) -> list[Node]:
        """The end of a branch that fits the window."""
        count = must_send(branch)
        size = sum(node.size for node in branch[len(branch) - count :])
        while count < len(branch) and size + branch[-count - 1].size <= self._window:
            count += 1
            size += branch[-count].size
        return list(branch[len(branch) - count :])


def _limit(budget: float) -> int | None:
    """A budget as the store takes it."""
    return None if math.isinf(budget) else int(budget)


def _joined(older: list[Node], newer: list[Node]) -> list[Node]:
    """One branch out of two pieces of it. What was damaged between them is left out."""
    if older and newer:
        newer[0].parent = older[-1].id
    return [*older, *newer]


def missing_data(nodes: Iterable[Node]) -> list[str]:
    """Digests of the attachments that these messages lack."""
    return [reference.digest for node in nodes if node.message is None for reference in node.references]


def _begun_by_user(entries: list[HistoryMessage], nodes: Sequence[Node]) -> list[HistoryMessage]:
    """Strict providers want a conversation that the user begins."""
    first = next((node for node in nodes if node.role != "system" and not node.left_out), None)
    if first is None or first.role == "user":
        return entries
    text = _BEGINS if nodes[0].parent is None and not nodes[0].left_out else _EARLIER
    note = HistoryMessage.of({"id": "", "role": "user", "parts": [{"type": "text", "text": text}]})
    return [note, *entries]
