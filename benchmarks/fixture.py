"""The agents that benchmarks and the clients' conformance run talk to.

``perdure serve benchmarks.fixture:app --port N --data FOLDER``; ``MOCK_OPENAI`` names an OpenAI-compatible server for
the agent that answers over HTTP (default ``http://127.0.0.1:8790/v1``).
"""

import asyncio
import os

from benchmarks.mock_model import MockModel
from perdure import App, Think, openai_compatible, tool


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


class BenchAgent(Think):
    """Answers from memory."""

    model = MockModel()
    system_prompt = "You are a deterministic benchmark agent."
    max_steps = 64

    def get_tools(self):
        return [add, slow, boom]


class BenchHttpAgent(BenchAgent):
    """Answers through an OpenAI-compatible server."""

    model = openai_compatible("mock-model", os.environ.get("MOCK_OPENAI", "http://127.0.0.1:8790/v1"))


app = App(BenchAgent, BenchHttpAgent)
