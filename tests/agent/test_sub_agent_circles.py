"""Agents of a family that would wait for each other for ever do not."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

from perdure import AgentStopped, NestedTurn, Think, TurnResult, tool
from perdure.testing import Gate, ScriptedModel, call, say
from tests.agent.asking import CHILD, parent_of, texts
from tests.support import Doing, ErrorLog, serving

pytestmark = pytest.mark.anyio


async def test_a_child_that_asks_the_parent_that_waits_for_it_is_refused(tmp_path: Path) -> None:
    refused: list[str] = []

    class Child(Doing, Think):
        model = ScriptedModel([[call("back")], [say("never mind")]])

        @tool
        async def back(self) -> str:
            """Ask the parent."""
            parent = await self.parent_agent(Think)
            for wait in (
                parent.chat("?"),
                parent.save_messages("?"),
                parent.continue_last_turn(),
                anext(parent.stream("?")),
            ):
                try:
                    await wait
                except NestedTurn as error:
                    refused.append(str(error).split()[0])
            await parent.add_messages("noted")
            return "ok"

        def get_tools(self) -> list[Any]:
            return [self.back]

    parent = parent_of(Child, [call("ask")], [say("done")])
    async with serving(parent, data=tmp_path, sub_agents=[Child]) as server:
        above = await server.tab("p", agent="parent")
        await above.ask("R1", "go")
        assert (await above.done("R1"))["outcome"] == "completed"
        assert refused == ["chat()", "save_messages()", "continue_last_turn()", "stream()"]
        assert texts(await server.stored("p", agent="parent")) == ["go", "noted", "done"]


async def test_two_turns_that_would_wait_for_each_other_do_not(tmp_path: Path) -> None:
    """The parent's turn waits behind a turn of the child, which then asks the parent."""
    gate = Gate()
    refused: list[BaseException] = []

    class Child(Doing, Think):
        model = ScriptedModel([[call("back")], [say("first")], [say("second")]])

        @tool
        async def back(self) -> str:
            """Ask the parent."""
            await gate.passed()
            try:
                await (await self.parent_agent(Think)).chat("?")
            except NestedTurn as error:
                refused.append(error)
                raise
            return "ok"

        async def beat(self) -> None: ...

        def get_tools(self) -> list[Any]:
            return [self.back]

    async def ask(self: Any) -> str:
        """Ask the child, and let its turn go on once this one waits behind it."""
        child = await self.sub_agent(Child, "c")
        asking = asyncio.create_task(child.chat("Please."))
        await child.beat()
        gate.open()
        return (await asking).status

    parent = parent_of(Child, [call("ask")], [say("done")], asking=ask)
    async with serving(parent, data=tmp_path, sub_agents=[Child]) as server:
        above, page = await server.tab("p", agent="parent"), await server.tab(CHILD, agent="parent")
        await page.ask("RC", "call your parent")
        await gate.reached()
        await above.ask("RP", "go")
        assert (await above.done("RP"))["outcome"] == "completed"
        assert (await page.done("RC"))["outcome"] == "completed"
        assert len(refused) == 1
        assert texts(await server.stored(CHILD, agent="parent")) == ["call your parent", "first", "Please.", "second"]


async def test_a_child_may_ask_its_parent_when_nobody_waits_for_it(tmp_path: Path) -> None:
    class Child(Doing, Think):
        model = ScriptedModel([[call("back")], [say("asked")]])

        @tool
        async def back(self) -> str:
            """Ask the parent."""
            return (await (await self.parent_agent(Think)).chat("?")).status

        def get_tools(self) -> list[Any]:
            return [self.back]

    parent = parent_of(Child, [say("here")])
    async with serving(parent, data=tmp_path, sub_agents=[Child]) as server:
        page = await server.tab(CHILD, agent="parent")
        await page.ask("RC", "call your parent")
        await page.done("RC")
        assert texts(await server.stored("p", agent="parent")) == ["?", "here"]
        parts = (await server.stored(CHILD, agent="parent"))[1]["parts"]
        assert [part["output"] for part in parts if part["type"] == "tool-back"] == ["completed"]


async def test_what_a_turn_leaves_running_may_ask_once_the_turn_is_over(tmp_path: Path) -> None:
    gate = Gate()
    asked: list[asyncio.Task[TurnResult]] = []

    class Child(Doing, Think):
        model = ScriptedModel([[say("child")]])

        async def ask_in_the_background(self) -> None:
            asked.append(asyncio.create_task(self.ask_later()))

        async def ask_later(self) -> TurnResult:
            await gate.passed()
            return await (await self.parent_agent(Think)).chat("?")

    async def ask(self: Any) -> str:
        """Ask the child."""
        await (await self.sub_agent(Child, "c")).ask_in_the_background()
        return "ok"

    parent = parent_of(Child, [call("ask")], [say("done")], [say("later")], asking=ask)
    async with serving(parent, data=tmp_path, sub_agents=[Child]) as server:
        above = await server.tab("p", agent="parent")
        await above.ask("R1", "go")
        await above.done("R1")
        gate.open()
        assert (await asked[0]).status == "completed"
        assert texts(await server.stored("p", agent="parent")) == ["go", "done", "?", "later"]


async def test_a_tabs_request_that_comes_while_a_parent_wakes_the_child_is_no_part_of_the_parents_turn(
    tmp_path: Path,
) -> None:
    gate = Gate()
    results: list[str] = []

    class Child(Doing, Think):
        model = ScriptedModel([[call("back")], [say("asked")], [say("answer")]])

        async def on_start(self) -> None:
            await gate.passed()

        @tool
        async def back(self) -> str:
            """Ask the parent."""
            try:
                await (await self.parent_agent(Think)).chat("?")
            except NestedTurn:
                results.append("refused")
                raise
            results.append("asked")
            return "ok"

        def get_tools(self) -> list[Any]:
            return [self.back]

    class Parent(Doing, Think):
        model = ScriptedModel([[call("poke")], [say("done")], [say("here")]])

        @tool
        async def poke(self) -> str:
            """Only wake the child."""
            await self.sub_agent(Child, "c")
            return "ok"

        def get_tools(self) -> list[Any]:
            return [self.poke]

    async with serving(Parent, data=tmp_path, sub_agents=[Child]) as server:
        above = await server.tab("p", agent="parent")
        await above.ask("RP", "go")
        await gate.reached()
        page = await server.tab(CHILD, agent="parent")
        await page.ask("RC", "call your parent")
        for _ in range(3):  # the request is there once what was sent after it is answered
            assert (await server.get("/health")).status_code == 200
        gate.open()
        await above.done("RP")
        await page.done("RC")
        assert results == ["asked"]


async def test_a_start_that_waits_for_a_start_that_waits_for_it_fails_instead(tmp_path: Path, log: ErrorLog) -> None:
    class Child(Doing, Think):
        async def on_start(self) -> None:
            await (await self.parent_agent(Parent)).hello()

    class Parent(Doing, Think):
        model = "demo"

        async def hello(self) -> None: ...

        async def on_start(self) -> None:
            with pytest.raises(AgentStopped) as caught:
                await self.sub_agent(Child, "c")
            seen.append(caught.value.__cause__)

    seen: list[BaseException | None] = []
    async with serving(Parent, data=tmp_path, sub_agents=[Child]) as server:
        assert await server.stored("p", agent="parent") == []
        assert [type(error) for error in seen] == [NestedTurn]
        log.expect("parent/p/sub/child/c is dropped from memory: Parent.hello() cannot be called here")
