"""A model that answers what a test wrote down, one scripted step per request, and records what it was asked.

Imports the model contract, ``protocol`` and the moves beside it.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Iterable, Mapping, Sequence
from contextlib import aclosing
from typing import Any, Literal

import msgspec

from perdure.models.contract import ChatModel, Chunk, Finish, ModelEvent, ModelRequest, Usage
from perdure.protocol import codec
from perdure.protocol.messages import UIMessage
from perdure.testing.moves import Call, End, Fail, Gate, Move, Pause, Raw, Run

__all__ = ["Gate", "RecordedRequest", "ScriptedModel", "call", "chunk", "fail", "finish", "pause", "say", "think"]


def say(*deltas: str) -> Move:
    """Text, one delta for each argument. Texts that follow each other, or a pause, are one part."""
    return Run("text", deltas)


def think(*deltas: str) -> Move:
    """Reasoning, likewise."""
    return Run("reasoning", deltas)


def call(name: str, input: Mapping[str, Any] | None = None, *, id: str | None = None, raw: str | None = None) -> Move:
    """A call of the tool ``name``.

    Args:
        name: Any name, also of no tool.
        input: Its arguments; none by default.
        id: ``call-1``, ``call-2``, … in the order of the model's calls, when not given.
        raw: Instead of ``input``: text that is no JSON object, as a careless model writes it.
    """
    return Call(name, dict(input or {}), id, raw)


def chunk(chunk: Chunk) -> Move:
    """Any chunk, exactly as given."""
    return Raw(chunk)


def pause(gate: Gate) -> Move:
    """Waits until the test opens ``gate``."""
    return Pause(gate)


def fail(error: BaseException) -> Move:
    """Raises ``error``, usually a :class:`~perdure.errors.ModelError`."""
    return Fail(error)


def finish(reason: str = "stop", usage: Usage | None = None) -> Move:
    """Finishes with this reason and usage, instead of ``tool-calls`` after a call and ``stop`` otherwise."""
    return End(reason, usage or Usage())


class RecordedRequest(msgspec.Struct):
    """What the model was shown for one step, as it was at that moment."""

    system: str
    messages: list[UIMessage]
    tools: list[str]
    """Names, in order."""
    settings: dict[str, Any]
    outcome: Literal["open", "finished", "failed", "closed"] = "open"
    """``open`` while it streams; ``closed`` when the caller did not want the rest, as after a stop."""

    @classmethod
    def of(cls, request: ModelRequest) -> RecordedRequest:
        """A copy of ``request``."""
        messages = [codec.decode(item.text) for item in request.history]
        return cls(request.system, messages, [spec.name for spec in request.tools], dict(request.settings))


class ScriptedModel(ChatModel):
    """Answers each request with the next step of a script.

    ::

        model = ScriptedModel([call("add", {"a": 1, "b": 2}, id="c1"), [think("Hm."), say("Three", ".")]])
        ...
        model.assert_done()
        assert model.requests[1].messages[-1]["parts"][-1]["output"] == {"sum": 3}
    """

    def __init__(self, steps: Iterable[Move | Sequence[Move]], *, name: str = "scripted") -> None:
        self.name = name
        self.requests: list[RecordedRequest] = []
        """What the model was asked, in order."""
        self.unexpected: list[RecordedRequest] = []
        """Those for which there was no step."""
        self._steps = [[step] if isinstance(step, Move) else list(step) for step in steps]
        self._calls = 0

    async def stream(self, request: ModelRequest) -> AsyncGenerator[ModelEvent, None]:
        """Plays the next step.

        Raises:
            AssertionError: there is none left.
        """
        record = RecordedRequest.of(request)
        self.requests.append(record)
        if len(self.requests) > len(self._steps):
            self.unexpected.append(record)
            record.outcome = "failed"
            raise AssertionError(self._excess())
        try:
            async with aclosing(self._play(self._steps[len(self.requests) - 1])) as events:
                async for event in events:
                    if isinstance(event, Finish):
                        record.outcome = "finished"
                    yield event
        except Exception:
            record.outcome = "failed"
            raise
        finally:
            if record.outcome == "open":
                record.outcome = "closed"

    def assert_done(self) -> None:
        """Checks that every step was asked for, and nothing more.

        Raises:
            AssertionError: otherwise.
        """
        if self.unexpected:
            raise AssertionError(self._excess())
        left = len(self._steps) - len(self.requests)
        if left:
            raise AssertionError(f"{self.name}: {left} of {len(self._steps)} scripted steps were not asked for")

    def _excess(self) -> str:
        shown = codec.encode_text(self.requests[-1].messages[-1:])[:500]
        return (
            f"{self.name}: request {len(self.requests)} came, but only {len(self._steps)} steps are scripted; "
            f"its last message was {shown}"
        )

    async def _play(self, moves: list[Move]) -> AsyncGenerator[ModelEvent, None]:
        end = End("tool-calls" if any(isinstance(move, Call) for move in moves) else "stop", Usage())
        part = _Part()
        for move in moves:
            match move:
                case Pause(gate):
                    await gate.passed()
                case Fail(error):
                    raise error
                case End():
                    end = move
                case Run(kind, deltas):
                    for event in part.enter(kind):
                        yield event
                    for delta in deltas:
                        yield {"type": f"{kind}-delta", "id": part.id, "delta": delta}
                case Call() | Raw():
                    for event in part.leave():
                        yield event
                    for event in self._call(move) if isinstance(move, Call) else (move.chunk,):
                        yield event
        for event in part.leave():
            yield event
        yield Finish(end.reason, end.usage)

    def _call(self, move: Call) -> Iterable[Chunk]:
        self._calls += 1
        return move.chunks(move.id or f"call-{self._calls}")


class _Part:
    """The text or reasoning part that is open."""

    def __init__(self) -> None:
        self._kind: str | None = None
        self._count = 0

    @property
    def id(self) -> str:
        return str(self._count)

    def enter(self, kind: str) -> Iterable[Chunk]:
        if kind == self._kind:
            return
        yield from self.leave()
        self._kind = kind
        self._count += 1
        yield {"type": f"{kind}-start", "id": self.id}

    def leave(self) -> Iterable[Chunk]:
        if self._kind is not None:
            yield {"type": f"{self._kind}-end", "id": self.id}
            self._kind = None
