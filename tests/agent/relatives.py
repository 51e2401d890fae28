"""A parent and children with a little of everything."""

import asyncio
from collections.abc import AsyncGenerator, Sequence
from typing import Any

from perdure import Agent, current_connection
from perdure.testing import Gate
from tests.support import Doing

__all__ = ["Child", "Deleting", "Other", "Parent"]


class Parent(Doing):
    """A parent that does what the tests say."""

    def on_start(self) -> None:
        self.notes: list[str] = []

    async def note(self, text: str) -> int:
        self.notes.append(text)
        return len(self.notes)


class Child(Doing):
    """A child with a little of everything."""

    initial_state = {"title": "new"}
    colour = "red"

    def on_start(self) -> None:
        self.calls = 0
        self.closed: list[str] = []

    async def rename(self, title: str, *, twice: bool = False) -> str:
        self.calls += 1
        self.set_state({"title": title * 2 if twice else title})
        return self.state["title"]

    def title(self) -> str:
        return self.state["title"]

    def count(self) -> int:
        self.calls += 1
        return self.calls

    async def fail(self, error: Exception) -> None:
        raise error

    async def same(self, value: Any) -> Any:
        return value

    async def me(self) -> "Child":
        return self

    async def wait(self, gate: Gate) -> str:
        try:
            await gate.passed()
        except asyncio.CancelledError:
            self.closed.append("wait")
            raise
        return "done"

    async def numbers(self, upto: int, gate: Gate | None = None) -> AsyncGenerator[int, None]:
        try:
            for number in range(upto):
                if number == 2 and gate is not None:
                    await gate.passed()
                yield number
        finally:
            self.closed.append("numbers")

    async def raising(self) -> AsyncGenerator[int, None]:
        yield 1
        raise KeyError("two")

    async def closings(self) -> list[str]:
        return self.closed

    async def connection(self) -> Any:
        return current_connection.get()

    async def tell_parent(self, text: str) -> int:
        return await (await self.parent_agent(Parent)).note(text)

    async def line(self) -> Sequence[tuple[str, str]]:
        return self.parent_path

    async def has_parent(self, kind: type[Agent]) -> str:
        return (await self.parent_agent(kind)).name

    async def delete_me(self) -> None:
        await (await self.parent_agent(Deleting)).delete(self.name)

    def _private(self) -> None: ...


class Other(Agent):
    pass


class Deleting(Doing):
    async def delete(self, name: str) -> None:
        await self.delete_sub_agent(Child, name)
