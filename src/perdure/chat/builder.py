"""Builds the assistant message out of the chunks of its stream (reference: protocol §7.2–7.4).

Takes one chunk at a time and never looks at parts that are done, so a chunk costs the same at the end of a long answer.
Tolerant like the clients' observers: what does not fit is left out, nothing raises. Pure.
"""

from __future__ import annotations

from collections.abc import Callable, Container
from typing import Any, ClassVar, cast

from perdure.chat.repair import normalise_inputs
from perdure.protocol import codec
from perdure.protocol.messages import Part, UIMessage, is_settled, is_tool_part, tool_name

__all__ = ["MessageBuilder"]

Chunk = dict[str, Any]

_MARKS = frozenset({"start", "start-step", "finish-step", "finish", "message-metadata"})
"""Chunks that leave nothing behind that is worth storing by itself."""

_NEEDED: dict[str, tuple[str, ...]] = {
    "text-start": ("id",),
    "text-delta": ("id", "delta"),
    "text-end": ("id",),
    "reasoning-start": ("id",),
    "reasoning-delta": ("id", "delta"),
    "reasoning-end": ("id",),
    "tool-input-start": ("toolCallId", "toolName"),
    "tool-input-delta": ("toolCallId", "inputTextDelta"),
    "tool-input-available": ("toolCallId", "toolName"),
    "tool-input-error": ("toolCallId", "toolName", "errorText"),
    "tool-output-available": ("toolCallId",),
    "tool-output-error": ("toolCallId", "errorText"),
    "tool-output-denied": ("toolCallId",),
    "tool-approval-request": ("toolCallId", "approvalId"),
}
"""The texts without which a chunk of this type says nothing."""

_PASSED_ON = frozenset({"file", "reasoning-file", "source-url", "source-document", "custom", "steering-message"})


class MessageBuilder:
    """An assistant message in the making."""

    def __init__(self, message_id: str) -> None:
        self.id = message_id
        self._parts: list[Part] = []
        self._metadata: dict[str, Any] = {}
        # Open text and reasoning parts by (kind, chunk id): their pieces are joined when somebody looks.
        self._open: dict[tuple[str, str], tuple[Part, list[str]]] = {}
        self._tools: dict[str, Part] = {}
        self._step = 0
        self.changed = False
        """Whether a chunk has added anything that is worth storing."""
        self.amended = False
        """Whether a call was settled or decided otherwise than by a chunk: who builds the message out of its stream
        does not know of it."""

    @classmethod
    def going_on(cls, message: UIMessage) -> MessageBuilder:
        """A builder that goes on with a message. The message itself is not changed."""
        builder = cls(message["id"])
        builder._parts = [dict(part) for part in message["parts"]]
        for part in builder._parts:
            if part.get("state") == "streaming":
                part["state"] = "done"
            if is_tool_part(part):
                builder._tools[part["toolCallId"]] = part
        builder._step = len(builder._parts)
        metadata = message.get("metadata")
        if isinstance(metadata, dict):
            builder._metadata = dict(cast("dict[str, Any]", metadata))
        return builder

    # ── looking ─────────────────────────────────────────────────────

    @property
    def has_content(self) -> bool:
        """Whether there is anything that is worth storing: a part other than the mark of a step."""
        return any(part["type"] != "step-start" for part in self._parts)

    @property
    def parts(self) -> list[Part]:
        """The parts so far. Shared with the builder: do not change them."""
        for part, pieces in self._open.values():
            _join(part, pieces)
        return self._parts

    def message(self) -> UIMessage:
        """The message so far. Its parts are shared with the builder."""
        message: UIMessage = {"id": self.id, "role": "assistant", "parts": list(self.parts)}
        if self._metadata:
            message["metadata"] = dict(self._metadata)
        return message

    def tool_part(self, call_id: str) -> Part | None:
        """The part of a tool call."""
        return self._tools.get(call_id)

    def open_calls(self) -> list[str]:
        """Ids of the tool calls that are not settled, in call order."""
        return [call_id for call_id, part in self._tools.items() if not is_settled(part)]

    def open_calls_of(self, tools: Container[str]) -> set[str]:
        """Ids of the calls of these tools that are not settled."""
        return {call_id for call_id in self.open_calls() if tool_name(self._tools[call_id]) in tools}

    # ── building ────────────────────────────────────────────────────

    def apply(self, chunk: Chunk) -> None:
        """Take one chunk in."""
        kind = chunk.get("type")
        if not isinstance(kind, str):
            return
        for field in _NEEDED.get(kind, ()):
            if not isinstance(chunk.get(field), str):
                return
        # Data that is shown and forgotten is of no message.
        if kind.startswith("data-") and chunk.get("transient"):
            return
        self.changed = self.changed or kind not in _MARKS
        if kind in {"text-delta", "reasoning-delta"}:
            opened = self._open.get((kind[:-6], chunk["id"]))
            if opened is None:
                opened = self._start(kind[:-6], chunk)
            opened[1].append(chunk["delta"])
        elif handler := self._HANDLERS.get(kind):
            handler(self, chunk)
        elif kind in _PASSED_ON:
            self._parts.append(dict(chunk))
        elif kind.startswith("data-"):
            self._data(chunk)

    def change(self, call_id: str, change: Callable[[Part], Part]) -> None:
        """Somebody outside the stream changed a tool call that is not settled."""
        part = self._tools.get(call_id)
        if part is not None and not is_settled(part):
            changed = change(part)
            part.clear()
            part.update(changed)
            self.changed = self.amended = True

    def close(self) -> None:
        """The stream is over: text and reasoning that were still open are done."""
        for opened in self._open.values():
            _finish(*opened)
        self._open.clear()

    def _start(self, kind: str, chunk: Chunk) -> tuple[Part, list[str]]:
        if (before := self._open.get((kind, chunk["id"]))) is not None:
            _finish(*before)
        part: Part = {"type": kind, "text": "", "state": "streaming"}
        _copy(chunk, part, "providerMetadata")
        self._parts.append(part)
        opened = self._open[(kind, chunk["id"])] = (part, [])
        return opened

    def _text_start(self, chunk: Chunk) -> None:
        self._start(chunk["type"][:-6], chunk)

    def _text_end(self, chunk: Chunk) -> None:
        opened = self._open.pop((chunk["type"][:-4], chunk["id"]), None)
        if opened is not None:
            _finish(*opened)
            _copy(chunk, opened[0], "providerMetadata", "citations")

    def _start_message(self, chunk: Chunk) -> None:
        if (identifier := chunk.get("messageId")) and isinstance(identifier, str):
            self.id = identifier
        self._add_metadata(chunk)

    def _start_step(self, chunk: Chunk) -> None:
        self._parts.append({"type": "step-start"})
        self._step = len(self._parts)

    def _reset_step(self, chunk: Chunk) -> None:
        self.close()
        dropped = self._parts[self._step :]
        del self._parts[self._step :]
        for part in dropped:
            self._tools.pop(part.get("toolCallId", ""), None)

    def _add_metadata(self, chunk: Chunk) -> None:
        metadata = chunk.get("messageMetadata")
        if isinstance(metadata, dict):
            self._metadata.update(cast("dict[str, Any]", metadata))

    def _input_start(self, chunk: Chunk) -> None:
        call_id = chunk["toolCallId"]
        if call_id not in self._tools:
            self._add_tool(chunk, "input-streaming")

    def _input_available(self, chunk: Chunk) -> None:
        part = self._tools.get(chunk["toolCallId"]) or self._add_tool(chunk, "input-streaming")
        if part["state"] in {"input-streaming", "input-available"}:
            # Whoever puts a call right may find that another tool was meant.
            part["type"] = f"tool-{chunk['toolName']}"
            part["state"] = "input-available"
            part["input"] = _as_object(chunk.get("input"))
            _tool_extras(chunk, part)

    def _input_error(self, chunk: Chunk) -> None:
        part = self._tools.get(chunk["toolCallId"]) or self._add_tool(chunk, "input-streaming")
        if not is_settled(part):
            part.update(state="output-error", input=chunk.get("input"), errorText=chunk["errorText"])
            part.update(normalise_inputs(part) or ())
            _tool_extras(chunk, part)

    def _output_available(self, chunk: Chunk) -> None:
        if part := self._tools.get(chunk["toolCallId"]):
            _forget_result(part)
            part.update(state="output-available", output=codec.sound(chunk.get("output")))
            _copy(chunk, part, "preliminary")

    def _output_error(self, chunk: Chunk) -> None:
        if part := self._tools.get(chunk["toolCallId"]):
            _forget_result(part)
            part.update(state="output-error", errorText=codec.sound(chunk["errorText"]))

    def _output_denied(self, chunk: Chunk) -> None:
        if (part := self._tools.get(chunk["toolCallId"])) and not is_settled(part):
            _forget_result(part)
            part["state"] = "output-denied"

    def _approval_request(self, chunk: Chunk) -> None:
        part = self._tools.get(chunk["toolCallId"])
        if part is not None and part["state"] in {"input-streaming", "input-available"}:
            part.update(state="approval-requested", approval={"id": chunk["approvalId"]})

    def _data(self, chunk: Chunk) -> None:
        identifier = chunk.get("id")
        for part in self._parts if identifier is not None else ():
            if part["type"] == chunk["type"] and part.get("id") == identifier:
                part["data"] = chunk.get("data")
                return
        part = {"type": chunk["type"], "data": chunk.get("data")}
        _copy(chunk, part, "id")
        self._parts.append(part)

    def _add_tool(self, chunk: Chunk, state: str) -> Part:
        part: Part = {
            "type": f"tool-{chunk['toolName']}",
            "toolCallId": chunk["toolCallId"],
            "state": state,
        }
        _tool_extras(chunk, part)
        self._parts.append(part)
        self._tools[chunk["toolCallId"]] = part
        return part

    _HANDLERS: ClassVar[dict[str, Callable[[Any, Chunk], None]]] = {
        "start": _start_message,
        "start-step": _start_step,
        "reset-step": _reset_step,
        "finish": _add_metadata,
        "message-metadata": _add_metadata,
        "text-start": _text_start,
        "text-end": _text_end,
        "reasoning-start": _text_start,
        "reasoning-end": _text_end,
        "tool-input-start": _input_start,
        "tool-input-available": _input_available,
        "tool-input-error": _input_error,
        "tool-output-available": _output_available,
        "tool-output-error": _output_error,
        "tool-output-denied": _output_denied,
        "tool-approval-request": _approval_request,
    }


def _join(part: Part, pieces: list[str]) -> None:
    if pieces:
        # Providers may split an emoji between two deltas, and the model is shown the text in the same turn already.
        part["text"] = codec.sound("".join([part["text"], *pieces]))
        pieces.clear()


def _finish(part: Part, pieces: list[str]) -> None:
    _join(part, pieces)
    part["state"] = "done"


def _forget_result(part: Part) -> None:
    for key in ("output", "preliminary", "errorText"):
        part.pop(key, None)


def _copy(chunk: Chunk, part: Part, *keys: str) -> None:
    for key in keys:
        if key in chunk:
            part[key] = chunk[key]


def _tool_extras(chunk: Chunk, part: Part) -> None:
    _copy(chunk, part, "title", "toolMetadata", "providerExecuted")
    if "providerMetadata" in chunk:
        part["callProviderMetadata"] = chunk["providerMetadata"]


def _as_object(value: Any) -> dict[str, Any]:
    if isinstance(value, str):
        try:
            value = codec.decode(value)
        except codec.DecodeError:
            return {}
    return cast("dict[str, Any]", value) if isinstance(value, dict) else {}
