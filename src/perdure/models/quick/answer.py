"""One streamed chat completion as UI message chunks. No I/O. Needs the ``openai`` extra."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

from perdure.models.bridge.endings import reason_of, refusal_chunks
from perdure.models.contract import Chunk
from perdure.models.quick.calls import Calls
from perdure.models.quick.runs import Manner, Runs
from perdure.models.quick.sources import citations_in, source_chunks
from perdure.models.quick.wire import WireChunk, WireDelta, text_of

__all__ = ["Answer"]

_REASONS = {
    "stop": "stop", "length": "length", "tool_calls": "tool_call", "content_filter": "content_filter",
    "function_call": "tool_call",
}  # fmt: skip
"""pydantic-ai's names for why a model stopped."""


class Answer:
    """What one answer holds: fed chunk by chunk, then finished."""

    def __init__(self, manner: Manner, is_taken: Callable[[str], bool], new_id: Callable[[], str]) -> None:
        """Nothing came yet.

        Args:
            manner: how the model writes.
            is_taken: whether a tool call of the conversation has this id already.
            new_id: makes ids for calls that need one, and for sources.
        """
        self.begun = False
        """Whether anything came."""
        self.usages: list[dict[str, Any]] = []
        """What servers say of tokens, in the order in which it came."""
        self.model = ""
        """The model, as the server calls it."""
        self._fields = manner.reasoning_fields
        self._provider = manner.provider
        self._new_id = new_id
        self._runs = Runs(manner)
        self._calls = Calls(manner.provider, is_taken, new_id, restores=manner.restores)
        self._reason: Any = None
        self._refusal: list[str] = []
        self._annotations: list[Any] = []

    def take(self, chunk: WireChunk) -> list[Chunk]:
        """The chunks that ``chunk`` adds; mostly one."""
        self.begun = True
        usage: Any = chunk.usage
        if usage is not None and isinstance(usage, dict):
            self.usages.append(cast("dict[str, Any]", usage))
        if chunk.model:
            self.model = chunk.model
        if not chunk.choices:
            return []
        choice = chunk.choices[0]
        self._reason = choice.finish_reason or self._reason
        return [] if choice.delta is None else self._take(choice.delta)

    def finish(self) -> list[Chunk]:
        """The chunks that are due when the model has stopped: ends, tool inputs, sources."""
        cited = citations_in(self._annotations) if self._annotations and self._runs.is_whole else []
        details = {"citations": [citation.model_dump(warnings=False) for citation in cited]}
        return [
            *self._runs.end({self._provider: {"details": details}} if cited else None),
            *refusal_chunks("".join(self._refusal)),
            *self._calls.finish(),
            *source_chunks(cited, self._new_id),
        ]

    @property
    def reason(self) -> str:
        """The AI SDK's name for why the model stopped."""
        if self._refusal:
            return reason_of("content_filter", None, called=self._calls.any)
        known = _REASONS.get(self._reason) if self._reason else "stop"
        return reason_of(known, self._reason, called=self._calls.any)

    def _take(self, delta: WireDelta) -> list[Chunk]:
        if delta.refusal:
            self._refusal.append(str(delta.refusal))
            return []
        chunks: list[Chunk] = []
        for field in self._fields:
            reasoning = getattr(delta, field)
            if reasoning and isinstance(reasoning, str):
                chunks = self._runs.reasoning(field, reasoning)
                break
        if delta.content and (text := text_of(delta.content)):
            chunks = [*chunks, *self._runs.text(text)] if chunks else self._runs.text(text)
        annotations: Any = delta.annotations
        if annotations and isinstance(annotations, list):
            self._annotations += cast("list[Any]", annotations)
        for piece in delta.tool_calls or ():
            called = self._calls.take(piece)
            if called and called[0]["type"] == "tool-input-start":
                chunks = [*chunks, *self._runs.interrupt()]
            chunks = [*chunks, *called]
        return chunks
