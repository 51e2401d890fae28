"""Sub-agents as the server's own code uses them: made, called, listed, stopped, deleted."""

import asyncio
from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any

import pytest

from perdure import Agent, AgentStopped, BadRequest, ConfigurationError, ReadonlyConnection, current_connection
from perdure.testing import Gate
from tests.agent.relatives import Child, Other, Parent
from tests.support import ErrorLog, do, serving

pytestmark = pytest.mark.anyio


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
