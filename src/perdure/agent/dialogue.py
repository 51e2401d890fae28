"""The conversation of one turn as it grows: what goes out to the sink, and what the model is shown of it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from perdure.agent.job import Job, Plan
from perdure.chat.builder import MessageBuilder
from perdure.models.contract import Chunk, HistoryMessage
from perdure.tools.names import ToolNames

__all__ = ["Dialogue", "Sink"]


class Sink(Protocol):
    """Where the chunks of a turn go."""

    builder: MessageBuilder
    """The answer so far."""

    def emit(self, chunk: Chunk) -> None:
        """Take one chunk, in order."""
        ...

    async def durable(self) -> None:
        """Wait until every chunk so far is stored."""
        ...


class Dialogue:
    """What was said before the turn, and the answer so far."""

    def __init__(self, job: Job, sink: Sink) -> None:
        self.names = ToolNames(job.plan.tools)
        """What the model calls the tools of the turn."""
        self._before = job.history
        self._base = job.history if job.instead is None else job.instead
        self._base_shown = self.names.history(self._base)
        self._sink = sink
        # Reasoning that people are not shown must still go back to the model: some refuse a step without it.
        self._complete = sink.builder if job.send_reasoning else _copy(sink.builder)

    @property
    def builder(self) -> MessageBuilder:
        """The answer as people see it."""
        return self._sink.builder

    def emit(self, chunk: Chunk) -> None:
        """A chunk of the answer."""
        self._sink.emit(chunk)
        if self._complete is not self._sink.builder:
            self._complete.apply(chunk)

    def keep(self, chunk: Chunk) -> None:
        """A chunk that people are not shown."""
        self._complete.apply(chunk)

    async def durable(self) -> None:
        """Wait until every chunk so far is stored."""
        await self._sink.durable()

    def history(self) -> Sequence[HistoryMessage]:
        """The conversation with the answer so far."""
        return [*self._before, *self._answer()]

    def base(self) -> Sequence[HistoryMessage]:
        """The same with what the model is shown instead of the conversation, if it is."""
        return [*self._base, *self._answer()]

    def shown(self, plan: Plan) -> Sequence[HistoryMessage]:
        """What the model is shown, under the names that it knows."""
        if plan.messages is not None:
            return self.names.history(plan.messages)
        return [*self._base_shown, *self.names.history(self._answer())]

    def is_taken(self, call_id: str, plan: Plan) -> bool:
        """Whether a tool call of the conversation, or of what the model is shown instead, has this id."""
        if self._complete.tool_part(call_id) is not None:
            return True
        shown = self._base if plan.messages is None else plan.messages
        known = (self._before,) if shown is self._before else (self._before, shown)
        return any(call_id in entry.calls for entries in known for entry in entries)

    def _answer(self) -> Sequence[HistoryMessage]:
        return [HistoryMessage.of(self._complete.message())] if self._complete.has_content else []


def _copy(builder: MessageBuilder) -> MessageBuilder:
    return MessageBuilder.going_on(builder.message())
