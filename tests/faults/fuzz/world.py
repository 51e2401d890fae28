"""The agents that the fuzz test talks to: their models and tools do what the plan says, good or bad."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator
from typing import Any

from perdure import (
    ChatModel,
    Debounce,
    Finish,
    ModelRequest,
    ModelUnreachable,
    ReplyStream,
    Think,
    Tool,
    callable,
    client_tool,
    tool,
)
from perdure.models.contract import ModelEvent
from perdure.testing import Gate, RecordedRequest
from tests.faults.fuzz.plans import Mood

__all__ = ["KINDS", "Child", "Fuzz", "MadeUp", "Mischief", "Small", "World", "worlds"]

worlds: dict[str, World] = {}
"""By the name of the root agent."""


class Mischief(Exception):
    """Raised by the application on purpose: it may stand in the log."""


class MadeUp(asyncio.CancelledError):
    """A cancellation that nobody asked for, as a client library raises it that was cancelled inside. Likewise."""


class World:
    """One family of agents, and what its models still have in mind."""

    def __init__(self, moods: list[Mood]) -> None:
        self.requests: list[RecordedRequest] = []
        self.model = Moody(self)
        self._moods = list(reversed(moods))
        self._gates: list[Gate] = []
        self.calm = False

    def mood(self) -> Mood:
        """What comes next."""
        return self._moods.pop() if self._moods and not self.calm else Mood("talk", 2)

    async def waits(self) -> None:
        """Until it is let go."""
        gate = Gate()
        if self.calm:
            return
        self._gates.append(gate)
        await gate.passed()

    def let_go(self) -> None:
        """Whatever waits goes on."""
        for gate in self._gates:
            gate.open()
        self._gates.clear()

    def calm_down(self) -> None:
        """From now on nothing bad happens, and nothing waits."""
        self.calm = True
        self.let_go()


class Moody(ChatModel):
    """Answers in one mood after the other."""

    name = "moody"

    def __init__(self, world: World) -> None:
        self._world = world

    async def stream(self, request: ModelRequest) -> AsyncGenerator[ModelEvent, None]:
        self._world.requests.append(RecordedRequest.of(request))
        mood = self._world.mood()
        if mood.kind == "silent":
            yield Finish("stop")
            return
        if mood.kind == "odd":
            for chunk in mood.chunks:
                yield chunk
        if mood.kind == "think":
            yield {"type": "reasoning-start", "id": "r"}
            yield {"type": "reasoning-delta", "id": "r", "delta": "Hm."}
            yield {"type": "reasoning-end", "id": "r"}
        yield {"type": "text-start", "id": "0"}
        if mood.kind == "large":
            yield {"type": "text-delta", "id": "0", "delta": "x" * mood.number}
        for number in range(mood.number if mood.kind != "large" else 1):
            yield {"type": "text-delta", "id": "0", "delta": f"{number} "}
            if mood.kind == "drip":
                await asyncio.sleep(0)
        await self._turn_bad(mood)
        while mood.kind == "endless" and not self._world.calm:
            yield {"type": "text-delta", "id": "0", "delta": "."}
            await self._world.waits()
        yield {"type": "text-delta", "id": "0", "delta": "done"}
        yield {"type": "text-end", "id": "0"}
        if mood.kind == "breaks off":
            return
        for name, id, given in mood.calls:
            yield {"type": "tool-input-start", "toolCallId": id, "toolName": name}
            yield {"type": "tool-input-available", "toolCallId": id, "toolName": name, "input": given}
        yield Finish("tool-calls" if mood.calls else "stop")

    async def _turn_bad(self, mood: Mood) -> None:
        match mood.kind:
            case "wait":
                await self._world.waits()
            case "fail":
                raise ModelUnreachable("It broke off.")
            case "crash":
                raise Mischief("The model is broken: \ud800")
            case "cancelled":
                raise MadeUp
            case _:
                pass


@tool
async def echo(value: Any = None) -> Any:
    """Give it back."""
    return value


@tool
async def fails() -> None:
    """Fail."""
    raise Mischief("The tool is broken: \ud800")


@tool
async def odd(value: Any = None) -> Any:
    """Give what has no JSON form, or a strange one."""
    return {"text": "\ud800", "number": float("nan"), "object": object() if value else None}


@tool
def threaded(value: Any = None) -> str:
    """Run in a thread."""
    return f"{value!r}"


@tool
async def progress() -> AsyncGenerator[Any]:
    """Show how far it is."""
    yield {"done": 1}
    await asyncio.sleep(0)
    yield {"done": 2}


@tool(needs_approval=True)
async def asks(value: Any = None) -> Any:
    """Run once somebody has said yes."""
    return {"asked": value}


at_page = client_tool("at_page", "The page gives the result.")
asks_page = client_tool("asks_page", "Likewise, once somebody has said yes.", needs_approval=True)


class Fuzz(Think):
    """Talks, calls, fails."""

    initial_state = {"value": 0}
    max_steps = 4

    @property
    def world(self) -> World:
        path = self.parent_path
        return worlds[path[0][1] if path else self.name]

    def get_model(self) -> ChatModel:
        return self.world.model

    def get_tools(self) -> list[Tool]:
        @tool
        async def waits() -> str:
            """Wait."""
            await self.world.waits()
            return "waited"

        return [echo, fails, waits, odd, threaded, progress, asks, at_page, asks_page]

    def validate_state_change(self, state: Any, source: Any) -> None:
        if isinstance(state, list):
            raise Mischief("not a list")

    @callable
    def ping(self) -> str:
        return "pong"

    @callable
    def add(self, a: int, b: int) -> int:
        return a + b

    @callable
    async def boom(self, text: Any = None) -> None:
        raise Mischief(text)

    @callable
    async def count(self, stream: ReplyStream, n: int) -> None:
        for number in range(min(n, 5)):
            stream.send(number)
        stream.end()

    @callable
    async def values(self, *given: Any) -> AsyncGenerator[Any]:
        for value in given:
            yield value
        yield {object(): 1} if len(given) > 2 else float("inf")

    @callable
    def remember(self, value: Any) -> Any:
        self.set_state(value)
        self.configure(value)
        return self.state

    @callable
    async def wait(self) -> None:
        await self.world.waits()

    @callable
    async def say(self, text: str = "Say something.", *rest: Any) -> str:
        return (await self.save_messages(text)).status

    @callable
    async def again(self, *rest: Any) -> str:
        return (await self.continue_last_turn()).status

    @callable
    async def decide(self, yes: Any = True, *rest: Any) -> int:
        """Answer all questions from the server's side."""
        pending = await self.pending_approvals()
        for question in pending:
            await (self.approve(question.tool_call_id) if yes else self.reject(question.tool_call_id, "No."))
        return len(pending)

    @callable
    async def wipe(self) -> None:
        await self.clear_messages()

    @callable
    def stop_all(self) -> None:
        self.cancel_all_chats()

    @callable
    def shout(self, text: Any = "Hey!", *rest: Any) -> None:
        self.broadcast(json.dumps({"type": "shout", "text": text}) if isinstance(text, str) else text)

    @callable
    def hang_up(self, code: int = 4000, *rest: Any) -> None:
        for connection in self.connections[:1]:
            connection.close(code, "Enough.")

    @callable
    async def child_says(self, *rest: Any) -> str:
        child = await self.sub_agent(Child, "a")
        result = await child.chat("Hello", lambda chunk: None)
        return result.status

    @callable
    async def child_stops(self, *rest: Any) -> None:
        await self.abort_sub_agent(Child, "a")

    @callable
    async def child_goes(self, *rest: Any) -> None:
        await self.delete_sub_agent(Child, "a")

    @callable
    async def children(self, *rest: Any) -> int:
        return len(await self.list_sub_agents())


class Child(Fuzz):
    """A sub-agent."""


class Small(Fuzz):
    """Holds little of its conversation in memory."""

    hydration_byte_budget = 2_000


class Latest(Fuzz):
    """Answers the newest question only."""

    message_concurrency = "latest"


class Merge(Fuzz):
    """Answers all questions together."""

    message_concurrency = "merge"


class Drop(Fuzz):
    """Takes no question while it answers one."""

    message_concurrency = "drop"


class Calm(Fuzz):
    """Waits until nobody asks any more."""

    message_concurrency = Debounce(ms=20)


KINDS = (Fuzz, Small, Latest, Merge, Drop, Calm)
"""The classes of roots."""
