"""Tool calls of one answer: pieces as servers stream them, to chunks.

Evens out the ways of servers: some repeat the id and the name in every piece, some send them empty after the first,
some number every call 0, some do not number them. No I/O.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

from perdure.models.bridge.inputs import input_chunk
from perdure.models.contract import Chunk
from perdure.models.quick.tokens import Restorer, restored, restored_in
from perdure.models.quick.wire import WireCall
from perdure.protocol import codec

__all__ = ["Calls"]


class _Call:
    __slots__ = ("data", "details", "given", "id", "name", "shown", "text")

    def __init__(self, given: str) -> None:
        self.given = given
        """The id that the server gave it; may be empty."""
        self.id = ""
        """The id that it is shown with; empty before it has a name."""
        self.name = ""
        self.text: list[str] = []
        self.data: dict[str, Any] | None = None
        """The arguments, from a server that sends them as an object."""
        self.details: Any = None
        self.shown = Restorer()


class Calls:
    """The calls of one answer. A call begins with its name; pieces that came before wait for it."""

    def __init__(
        self, provider: str, is_taken: Callable[[str], bool], new_id: Callable[[], str], *, restores: bool
    ) -> None:
        """No call was made yet.

        Args:
            provider: the key of what the provider wants back.
            is_taken: whether a call of the conversation has this id already.
            new_id: makes ids for calls that come without one or with one that is taken.
            restores: whether joiners are taken out of control tokens.
        """
        self._provider = provider
        self._is_taken = is_taken
        self._new_id = new_id
        self._restores = restores
        self._by_index: dict[int, _Call] = {}
        self._last: _Call | None = None
        self._begun: list[_Call] = []

    @property
    def any(self) -> bool:
        """Whether there is a call."""
        return bool(self._begun)

    def take(self, piece: WireCall) -> list[Chunk]:
        """The chunks of one piece. The first of a call's is ``tool-input-start``."""
        function = piece.function
        name = _text(function.name) if function is not None else ""
        call = self._call_of(piece, name)
        if function is None:
            return []
        if piece.extra_content:
            call.details = piece.extra_content
        if call.name:
            call.name += name if name != call.name else ""
            return self._shown(call, _add(call, function.arguments))
        call.given = call.given or _text(piece.id)
        _add(call, function.arguments)
        return self._begin(call, name) if name else []

    def finish(self) -> list[Chunk]:
        """The inputs, which are final when the answer is complete."""
        return [self._input_of(call) for call in self._begun]

    def _begin(self, call: _Call, name: str) -> list[Chunk]:
        call.name = name
        call.id = self._free_id(call.given)
        self._begun.append(call)
        start: Chunk = {"type": "tool-input-start", "toolCallId": call.id, "toolName": name}
        return [start, *self._shown(call, codec.encode_text(call.data) if call.data else "".join(call.text))]

    def _shown(self, call: _Call, text: str) -> list[Chunk]:
        text = call.shown.feed(text) if self._restores else text
        return [{"type": "tool-input-delta", "toolCallId": call.id, "inputTextDelta": text}] if text else []

    def _input_of(self, call: _Call) -> Chunk:
        chunk = input_chunk(call.id, call.name, "".join(call.text), call.data)
        if self._restores:
            # Decoded first: the joiner may be written as an escape.
            restore = restored if chunk["type"] == "tool-input-error" else restored_in
            chunk["input"] = restore(chunk["input"])
        if call.details:
            chunk["providerMetadata"] = {self._provider: {"details": {"extra_content": call.details}}}
        return chunk

    def _call_of(self, piece: WireCall, name: str) -> _Call:
        index = piece.index if isinstance(piece.index, int) else None
        call = self._last if index is None else self._by_index.get(index)
        if call is None or _is_another(call, _text(piece.id), name, numbered=index is not None):
            call = _Call(_text(piece.id))
            if index is not None:
                self._by_index[index] = call
        self._last = call
        return call

    def _free_id(self, given: str) -> str:
        if not given or self._is_taken(given) or any(given == call.id for call in self._begun):
            return self._new_id()
        return given


def _add(call: _Call, arguments: Any) -> str:
    """Take arguments. Gives what of them is text."""
    if isinstance(arguments, dict):
        call.data = {**(call.data or {}), **cast("dict[str, Any]", arguments)}
    elif isinstance(arguments, str) and arguments:
        call.text.append(arguments)
        return arguments
    return ""


def _is_another(call: _Call, call_id: str, name: str, *, numbered: bool) -> bool:
    """Whether a piece that looks like one more of ``call`` starts a call of its own."""
    if not call.name or not name:
        return False
    return call_id != call.given if call_id else not numbered


def _text(value: Any) -> str:
    return value if isinstance(value, str) else ""
