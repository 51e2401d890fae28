"""Text and reasoning of one answer as runs of chunks. No I/O."""

from __future__ import annotations

from typing import Any, NamedTuple

from perdure.models.contract import Chunk
from perdure.models.quick.tokens import Restorer

__all__ = ["Manner", "Runs"]


class Manner(NamedTuple):
    """How a model writes."""

    provider: str
    """The key of what it wants back with its parts."""
    reasoning_fields: tuple[str, ...]
    """Where its reasoning may be in a delta; the first that holds any counts."""
    tags: tuple[str, str]
    """What may stand around reasoning in the text, each as a delta of its own."""
    trims: bool
    """Whether white space before its text means nothing."""
    restores: bool
    """Whether joiners are taken out of control tokens in its text."""


class Runs:
    """What a model says, in the order in which it says it: a run goes on until it says something of another kind."""

    def __init__(self, manner: Manner) -> None:
        """Nothing was said yet."""
        self._plain = True
        """Whether all that it wrote as text is shown as text."""
        self._manner = manner
        self._kind = ""
        """``text`` or ``reasoning`` while a run is open, which may not have said anything yet."""
        self._field = ""
        """Where the reasoning of the open run is."""
        self._id: str | None = None
        self._count = 0
        self._texts = 0
        self._tagged = False
        """Whether the text is reasoning, between tags."""
        self._restorer: Restorer | None = None
        self._broke_text = False
        """Whether reasoning interrupted a text."""
        self._space = ""
        """White space that separates the text before such an interruption from the text after it."""

    @property
    def is_whole(self) -> bool:
        """Whether its text is one run, and all that it wrote as text."""
        return self._plain and self._texts == 1

    def text(self, text: str) -> list[Chunk]:
        """The chunks of a piece of text, which is not empty."""
        if self._tagged:
            return self._tagged_text(text)
        if text == self._manner.tags[0]:
            self._tagged, self._broke_text, self._plain = True, False, False
            return self._open("reasoning", "content")
        if self._kind == "text":
            return self._said(self._restored(text))
        if self._manner.trims and text.isspace():
            self._space += text if self._broke_text else ""
            self._plain = False
            return []
        return [*self._open_text(), *self._said(self._restored(self._after_space(text)))]

    def reasoning(self, field: str, text: str) -> list[Chunk]:
        """The chunks of a piece of reasoning that was in ``field``."""
        if self._kind == "reasoning" and self._field == field:
            return self._said(text)
        self._broke_text = self._broke_text or self._kind == "text"
        return [*self._open("reasoning", field), *self._said(text)]

    def interrupt(self) -> list[Chunk]:
        """A tool call begins: what is said afterwards is a run of its own."""
        self._broke_text = False
        return self.end()

    def end(self, metadata: dict[str, Any] | None = None) -> list[Chunk]:
        """End the open run. ``metadata``: what the provider wants back with a text."""
        held = self._restorer.flush() if self._restorer is not None else ""
        chunks = self._said(held) if held else []
        if self._id is not None:
            end: Chunk = {"type": f"{self._kind}-end", "id": self._id}
            if self._kind == "reasoning":
                metadata = {self._manner.provider: {"id": self._field}}
            if metadata:
                end["providerMetadata"] = metadata
            chunks.append(end)
        self._kind, self._id, self._restorer = "", None, None
        return chunks

    def _tagged_text(self, text: str) -> list[Chunk]:
        if text == self._manner.tags[1]:
            self._tagged = False
            return []
        return self.reasoning("content", text)

    def _open(self, kind: str, field: str = "") -> list[Chunk]:
        chunks = self.end()
        self._kind, self._field = kind, field
        return chunks

    def _open_text(self) -> list[Chunk]:
        chunks = self._open("text")
        self._restorer = Restorer() if self._manner.restores else None
        self._texts += 1
        self._broke_text = False
        return chunks

    def _after_space(self, text: str) -> str:
        space, self._space = self._space, ""
        return space + text

    def _restored(self, text: str) -> str:
        return text if self._restorer is None else self._restorer.feed(text)

    def _said(self, text: str) -> list[Chunk]:
        if not text:
            return []
        delta: Chunk = {"type": f"{self._kind}-delta", "id": self._id, "delta": text}
        if self._id is not None:
            return [delta]
        self._id = delta["id"] = str(self._count)
        self._count += 1
        return [{"type": f"{self._kind}-start", "id": self._id}, delta]
