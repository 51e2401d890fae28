"""Sub-agents as the server's own code uses them: made, called, listed, stopped, deleted."""

import asyncio
from collections.abc import AsyncGenerator, Sequence
from pathlib import Path
from typing import Any

import pytest

from perdure import Agent, AgentStopped, BadRequest, ConfigurationError, ReadonlyConnection, current_connection
from perdure.testing import Gate
from tests.requirements.marker import requirement
from tests.support import Doing, ErrorLog, do, serving

pytestmark = pytest.mark.anyio


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


# ── making and calling ──────────────────────────────────────────────


async def test_a_handle_calls_the_childs_methods_and_its_exceptions_come_back_as_they_are(tmp_path: Path) -> None:
    async def script(parent: Parent) -> None:
        child = await parent.sub_agent(Child, "c")
        assert child.name == "c"
        assert await child.rename("x", twice=True) == "xx"
        assert await child.title() == "xx"
        given = {"not": {"json"}}
        assert await child.same(given) is given
        error = LookupError("gone")
        with pytest.raises(LookupError) as caught:
            await child.fail(error)
        assert caught.value is error
        with pytest.raises(TypeError, match="missing 1 required"):
            await child.rename()
        assert [number async for number in child.numbers(3)] == [0, 1, 2]
        values = child.raising()
        assert await anext(values) == 1
        with pytest.raises(KeyError, match="two"):
            await anext(values)

    async with serving(Parent, data=tmp_path, sub_agents=[Child]) as server:
        await do(await server.tab(agent="parent"), script)


async def test_a_handle_has_public_methods_and_nothing_else(tmp_path: Path) -> None:
    async def script(parent: Parent) -> None:
        child: Any = await parent.sub_agent(Child, "c")
        for name in ("_private", "_bound", "__call__", "_live"):
            with pytest.raises(AttributeError, match="not public"):
                getattr(child, name)
        with pytest.raises(AttributeError, match="Child has no method 'renam'"):
            await child.renam("x")
        for name in ("colour", "state", "initial_state"):
            with pytest.raises(AttributeError, match=rf"Child\.{name} is not a method"):
                getattr(child, name)
        with pytest.raises(AttributeError):
            child.colour = "blue"
        assert child == await parent.sub_agent(Child, "c")
        assert len({child, await parent.sub_agent(Child, "c"), await parent.sub_agent(Child, "d")}) == 2
        assert repr(child) == "<handle on Child parent/room/sub/child/c>"

    async with serving(Parent, data=tmp_path, sub_agents=[Child]) as server:
        await do(await server.tab(agent="parent"), script)


async def test_one_name_is_one_agent_however_often_it_is_asked_for(tmp_path: Path) -> None:
    async def script(parent: Parent) -> None:
        handles = await asyncio.gather(*(parent.sub_agent(Child, "c") for _ in range(5)))
        assert sorted(await asyncio.gather(*(handle.count() for handle in handles))) == [1, 2, 3, 4, 5]
        assert await (await parent.sub_agent(Child, "d")).count() == 1

    async with serving(Parent, data=tmp_path, sub_agents=[Child]) as server:
        await do(await server.tab(agent="parent"), script)


async def test_children_exist_once_they_were_asked_for_and_are_listed_in_that_order(tmp_path: Path) -> None:
    async def listed(parent: Parent, kind: type[Agent] | None = None) -> list[tuple[str, str]]:
        return [(child.kind, child.name) for child in await parent.list_sub_agents(kind)]

    async def script(parent: Parent) -> None:
        assert not await parent.has_sub_agent(Child, "z/1")
        assert await listed(parent) == []
        for kind, name in ((Child, "z/1"), (Other, "%"), (Child, "a"), (Parent, "room")):
            await parent.sub_agent(kind, name)
        assert await parent.has_sub_agent(Child, "z/1")
        assert not await parent.has_sub_agent(Other, "z/1")
        assert not await parent.has_sub_agent(Child, "z")
        assert await listed(parent) == [("Child", "z/1"), ("Other", "%"), ("Child", "a"), ("Parent", "room")]
        assert await listed(parent, Child) == [("Child", "z/1"), ("Child", "a")]
        created = [child.created_ms for child in await parent.list_sub_agents()]
        assert created == sorted(created)
        assert created[0] > 1_700_000_000_000

    async def below(parent: Parent) -> None:
        await parent.sub_agent(Child, "deep")
        assert await listed(parent) == [("Child", "deep")]

    async with serving(Parent, data=tmp_path, sub_agents=[Child, Other]) as server:
        tab = await server.tab(agent="parent")
        await do(tab, script)
        await do(await server.tab("room/sub/parent/room", agent="parent"), below)
        assert len(await do(tab, listed)) == 4
    async with serving(Parent, data=tmp_path, sub_agents=[Other]) as server:
        assert await do(await server.tab(agent="parent"), listed) == [("Other", "%"), ("Parent", "room")]


async def test_a_child_that_cannot_be_is_refused(tmp_path: Path) -> None:
    lookalike = type("Child", (Agent,), {})

    async def script(parent: Parent) -> None:
        with pytest.raises(ConfigurationError, match=r"sub_agents=\["):
            await parent.sub_agent(Other, "c")
        with pytest.raises(ConfigurationError, match="not the Child that the app was given"):
            await parent.sub_agent(lookalike, "c")
        for name in ("", "\0", "n" * 513, "\udc00"):
            with pytest.raises(BadRequest):
                await parent.sub_agent(Child, name)
        assert await parent.list_sub_agents() == []

    async def too_deep(parent: Parent) -> None:
        with pytest.raises(BadRequest, match="4 levels"):
            await parent.sub_agent(Child, "c")

    async with serving(Parent, data=tmp_path, sub_agents=[Child]) as server:
        await do(await server.tab(agent="parent"), script)
        await do(await server.tab("room" + "/sub/parent/p" * 4, agent="parent"), too_deep)


async def test_a_child_reaches_its_parent_and_knows_the_way_up(tmp_path: Path) -> None:
    async def script(parent: Parent) -> None:
        child = await parent.sub_agent(Child, "c")
        assert await child.tell_parent("hello") == 1
        assert await child.tell_parent("again") == 2
        assert parent.notes == ["hello", "again"]
        assert await child.line() == (("Parent", "room"),)
        assert await child.has_parent(Agent) == "room"
        with pytest.raises(ConfigurationError, match="is a Parent, not a Other"):
            await child.has_parent(Other)
        assert parent.parent_path == ()
        with pytest.raises(ConfigurationError, match="no sub-agent"):
            await parent.parent_agent(Parent)

    async with serving(Parent, data=tmp_path, sub_agents=[Child, Other]) as server:
        await do(await server.tab(agent="parent"), script)


async def test_a_child_does_not_answer_to_its_callers_connection(tmp_path: Path) -> None:
    class Watched(Parent):
        def is_readonly(self, connection: Any) -> bool:
            return True

    async def script(parent: Watched) -> None:
        child = await parent.sub_agent(Child, "c")
        assert current_connection.get() is not None
        assert await child.connection() is None
        assert await child.rename("x") == "x"
        with pytest.raises(ReadonlyConnection):
            parent.set_state(1)

    async with serving(Watched, data=tmp_path, sub_agents=[Child]) as server:
        await do(await server.tab(agent="watched"), script)


async def test_a_child_that_cannot_start_says_why(tmp_path: Path, log: ErrorLog) -> None:
    class Broken(Agent):
        def on_start(self) -> None:
            raise RuntimeError("no")

    async def script(parent: Parent) -> None:
        with pytest.raises(AgentStopped, match="could not be brought into memory") as caught:
            await parent.sub_agent(Broken, "b")
        assert isinstance(caught.value.__cause__, RuntimeError)
        assert not await parent.has_sub_agent(Broken, "b")
        log.expect("parent/room/sub/broken/b is dropped from memory: no")

    async with serving(Parent, data=tmp_path, sub_agents=[Broken]) as server:
        await do(await server.tab(agent="parent"), script)


# ── leaving a call ──────────────────────────────────────────────────


async def test_whoever_stops_waiting_for_a_call_cancels_it(tmp_path: Path) -> None:
    gate = Gate()

    async def script(parent: Parent) -> None:
        child = await parent.sub_agent(Child, "c")
        waiting = asyncio.create_task(child.wait(gate))
        await gate.reached()
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting
        while not await child.closings():
            pass
        assert await child.closings() == ["wait"]

    async with serving(Parent, data=tmp_path, sub_agents=[Child]) as server:
        await do(await server.tab(agent="parent"), script)


@pytest.mark.parametrize("blocked", [False, True])
async def test_whoever_leaves_an_iteration_ends_the_generator(tmp_path: Path, blocked: bool) -> None:
    gate = Gate()

    async def script(parent: Parent) -> None:
        child = await parent.sub_agent(Child, "c")
        seen: list[int] = []
        values = child.numbers(5, gate if blocked else None)
        async for number in values:
            seen.append(number)
            if number == 1:
                break
        if blocked:
            await gate.reached()
        await values.aclose()
        while not await child.closings():
            pass
        assert seen == [0, 1]
        assert await child.closings() == ["numbers"]

    async with serving(Parent, data=tmp_path, sub_agents=[Child]) as server:
        await do(await server.tab(agent="parent"), script)


async def test_a_generator_is_one_step_ahead_at_most(tmp_path: Path) -> None:
    made: list[int] = []

    class Eager(Agent):
        async def numbers(self) -> AsyncGenerator[int, None]:
            while True:
                made.append(len(made))
                yield made[-1]

        async def beat(self) -> None: ...

    async def script(parent: Parent) -> None:
        child = await parent.sub_agent(Eager, "c")
        values = child.numbers()
        async for number in values:
            for _ in range(10):
                await child.beat()
            assert len(made) <= number + 2
            if number == 3:
                break
        await values.aclose()

    async with serving(Parent, data=tmp_path, sub_agents=[Eager]) as server:
        await do(await server.tab(agent="parent"), script)


# ── stopping and deleting ───────────────────────────────────────────


@requirement("engine:144")
async def test_an_aborted_child_is_gone_from_memory_and_keeps_its_storage(tmp_path: Path) -> None:
    gate = Gate()

    async def script(parent: Parent) -> None:
        child = await parent.sub_agent(Child, "c")
        await child.rename("kept")
        waiting = asyncio.create_task(child.wait(gate))
        await gate.reached()
        old = await child.me()
        await parent.abort_sub_agent(Child, "c")
        with pytest.raises(AgentStopped, match=r"Child\.wait\(\)"):
            await waiting
        assert old.closed == ["wait"]
        old.set_state({"title": "late"})
        assert await parent.has_sub_agent(Child, "c")
        assert await child.title() == "kept"
        assert await child.me() is not old
        assert await child.count() == 1

    async with serving(Parent, data=tmp_path, sub_agents=[Child]) as server:
        await do(await server.tab(agent="parent"), script)


@requirement("engine:144")
async def test_a_deleted_child_leaves_nothing_and_its_handle_does_not_make_it_anew(tmp_path: Path) -> None:
    gate = Gate()

    async def script(parent: Parent) -> None:
        child = await parent.sub_agent(Child, "c")
        await child.rename("lost")
        waiting = asyncio.create_task(child.wait(gate))
        await gate.reached()
        old = await child.me()
        await parent.delete_sub_agent(Child, "c")
        with pytest.raises(AgentStopped, match=r"Child\.wait\(\)"):
            await waiting
        assert not await parent.has_sub_agent(Child, "c")
        with pytest.raises(AgentStopped, match="not there"):
            await child.rename("ghost")
        with pytest.raises(AgentStopped, match="not there"):
            await anext(child.numbers(1))
        old.set_state({"title": "ghost"})
        assert await parent.list_sub_agents() == []
        await parent.delete_sub_agent(Child, "c")
        assert await (await parent.sub_agent(Child, "c")).title() == "new"

    async with serving(Parent, data=tmp_path, sub_agents=[Child]) as server:
        await do(await server.tab(agent="parent"), script)


async def test_deleting_a_child_deletes_those_below_it_in_memory_or_not(tmp_path: Path) -> None:
    async def grow(parent: Parent) -> None:
        for name in ("p", "p2"):
            await parent.sub_agent(Parent, name)

    async def grow_below(parent: Parent) -> None:
        await (await parent.sub_agent(Child, "c")).rename("deep")

    async def delete(parent: Parent) -> None:
        await parent.delete_sub_agent(Parent, "p")
        assert [child.name for child in await parent.list_sub_agents()] == ["p2"]
        await parent.sub_agent(Parent, "p")

    async def look(parent: Parent) -> tuple[bool, int]:
        return await parent.has_sub_agent(Child, "c"), len(await parent.list_sub_agents())

    paths = ["room/sub/parent/p", "room/sub/parent/p2"]
    async with serving(Parent, data=tmp_path, sub_agents=[Child]) as server:
        await do(await server.tab(agent="parent"), grow)
        for path in paths:
            await do(await server.tab(path, agent="parent"), grow_below)
    async with serving(Parent, data=tmp_path, sub_agents=[Child]) as server:
        assert await do(await server.tab(paths[0], agent="parent"), look) == (True, 1)
        await do(await server.tab(agent="parent"), delete)
        assert await do(await server.tab(paths[0], agent="parent"), look) == (False, 0)
        assert await do(await server.tab(paths[1], agent="parent"), look) == (True, 1)


async def test_a_child_may_have_itself_deleted(tmp_path: Path) -> None:
    async def script(parent: Deleting) -> None:
        child = await parent.sub_agent(Child, "c")
        with pytest.raises(AgentStopped):
            await child.delete_me()
        while await parent.list_sub_agents():
            pass
        assert await (await parent.sub_agent(Child, "c")).title() == "new"

    async with serving(Deleting, data=tmp_path, sub_agents=[Child]) as server:
        await do(await server.tab(agent="deleting"), script)


async def test_making_and_deleting_at_once_leaves_a_child_or_none_but_never_half_a_one(tmp_path: Path) -> None:
    async def script(parent: Parent) -> None:
        for _ in range(20):
            child = await parent.sub_agent(Child, "c")
            await child.rename("old")
            _, again = await asyncio.gather(parent.delete_sub_agent(Child, "c"), parent.sub_agent(Child, "c"))
            assert await again.title() == "new"
            assert await parent.has_sub_agent(Child, "c")
            await parent.delete_sub_agent(Child, "c")
            assert await parent.list_sub_agents() == []

    async with serving(Parent, data=tmp_path, sub_agents=[Child]) as server:
        await do(await server.tab(agent="parent"), script)


async def test_cleaning_up_with_a_child_while_being_aborted_does_not_hang(tmp_path: Path) -> None:
    gate = Gate()
    ends: list[str] = []

    class Cleaning(Doing):
        async def work(self) -> None:
            helper = await self.sub_agent(Child, "helper")
            try:
                await gate.passed()
            finally:
                for way in (helper.count, lambda: self.sub_agent(Child, "late")):
                    try:
                        await way()
                    except AgentStopped as error:
                        ends.append(type(error).__name__)
                await self.delete_sub_agent(Child, "helper")
                ends.append("deleted")

    async def script(parent: Parent) -> None:
        cleaning = await parent.sub_agent(Cleaning, "c")
        working = asyncio.create_task(cleaning.work())
        await gate.reached()
        await parent.abort_sub_agent(Cleaning, "c")
        with pytest.raises(AgentStopped):
            await working
        assert ends == ["AgentStopped", "AgentStopped", "deleted"]

    async def left(cleaning: Cleaning) -> list[Any]:
        return await cleaning.list_sub_agents()

    async with serving(Parent, data=tmp_path, sub_agents=[Child, Cleaning]) as server:
        await do(await server.tab(agent="parent"), script)
        assert await do(await server.tab("room/sub/cleaning/c", agent="parent"), left) == []
