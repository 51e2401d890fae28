"""A message in memory: its place in the tree, and as much of its text as is held. No I/O."""

from __future__ import annotations

from collections.abc import Mapping

from perdure.models.contract import HistoryMessage
from perdure.session.attachments import cut_out, put_back
from perdure.storage.contract import AttachmentRef

__all__ = ["Node"]


class Node:
    """A message in the tree. Of some only the place is known."""

    __slots__ = ("_rest", "id", "left_out", "message", "parent", "pos", "references", "role", "size", "waiting")

    def __init__(self, pos: int, identifier: str, parent: str | None, role: str) -> None:
        self.pos = pos
        """Where it is stored; the greatest position is the leaf of the active path."""
        self.id = identifier
        self.parent = parent
        """Id of the message that it follows; ``None`` for a root, and when only its place is known."""
        self.role = role
        self.message: HistoryMessage | None = None
        """The whole message; ``None`` while its attachments, or all of its text, are in the store only."""
        self._rest: str | None = None
        self.references: tuple[AttachmentRef, ...] = ()
        """What of its text the store keeps as attachments."""
        self.size = 0
        """Bytes of the whole text in UTF-8, and one for what separates it from the next."""
        self.waiting = False
        """Whether it was accepted while another turn ran and its own has not started."""
        self.left_out = False
        """Whether models are not shown it: another message came before it was answered, and took its turn."""

    @property
    def text(self) -> str | None:
        """The whole message as JSON text, if it is held."""
        return None if self.message is None else self.message.text

    @property
    def loaded(self) -> bool:
        """Whether the text is held, be it without its attachments."""
        return self.message is not None or self._rest is not None

    def take(self, text: str, references: tuple[AttachmentRef, ...] = ()) -> None:
        """This is the whole text now."""
        self.message, self._rest, self.references = HistoryMessage(text), None, references
        self.size = (len(text) if text.isascii() else len(text.encode())) + 1

    def take_rest(self, rest: str, references: tuple[AttachmentRef, ...]) -> None:
        """This is the text without its attachments."""
        self.message, self._rest, self.references = None, rest, references
        size = len(rest) if rest.isascii() else len(rest.encode())
        self.size = size + sum(reference.size for reference in references) + 1

    def let_go(self) -> None:
        """Hold the text without its attachments only."""
        if self.references and self.message is not None:
            self._rest, self.message = cut_out(self.message.text, self.references), None

    def whole(self, data: Mapping[str, bytes]) -> HistoryMessage:
        """The message with its attachments. It is not kept."""
        if self.message is not None:
            return self.message
        assert self._rest is not None, f"the text of {self.id} is not in memory"
        return HistoryMessage(put_back(self._rest, self.references, data))
