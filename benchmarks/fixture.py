"""The agents that benchmarks and the clients' conformance run talk to.

``perdure serve benchmarks.fixture:app --port N --data FOLDER``; ``MOCK_OPENAI`` names an OpenAI-compatible server for
the agent that answers over HTTP (default ``http://127.0.0.1:8790/v1``).
"""

import asyncio
import os

from benchmarks.mock_model import MockModel
from perdure import App, ReplyStream, Think, callable, openai_compatible, tool


@tool
async def add(a: int | float, b: int | float) -> dict[str, int | float]:
    """Add two numbers."""
    return {"sum": a + b}


@tool
async def slow(ms: int | float) -> dict[str, int | float]:
    """Wait."""
    await asyncio.sleep(ms / 1000)
    return {"waited": ms}


@tool
async def boom() -> None:
    """Fail."""
    raise RuntimeError("boom")


@tool(needs_approval=True)
async def danger(target: str) -> dict[str, str]:
    """Destroy something."""
    return {"destroyed": target}


class BenchAgent(Think):
    """Answers from memory."""

    model = MockModel()
    system_prompt = "You are a deterministic benchmark agent."
    max_steps = 64
    initial_state = {"count": 0}

    def get_tools(self):
        return [add, slow, boom, danger]

    @callable
    def ping(self) -> str:
        return "pong"

    @callable
    def sum(self, a: int, b: int) -> int:
        return a + b

    @callable
    def fail(self, message: str) -> None:
        raise RuntimeError(message)

    @callable
    def increment(self, by: int) -> int:
        state = self.state
        state["count"] += by
        self.set_state(state)
        return state["count"]

    @callable
    def overlap(self, strategy: str) -> None:
        self.message_concurrency = strategy  # pyright: ignore[reportAttributeAccessIssue]

    @callable
    def count_to(self, stream: ReplyStream, n: int) -> None:
        for i in range(1, n + 1):
            stream.send(i)
        stream.end(n)


class BenchHttpAgent(BenchAgent):
    """Answers through an OpenAI-compatible server."""

    model = openai_compatible("mock-model", os.environ.get("MOCK_OPENAI", "http://127.0.0.1:8790/v1"))


app = App(BenchAgent, BenchHttpAgent)
