"""The conversation of one turn as it grows: what goes out to the sink, and what the model is shown of it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, Protocol

from perdure.agent.job import Job, Plan
from perdure.agent.tool_runner import Call
from perdure.chat.builder import MessageBuilder
from perdure.models.contract import Chunk, HistoryMessage
from perdure.protocol.messages import Part, UIMessage, is_tool_part
from perdure.tools.names import ToolNames

__all__ = ["Dialogue", "Runs", "Sink"]

Runs = Literal["server", "client"]
"""Where a tool runs."""


_GO_ON = HistoryMessage.of(
    {
        "id": "",
        "role": "user",
        "parts": [
            {"type": "text", "text": "Go on with your last answer exactly where it stopped. Repeat nothing of it."}
        ],
    }
)
"""Said to the model for nobody else to hear when it is to go on in the middle of an answer."""


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

    def wait_for(self, call: Call, runs: Runs, approval: str | None) -> None:
        """A call waits for somebody: for a decision, if there is an ``approval`` id, else for its result. The chunks
        that show it went out before."""
        ...

    async def begin(self, calls: Sequence[str]) -> Sequence[str]:
        """Approved calls are about to run. Gives those that may; returns when that is stored."""
        ...


class Dialogue:
    """What was said before the turn, and the answer so far."""

    def __init__(self, job: Job, sink: Sink) -> None:
        self.names = ToolNames(job.plan.tools)
        """What the model calls the tools of the turn."""
        self.waits = False
        """Whether a call waits for somebody: the turn ends with its step."""
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

    def wait_for(self, call: Call, runs: Runs, approval: str | None = None) -> None:
        """A call waits for somebody (see :meth:`Sink.wait_for`)."""
        if approval is not None:
            self.emit({"type": "tool-approval-request", "approvalId": approval, "toolCallId": call.id})
        self._sink.wait_for(call, runs, approval)
        self.waits = True

    async def begin(self, calls: Sequence[Call]) -> list[Call]:
        """Approved calls are about to run. Gives those that may; returns when that is stored."""
        begun = await self._sink.begin([call.id for call in calls])
        return [call for call in calls if call.id in begun]

    def history(self) -> Sequence[HistoryMessage]:
        """The conversation with the answer so far."""
        return [*self._before, *self._answer()]

    def base(self) -> Sequence[HistoryMessage]:
        """The same with what the model is shown instead of the conversation, if it is."""
        return [*self._base, *self._answer()]

    def shown(self, plan: Plan) -> Sequence[HistoryMessage]:
        """What the model is shown, under the names that it knows."""
        if plan.messages is not None:
            shown = self.names.history(plan.messages)
        else:
            shown = [*self._base_shown, *self.names.history(self._answer())]
        return [*shown, _GO_ON] if shown and _ends_in_words(shown[-1].message) else shown

    def is_taken(self, call_id: str, plan: Plan) -> bool:
        """Whether a tool call of the conversation, or of what the model is shown instead, has this id."""
        if self._complete.tool_part(call_id) is not None:
            return True
        shown = self._base if plan.messages is None else plan.messages
        known = (self._before,) if shown is self._before else (self._before, shown)
        return any(call_id in entry.calls for entries in known for entry in entries)

    def _answer(self) -> Sequence[HistoryMessage]:
        return [HistoryMessage.of(self._complete.message())] if self._complete.has_content else []


def _ends_in_words(message: UIMessage) -> bool:
    """Whether what the model is shown would end with its own words: several providers refuse that."""
    if message["role"] != "assistant":
        return False
    last = next((part for part in reversed(message["parts"]) if not _is_silent(part)), None)
    return last is not None and (not is_tool_part(last) or bool(last.get("providerExecuted")))


def _is_silent(part: Part) -> bool:
    return part["type"] == "step-start" or part["type"].startswith("data-")


def _copy(builder: MessageBuilder) -> MessageBuilder:
    return MessageBuilder.going_on(builder.message())
