"""Puts right what a model streams, so that every client can build a message of it: one step at a time.

Text and reasoning have a start before their words and an end after them, and are left out when they say nothing. Each
tool call has an id of its own and exactly one input or one error. Knows no tool, no sink and no conversation; pure but
for the ids that it is given.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, cast

from perdure.errors import ModelError, ModelUnreachable
from perdure.models.contract import Chunk
from perdure.protocol import codec

__all__ = ["WellFormed"]

_PASSED = frozenset({"file", "reasoning-file", "source-url", "source-document", "custom", "message-metadata"})


@dataclass(slots=True)
class _Call:
    id: str
    tool: str
    provider: bool
    """Whether the provider runs it."""
    text: list[str] = field(default_factory=list[str])
    input: Any = None
    complete: bool = False
    answered: bool = False
    """Whether nothing follows: it has a result of its provider, or failed."""


class WellFormed:
    """The chunks of one step."""

    def __init__(self, is_taken: Callable[[str], bool], new_id: Callable[[], str]) -> None:
        """Nothing was streamed yet.

        Args:
            is_taken: Whether a call of an earlier step or turn has this id.
            new_id: Makes ids for calls that have none of their own.
        """
        self._is_taken = is_taken
        self._new_id = new_id
        # By the model's id: the start that is held back until there is a word, ``None`` once it was sent.
        self._open: dict[str, dict[str, Chunk | None]] = {"text": {}, "reasoning": {}}
        self._calls: list[_Call] = []
        self._latest: dict[str, _Call] = {}
        """By the model's id, which it may use several times."""

    def take(self, chunk: Chunk) -> Sequence[Chunk]:
        """What a chunk of the model becomes: mostly itself.

        Raises:
            ModelError: the model says that it failed.
        """
        kind: Any = chunk.get("type")
        match kind:
            case "text-delta" | "reasoning-delta":
                return self._delta(kind[:-6], _with_text(chunk, "id"))
            case "text-start" | "reasoning-start":
                return self._start(kind[:-6], _with_text(chunk, "id"))
            case "text-end" | "reasoning-end":
                return self._end(kind[:-4], _with_text(chunk, "id"))
            case "error":
                raise ModelError(_text(chunk.get("errorText")) or "The model failed without saying why.")
            case "abort":
                raise ModelUnreachable("The model broke off its answer.")
            case str() if handler := self._CALLS.get(kind):
                return handler(self, _with_text(chunk, "toolCallId"))
            case str() if kind in _PASSED or kind.startswith("data-"):
                return (chunk,)
            case _:
                # Marks of steps and messages are the loop's to make; what is unknown to clients stays here.
                return ()

    def finish(self) -> list[Chunk]:
        """The model has said all: what is left to be ended."""
        chunks: list[Chunk] = []
        for kind, opened in self._open.items():
            for identifier in list(opened):
                chunks += self._end(kind, {"type": f"{kind}-end", "id": identifier})
        for call in self._calls:
            if not call.complete:
                text = f"The model did not finish the arguments of the tool '{call.tool}'."
                chunks += self._complete(call, {}, "".join(call.text), text)
            if call.provider and not call.answered:
                # It would not be taken in a later step, and no step begins with an open call of the one before.
                text = f"The provider gave no result of the tool '{call.tool}'."
                chunks.append({"type": "tool-output-error", "toolCallId": call.id, "errorText": text})
        return chunks

    # ── text and reasoning ──────────────────────────────────────────

    def _delta(self, kind: str, chunk: Chunk) -> Sequence[Chunk]:
        text, identifier = chunk.get("delta"), chunk["id"]
        if not text or not isinstance(text, str):
            return ()
        opened = self._open[kind]
        if identifier in opened:
            held = opened[identifier]
            if held is None:
                return (chunk,)
        else:
            held = {"type": f"{kind}-start", "id": identifier}
        opened[identifier] = None
        return held, chunk

    def _start(self, kind: str, chunk: Chunk) -> Sequence[Chunk]:
        before = self._end(kind, {"type": f"{kind}-end", "id": chunk["id"]})
        self._open[kind][chunk["id"]] = chunk
        return before

    def _end(self, kind: str, chunk: Chunk) -> Sequence[Chunk]:
        opened = self._open[kind]
        if chunk["id"] not in opened:
            return ()
        held = opened.pop(chunk["id"])
        if held is None:
            return (chunk,)
        # Reasoning that the provider hides has no words, and must still go back to it.
        hidden = kind == "reasoning" and ("providerMetadata" in held or "providerMetadata" in chunk)
        return (held, chunk) if hidden else ()

    # ── tool calls ──────────────────────────────────────────────────

    def _call_start(self, chunk: Chunk) -> Sequence[Chunk]:
        known = self._latest.get(chunk["toolCallId"])
        name = _text(chunk.get("toolName"))
        if known is not None and not known.complete and name in {"", known.tool}:
            return ()
        call = self._open_call(chunk, name)
        return ({**chunk, "toolCallId": call.id, "toolName": call.tool},)

    def _call_delta(self, chunk: Chunk) -> Sequence[Chunk]:
        call = self._latest.get(chunk["toolCallId"])
        text = chunk.get("inputTextDelta")
        if call is None or call.complete or not text or not isinstance(text, str):
            return ()
        call.text.append(text)
        return (chunk if chunk["toolCallId"] == call.id else {**chunk, "toolCallId": call.id},)

    def _call_end(self, chunk: Chunk) -> Sequence[Chunk]:
        call = self._latest.get(chunk["toolCallId"])
        given, error = _read(chunk)
        if call is not None and call.complete:
            if not given or given == call.input:
                return ()  # the same call once more
            call = None
        if call is None:
            call = self._open_call(chunk, _text(chunk.get("toolName")))
        return self._complete(call, chunk, given, error)

    def _open_call(self, chunk: Chunk, name: str) -> _Call:
        given: str = chunk["toolCallId"]
        taken = not given or self._is_taken(given) or any(given == call.id for call in self._calls)
        call = _Call(self._new_id() if taken else given, name, bool(chunk.get("providerExecuted")))
        self._calls.append(call)
        self._latest[given] = call
        return call

    def _complete(self, call: _Call, chunk: Chunk, given: Any, error: str | None) -> Sequence[Chunk]:
        call.complete, call.answered, call.input = True, error is not None, given
        call.tool = _text(chunk.get("toolName")) or call.tool
        call.provider = call.provider or bool(chunk.get("providerExecuted"))
        made: Chunk = {**chunk, "toolCallId": call.id, "toolName": call.tool, "input": given}
        made["type"] = "tool-input-available" if error is None else "tool-input-error"
        if error is not None:
            made["errorText"] = error
        if call.provider:
            made["providerExecuted"] = True
        return (made,)

    def _output(self, chunk: Chunk) -> Sequence[Chunk]:
        call = self._latest.get(chunk["toolCallId"])
        if call is None or not call.provider:
            return ()  # the results of our own tools are not the model's to give
        call.answered = call.answered or not chunk.get("preliminary")
        return ({**chunk, "toolCallId": call.id},)

    _CALLS: ClassVar[dict[str, Callable[[Any, Chunk], Sequence[Chunk]]]] = {
        "tool-input-start": _call_start,
        "tool-input-delta": _call_delta,
        "tool-input-available": _call_end,
        "tool-input-error": _call_end,
        "tool-output-available": _output,
        "tool-output-error": _output,
        "tool-output-denied": _output,
    }


def _read(chunk: Chunk) -> tuple[Any, str | None]:
    """The input of a call: an object, or what the model wrote and why that is none."""
    given: Any = chunk.get("input")
    if chunk["type"] == "tool-input-error":
        return given, _text(chunk.get("errorText")) or _no_object(chunk)
    if given is None or (isinstance(given, str) and not given.strip()):
        return {}, None
    value: Any = given
    if isinstance(given, str):
        try:
            value = codec.decode(given)
        except codec.DecodeError:
            value = None
    if isinstance(value, dict):
        return codec.sound(cast("Any", value)), None
    return given, _no_object(chunk)


def _no_object(chunk: Chunk) -> str:
    return f"The arguments for the tool '{_text(chunk.get('toolName'))}' are not a JSON object."


def _with_text(chunk: Chunk, key: str) -> Chunk:
    """The chunk with a text under this key: its id, as far as it has one."""
    value = chunk.get(key)
    if isinstance(value, str):
        return chunk
    return {**chunk, key: "" if value is None else str(value)}


def _text(value: Any) -> str:
    return value if isinstance(value, str) else ""
