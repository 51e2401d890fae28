"""pydantic-ai's stream events to UI message chunks, for one step.

Owns ids within the step, what is dropped, and when a tool call's input is final. Does no I/O.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, cast

from pydantic_ai.messages import (
    Citation,
    FilePart,
    ModelResponseStreamEvent,
    PartDeltaEvent,
    PartEndEvent,
    PartStartEvent,
    TextPart,
    TextPartDelta,
    ThinkingPart,
    ThinkingPartDelta,
    ToolCallPart,
    ToolCallPartDelta,
    WebCitationSource,
)

from perdure.models.bridge.inputs import input_chunk
from perdure.models.bridge.metadata import provider_metadata
from perdure.models.contract import Chunk
from perdure.protocol import codec

__all__ = ["ChunkMapper"]


@dataclass
class _Run:
    """A part of text or reasoning, and the run of chunks that shows it."""

    part: TextPart | ThinkingPart
    kind: str
    id: str | None = None
    """The run that is open; None before the first text and after the end."""
    ended: bool = False
    late_signature: str | None = None
    """A signature that came when the run had ended."""


@dataclass
class _Call:
    part: ToolCallPart[Any]
    id: str
    name: str
    started: bool = False
    text: list[str] = field(default_factory=list[str])
    data: dict[str, Any] | None = None
    """The arguments, from a provider that sends them as an object."""


class ChunkMapper:
    """Maps the events of one step.

    Tool inputs become final at the end of the step only: calls may be streamed interleaved, and providers send deltas
    for a call after the next one has begun.
    """

    def __init__(self, is_taken: Callable[[str], bool], new_id: Callable[[], str]) -> None:
        self._is_taken = is_taken
        """Whether a tool call of the conversation has this id already."""
        self._new_id = new_id
        self._runs: dict[int, _Run] = {}
        self._run_count = 0
        self._calls: dict[int, _Call] = {}
        self._files: dict[int, FilePart] = {}
        self._citations: dict[int, list[Citation]] = {}

    @property
    def called(self) -> bool:
        """Whether the model called a tool."""
        return bool(self._calls)

    def map(self, event: ModelResponseStreamEvent) -> list[Chunk]:
        """The chunks that ``event`` adds; often one, sometimes none."""
        if isinstance(event, PartDeltaEvent):
            delta = event.delta
            if isinstance(delta, TextPartDelta):
                if delta.citations_delta:
                    self._citations[event.index] = delta.citations_delta
                return self._say(event.index, delta.content_delta)
            if isinstance(delta, ThinkingPartDelta):
                return self._think(event.index, delta)
            if isinstance(delta, ToolCallPartDelta):
                return self._continue_call(event.index, delta)
        elif isinstance(event, PartStartEvent):
            return self._start(event.index, event.part)
        elif isinstance(event, PartEndEvent) and isinstance(event.part, (TextPart, ThinkingPart)):
            return self._end(event.index, event.part)
        elif isinstance(event, PartEndEvent) and isinstance(event.part, ToolCallPart) and event.index in self._calls:
            self._calls[event.index].part = event.part
        return []

    def finish(self) -> list[Chunk]:
        """The chunks that are due when the model has stopped: ends, tool inputs, files, sources."""
        chunks: list[Chunk] = []
        for index, run in self._runs.items():
            if run.id is not None or run.late_signature:
                chunks += self._end(index, run.part)
        for call in self._calls.values():
            chunks += _start_of(call)
            chunks.append(_input_of(call))
        chunks += [
            {"type": "file", "url": file.content.data_uri, "mediaType": file.content.media_type}
            for file in self._files.values()
        ]
        return chunks + self._sources()

    def _start(self, index: int, part: object) -> list[Chunk]:
        if isinstance(part, TextPart):
            self._runs[index] = _Run(part, "text")
            if part.citations:
                self._citations[index] = part.citations
            return self._say(index, part.content)
        if isinstance(part, ThinkingPart):
            self._runs[index] = _Run(part, "reasoning")
            return self._say(index, part.content)
        if isinstance(part, ToolCallPart):
            return self._start_call(index, cast("ToolCallPart[Any]", part))
        if isinstance(part, FilePart):
            self._files[index] = part
        return []

    def _say(self, index: int, text: str) -> list[Chunk]:
        if not text:
            return []
        run = self._runs[index]
        if run.id is not None:
            return [{"type": f"{run.kind}-delta", "id": run.id, "delta": text}]
        run.id = self._next_run_id()
        return [
            {"type": f"{run.kind}-start", "id": run.id},
            {"type": f"{run.kind}-delta", "id": run.id, "delta": text},
        ]

    def _think(self, index: int, delta: ThinkingPartDelta) -> list[Chunk]:
        run = self._runs[index]
        if delta.signature_delta and run.ended:
            # The item's signature, after a later part of the item has begun: it goes with the part that is open.
            heirs = [other for other in self._runs.values() if other.id is not None and other.part.id == run.part.id]
            (heirs or [run])[-1].late_signature = delta.signature_delta
        return self._say(index, delta.content_delta or "")

    def _end(self, index: int, part: TextPart | ThinkingPart) -> list[Chunk]:
        run = self._runs[index]
        run.part = part
        run.ended = True
        signature = (part.signature or run.late_signature) if isinstance(part, ThinkingPart) else None
        run.late_signature = None
        metadata = provider_metadata(part, signature=signature)
        chunks: list[Chunk] = []
        if run.id is None:
            # Nothing was said. Reasoning that the provider hides still has to go back to it.
            if not metadata or run.kind == "text" or not (signature or part.provider_details):
                return []
            run.id = self._next_run_id()
            chunks.append({"type": "reasoning-start", "id": run.id})
        end: Chunk = {"type": f"{run.kind}-end", "id": run.id}
        if metadata:
            end["providerMetadata"] = metadata
        run.id = None
        return [*chunks, end]

    def _start_call(self, index: int, part: ToolCallPart[Any]) -> list[Chunk]:
        call = self._calls.get(index)
        if call is None:
            call_id = part.tool_call_id
            if not call_id or self._is_taken(call_id) or any(call_id == other.id for other in self._calls.values()):
                call_id = self._new_id()
            call = self._calls[index] = _Call(part, call_id, part.tool_name)
        call.part, call.name = part, part.tool_name
        call.text.clear()
        call.data = dict(part.args) if isinstance(part.args, dict) else None
        chunks = _start_of(call) if call.name or part.args else []
        if call.data:
            chunks.append(_input_delta(call, codec.encode_text(call.data)))
        elif isinstance(part.args, str) and part.args:
            call.text.append(part.args)
            chunks.append(_input_delta(call, part.args))
        return chunks

    def _continue_call(self, index: int, delta: ToolCallPartDelta) -> list[Chunk]:
        call = self._calls.get(index)
        if call is None:
            return []  # a tool that the provider runs itself
        call.name += delta.tool_name_delta or ""
        if isinstance(delta.args_delta, dict):
            call.data = {**(call.data or {}), **delta.args_delta}
        elif delta.args_delta:
            call.text.append(delta.args_delta)
            return [*_start_of(call), _input_delta(call, delta.args_delta)]
        return []

    def _sources(self) -> list[Chunk]:
        chunks: dict[str, Chunk] = {}
        for source in (s for citations in self._citations.values() for c in citations for s in c.sources):
            if isinstance(source, WebCitationSource):
                chunk: Chunk = {"type": "source-url", "sourceId": self._new_id(), "url": source.url}
                if source.title:
                    chunk["title"] = source.title
                chunks.setdefault(source.url, chunk)
            else:
                title = source.title or source.document_id or "Document"
                chunk = {
                    "type": "source-document",
                    "sourceId": self._new_id(),
                    "mediaType": "text/plain",
                    "title": title,
                }
                chunks.setdefault(title, chunk)
        return list(chunks.values())

    def _next_run_id(self) -> str:
        self._run_count += 1
        return str(self._run_count - 1)


def _start_of(call: _Call) -> list[Chunk]:
    if call.started:
        return []
    call.started = True
    return [{"type": "tool-input-start", "toolCallId": call.id, "toolName": call.name}]


def _input_delta(call: _Call, text: str) -> Chunk:
    return {"type": "tool-input-delta", "toolCallId": call.id, "inputTextDelta": text}


def _input_of(call: _Call) -> Chunk:
    chunk = input_chunk(call.id, call.name, "".join(call.text), call.data)
    if metadata := provider_metadata(call.part):
        chunk["providerMetadata"] = metadata
    return chunk
