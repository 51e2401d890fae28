"""Sub-agents that are stopped or deleted, also while somebody uses them."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

from perdure import AgentStopped
from perdure.testing import Gate
from tests.agent.relatives import Child, Deleting, Parent
from tests.requirements.marker import requirement
from tests.support import Doing, do, serving

pytestmark = pytest.mark.anyio


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
