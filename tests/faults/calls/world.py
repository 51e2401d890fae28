"""The agents: their models call what the plan says, their tools keep what ran."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Iterator
from typing import Any

from perdure import Think, Tool, ToolContext, callable, client_tool, tool
from perdure.testing import Gate, ScriptedModel, call, pause, say
from perdure.testing.moves import Move
from tests.faults.calls.plans import Step
from tests.faults.fuzz.world import Mischief

__all__ = ["GATED", "KINDS", "World", "worlds"]

worlds: dict[str, World] = {}
"""By the name of the agent."""

ENOUGH = 60
"""Steps that a model has beside those of the plan."""

GATED = frozenset({"pay", "seal", "maybe"})
"""Tools that need approval, or may."""
WAITING = GATED | {"place", "where"}
"""Those whose calls somebody answers."""


class World:
    """One agent's model, and what its tools did."""

    def __init__(self, steps: tuple[Step, ...]) -> None:
        self.ran: Counter[int] = Counter()
        """How often each call ran that needed approval, by its number."""
        self.ran_as: dict[int, str] = {}
        """Under which id."""
        self._numbers = itertools.count(1)
        self._waiting: list[Gate] = []
        self._calm = False
        self.models = [ScriptedModel([*(list(self._moves(step)) for step in steps), *[[say("done")]] * ENOUGH])]
        """The one that answers now is the last."""

    def _moves(self, step: Step) -> Iterator[Move]:
        yield say("Well. ")
        for place, name in enumerate(step.calls):
            number = next(self._numbers)
            yield call(name, {"number": number}, id=f"same-{place}" if step.repeats else f"k{number}")
        if step.waits:
            yield pause(_Door(self))

    async def waits(self) -> None:
        """Until it is let go."""
        if not self._calm:
            gate = Gate()
            self._waiting.append(gate)
            await gate.passed()

    def let_go(self) -> None:
        """Whatever waits goes on."""
        for gate in self._waiting:
            gate.open()
        self._waiting.clear()

    def calm_down(self) -> None:
        """From now on nothing waits, and the model calls nothing any more."""
        self._calm = True
        self.let_go()
        self.models.append(ScriptedModel([[say("done")]] * ENOUGH))

    def runs(self, number: int, context: ToolContext) -> None:
        """A call that needed approval runs."""
        self.ran[number] += 1
        self.ran_as[number] = context.tool_call_id


class _Door(Gate):
    """Where a step of the plan waits."""

    def __init__(self, world: World) -> None:
        super().__init__()
        self._world = world

    async def passed(self) -> None:
        await self._world.waits()


class Calls(Think):
    """Calls tools of all kinds."""

    max_steps = 4

    @property
    def world(self) -> World:
        return worlds[self.name]

    def get_model(self) -> ScriptedModel:
        return self.world.models[-1]

    def get_tools(self) -> list[Tool]:
        world = self.world

        @tool(needs_approval=True)
        async def pay(number: int, context: ToolContext) -> str:
            """Pay."""
            world.runs(number, context)
            return f"paid {number}"

        @tool(needs_approval=lambda number: number % 2 == 0)
        async def maybe(number: int, context: ToolContext) -> str:
            """Pay, sometimes."""
            if number % 2 == 0:
                world.runs(number, context)
            await world.waits()
            return f"paid {number}"

        @tool(needs_approval=True)
        async def seal(number: int, context: ToolContext) -> None:
            """Fail."""
            world.runs(number, context)
            raise Mischief("It is broken.")

        @tool
        async def echo(number: int) -> int:
            """Give it back."""
            return number

        @tool
        async def slow(number: int) -> int:
            """Give it back, later."""
            await world.waits()
            return number

        @tool
        async def fails(number: int) -> None:
            """Fail."""
            raise Mischief("It is broken.")

        place = client_tool("place", schema={"type": "object"})
        return [pay, maybe, seal, echo, slow, fails, place]

    @callable
    async def act(self, what: str) -> Any:
        """What the server's own code does."""
        pending = [each.tool_call_id for each in self.pending_approvals()]
        match what:
            case "approve" if pending:
                await self.approve(pending[-1])
                return pending[-1]
            case "approve later" if pending:
                await self.approve(pending[0], go_on=False)
                return pending[0]
            case "reject" if pending:
                await self.reject(pending[0], "No.")
            case "note":
                await self.add_messages("A note. " + "x" * 400)
            case "elsewhere" if self.messages:
                await self.add_messages("Another way.", parent=self.messages[0]["id"])
            case "settle" if self.messages and self.messages[-1]["role"] == "assistant":
                await self._settle(self.messages[-1])
            case "continue":
                await self.continue_last_turn()
            case "say":
                await self.save_messages("From the server.")
            case _:
                pass

    async def _settle(self, message: Any) -> None:
        """Answer the first open call of a message by replacing it."""
        parts = [dict(part) for part in message["parts"]]
        for part in parts:
            if part.get("state") in {"input-available", "approval-requested"}:
                part.update(state="output-available", output="by code")
                break
        await self.add_messages({**message, "parts": parts}, mode="upsert")


class Small(Calls):
    """Holds little of its conversation in memory."""

    hydration_byte_budget = 1_000


class Latest(Calls):
    """Answers only the last of several messages; nobody is asked for long."""

    message_concurrency = "latest"
    approval_ttl = 200


KINDS = [Calls, Small, Latest]
