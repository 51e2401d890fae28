"""A sink that records what it is told, and jobs for the loop."""

import asyncio
import itertools
from collections.abc import Sequence
from typing import Any

from perdure import ChatModel, Tool
from perdure.agent.job import Job, Plan
from perdure.chat.builder import MessageBuilder
from perdure.models.contract import HistoryMessage
from perdure.tools import merge

__all__ = ["Chunk", "Recorder", "job"]

Chunk = dict[str, Any]


class Recorder:
    """Keeps every chunk, and ``"durable"`` for every time that the loop waited until all is stored."""

    def __init__(self) -> None:
        self.builder = MessageBuilder("a1")
        self.log: list[Chunk | str] = []
        self.stored = asyncio.Event()
        """Cleared by a test that wants storing to take its time."""
        self.stored.set()
        self._changed = asyncio.Event()
        self.waiting: list[tuple[str, str, str | None]] = []
        """Calls that wait for somebody: id, where the tool runs, id of the question."""
        self.begun: list[list[str]] = []
        """Approved calls that were about to run."""

    @property
    def chunks(self) -> list[Chunk]:
        return [entry for entry in self.log if isinstance(entry, dict)]

    @property
    def types(self) -> list[str]:
        """Types of the chunks, and ``durable``."""
        return [entry if isinstance(entry, str) else entry["type"] for entry in self.log]

    def emit(self, chunk: Chunk) -> None:
        self.builder.apply(chunk)
        self.log.append(chunk)
        self._changed.set()

    async def durable(self) -> None:
        self.log.append("durable")
        self._changed.set()
        await self.stored.wait()

    def wait_for(self, call: Any, runs: str, approval: str | None) -> None:
        self.waiting.append((call.id, runs, approval))

    async def begin(self, calls: Sequence[str]) -> Sequence[str]:
        self.begun.append(list(calls))
        return calls

    async def seen(self, entry: str) -> None:
        """Returns once a chunk of this type, or ``durable``, was recorded."""
        while entry not in self.types:
            self._changed.clear()
            await self._changed.wait()


def job(
    model: ChatModel, *tools: Tool, max_steps: int = 10, system: str = "Be brief.", agent: Any = None, **options: Any
) -> Job:
    """A job that answers one user message."""
    ids = itertools.count(1)
    question: Sequence[HistoryMessage] = [
        HistoryMessage.of({"id": "u1", "role": "user", "parts": [{"type": "text", "text": "hi"}]})
    ]
    return Job(
        plan=Plan(model=model, system=system, tools=merge(tools), settings={}),
        tools=merge(tools),
        history=question,
        new_id=lambda: f"new-{next(ids)}",
        max_steps=max_steps,
        agent=agent,
        turn_id="R1",
        **options,
    )
