"""An app whose disk can be filled from outside: the system refuses to let its files grow.

The last user message says how many deltas its model gives before and after it waits for ``go``.
"""

from __future__ import annotations

import asyncio
import resource
from collections.abc import AsyncGenerator

from perdure import App, ChatModel, Finish, ModelRequest, Think, callable
from perdure.models.contract import ModelEvent
from perdure.protocol.messages import text_of

__all__ = ["app"]

GO = asyncio.Event()


class Actor(ChatModel):
    name = "actor"

    async def stream(self, request: ModelRequest) -> AsyncGenerator[ModelEvent, None]:
        before, after = (int(word) for word in text_of(request.history[-1].message).split())
        yield {"type": "text-start", "id": "0"}
        for number in range(before):
            yield {"type": "text-delta", "id": "0", "delta": f"{number} "}
        await GO.wait()
        for number in range(after):
            yield {"type": "text-delta", "id": "0", "delta": f"{before + number} "}
        yield {"type": "text-end", "id": "0"}
        yield Finish("stop")


class Agent(Think):
    model = Actor()

    @callable
    def go(self) -> None:
        GO.set()

    @callable
    def fill(self) -> None:
        """From now on no file may be written beyond its first bytes."""
        resource.setrlimit(resource.RLIMIT_FSIZE, (100, resource.RLIM_INFINITY))

    @callable
    def free(self) -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))

    @callable
    def ping(self) -> str:
        return "pong"

    @callable
    def remember(self, value: str) -> str:
        self.set_state(value)
        return value


app = App(Agent)
