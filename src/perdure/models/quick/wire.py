"""What a chat completions stream carries, decoded without the SDK's per-chunk model building.

The shapes admit only the ordinary: anything else (usage, log probabilities, unknown fields of a delta, odd types) makes
the decoder refuse, and the caller lets the SDK read that chunk. So nothing the SDK would show is lost. No I/O.
"""

from __future__ import annotations

from typing import Any, ClassVar

import msgspec

__all__ = ["CallTracker", "QuickChunk", "decode_chunk"]


class _Function(msgspec.Struct):
    name: str | None = None
    arguments: str | None = None


class _ToolCall(msgspec.Struct, forbid_unknown_fields=True):
    index: int | None = None
    id: str | None = None
    type: str | None = None
    function: _Function | None = None
    model_extra: ClassVar[None] = None


class _Delta(msgspec.Struct, forbid_unknown_fields=True):
    role: str | None = None
    content: str | None = None
    reasoning: str | None = None
    reasoning_content: str | None = None
    refusal: str | None = None
    tool_calls: list[_ToolCall] | None = None
    annotations: None = None
    audio: None = None
    function_call: None = None
    model_extra: ClassVar[None] = None


class _Choice(msgspec.Struct):
    delta: _Delta | None = None
    finish_reason: str | None = None
    index: int = 0
    logprobs: None = None
    model_extra: ClassVar[None] = None


class QuickChunk(msgspec.Struct):
    """A chunk as its readers use it: the attributes of the SDK's ``ChatCompletionChunk``.

    A field typed ``None`` must be null or absent, or the SDK reads the chunk.
    """

    id: str | None = None
    choices: list[_Choice] | None = None
    created: int | float | None = None
    model: str | None = None
    object: str | None = None
    service_tier: str | None = None
    system_fingerprint: str | None = None
    usage: None = None
    moderation: None = None
    error: None = None
    model_extra: ClassVar[None] = None


decode_chunk = msgspec.json.Decoder(QuickChunk).decode
"""A :class:`QuickChunk` from JSON bytes. Raises ``msgspec.DecodeError`` for what only the SDK can read."""


class _Slot:
    __slots__ = ("held", "id", "index", "name")

    def __init__(self, index: int, call_id: str | None) -> None:
        self.index = index
        self.id = call_id
        self.name = ""
        self.held = ""
        """Arguments that came before the name."""


class CallTracker:
    """Evens out how servers stream tool calls, over the deltas of one answer.

    Some repeat the id and the name in every delta, some send them empty after the first, some number every call 0, some
    do not number them. Afterwards each call has an index of its own, and its id and name come once and first.
    """

    __slots__ = ("_by_index", "_count", "_last")

    def __init__(self) -> None:
        self._by_index: dict[int, _Slot] = {}
        self._last: _Slot | None = None
        self._count = 0

    def settle(self, calls: list[Any]) -> list[Any]:
        """The tool calls of a delta (quick ones or the SDK's), rewritten in place; one without a name waits for it."""
        return [call for call in calls if self._settle(call)]

    def _settle(self, call: Any) -> bool:
        index: int | None = getattr(call, "index", None)
        function = call.function
        name: str = (function.name if function is not None else None) or ""
        slot = self._last if index is None else self._by_index.get(index)
        if slot is None or _is_another(slot, call.id, name, numbered=index is not None):
            slot = self._open(index, call.id or None)
        self._last = slot
        if function is None:
            return False
        call.index = slot.index
        if not slot.name and not name:
            slot.id = slot.id or call.id or None
            slot.held += function.arguments or ""
            return False
        if not slot.name:
            call.id = slot.id = slot.id or call.id or None
            if slot.held:
                function.arguments = slot.held + (function.arguments or "")
            function.name = slot.name = name
            return True
        call.id = None
        function.name = None if name in ("", slot.name) else name
        slot.name += function.name or ""
        return True

    def _open(self, index: int | None, call_id: str | None) -> _Slot:
        slot = _Slot(self._count, call_id)
        self._count += 1
        if index is not None:
            self._by_index[index] = slot
        return slot


def _is_another(slot: _Slot, call_id: str | None, name: str, *, numbered: bool) -> bool:
    """Whether a delta that looks like one more of ``slot``'s starts a call of its own."""
    if not slot.name or not name:
        return False
    return call_id != slot.id if call_id else not numbered
