"""Turns of sub-agents that other agents ask for: seen live, stopped with whoever asked, never waiting in a circle."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

from perdure import AgentStopped, NestedTurn, Think, TurnFailed, TurnResult, tool
from perdure.errors import ModelRejected
from perdure.storage.contract import LoadAgent
from perdure.storage.sqlite import SqliteStore
from perdure.testing import Gate, ScriptedModel, call, fail, pause, say
from tests.requirements.marker import requirement
from tests.support import Doing, ErrorLog, Tab, chunks_of, do, serving

pytestmark = pytest.mark.anyio

CHILD = "p/sub/child/c"


class Child(Doing, Think):
    """Answers with the script of the test."""


class Parent(Doing, Think):
    """Does what the tests say."""

    model = "demo"


def scripted(kind: type[Think], *steps: Any, **members: Any) -> Any:
    """A class like ``kind``, of the same name, with a model that plays these steps."""
    return type(kind.__name__, (kind,), {"model": ScriptedModel(steps), **members})


def parent_of(child: type[Think], *steps: Any, asking: Any = None) -> Any:
    """A parent with a tool ``ask`` that asks its child, or does something else, and a model that plays these steps."""

    async def ask(self: Any) -> str:
        """Ask the child."""
        return (await (await self.sub_agent(child, "c")).chat("Please.")).status

    members = {"ask": tool(asking or ask), "get_tools": lambda self: [self.ask]}
    return scripted(Parent, *steps, **members)


def texts(messages: list[dict[str, Any]]) -> list[str]:
    return ["".join(part.get("text", "") for part in message["parts"]) for message in messages]


async def last_snapshot(tab: Tab) -> list[str]:
    await tab.settle()
    return texts([frame for frame in tab.frames if frame["type"] == "cf_agent_chat_messages"][-1]["messages"])


# ── seen live ───────────────────────────────────────────────────────


@requirement("engine:17", "fault:MT-04", "protocol:57")
async def test_a_chat_with_a_child_is_live_in_its_tabs_and_so_is_the_clearing(tmp_path: Path) -> None:
    child = scripted(Child, [say("It ", "is ", "done.")])
    heard: list[dict[str, Any]] = []

    async def chat(parent: Any) -> TurnResult:
        return await (await parent.sub_agent(child, "c")).chat("x", heard.append)

    async def clear(parent: Any) -> None:
        await (await parent.sub_agent(child, "c")).clear_messages()

    async with serving(Parent, data=tmp_path, sub_agents=[child]) as server:
        above = await server.tab("p", agent="parent")
        pages = [await server.tab(CHILD, agent="parent") for _ in range(2)]
        for page in pages:
            await page.opened()
        result = await do(above, chat)
        assert result.status == "completed"
        assert texts([result.message]) == ["It is done."]
        for page in pages:
            done = await page.done(result.request_id)
            assert chunks_of(page.frames, result.request_id) == heard
            shown = [frame for frame in page.frames if frame["type"] == "cf_agent_chat_messages"]
            assert [texts(frame["messages"]) for frame in shown] == [[], ["x"], ["x", "It is done."]]
            first = next(frame for frame in page.frames if frame.get("id") == result.request_id)
            assert page.frames.index(shown[1]) < page.frames.index(first)
            assert page.frames.index(shown[2]) < page.frames.index(done)
        await do(above, clear)
        for page in pages:
            await page.seen(lambda frame: frame["type"] == "cf_agent_chat_clear")
        assert await server.stored(CHILD, agent="parent") == []
        await above.settle()
        assert not [frame for frame in above.frames if frame.get("id") == result.request_id]


async def test_a_stream_gives_the_chunks_and_leaving_it_stops_the_turn(tmp_path: Path) -> None:
    gate = Gate()
    child = scripted(Child, [say("one", "two")], [say("half"), pause(gate), say("never")])

    async def listen(parent: Any) -> str:
        asked = await parent.sub_agent(child, "c")
        return "".join([chunk.get("delta", "") async for chunk in asked.stream("x")])

    async def leave(parent: Any) -> None:
        async for chunk in (await parent.sub_agent(child, "c")).stream("y"):
            if chunk.get("delta") == "half":
                return

    async with serving(Parent, data=tmp_path, sub_agents=[child]) as server:
        above = await server.tab("p", agent="parent")
        page = await server.tab(CHILD, agent="parent")
        assert await do(above, listen) == "onetwo"
        await do(above, leave)
        assert (await page.seen(lambda frame: frame.get("outcome") == "aborted"))["done"] is True
        assert texts(await server.stored(CHILD, agent="parent")) == ["x", "onetwo", "y", "half"]


@requirement("fault:SA-11")
async def test_an_error_in_the_childs_stream_is_raised_once_and_reported_once(tmp_path: Path) -> None:
    heard: list[str] = []
    broken = [say("a", "b"), fail(ModelRejected("overloaded"))]
    child = scripted(Child, broken, broken, broken)

    async def script(parent: Any) -> None:
        asked = await parent.sub_agent(child, "c")
        with pytest.raises(TurnFailed, match="overloaded"):
            await asked.chat("x", lambda chunk: heard.append(chunk.get("delta", "")))
        assert "".join(heard) == "ab"
        result = await asked.save_messages("y")
        assert (result.status, result.error, result.message) == ("error", "overloaded", None)
        with pytest.raises(TurnFailed, match="overloaded"):
            [chunk async for chunk in asked.stream("z")]

    async with serving(Parent, data=tmp_path, sub_agents=[child]) as server:
        await do(await server.tab("p", agent="parent"), script)


@requirement("fault:SA-09", "engine:16")
async def test_tools_passed_to_a_childs_chat_are_ignored_with_a_warning(tmp_path: Path) -> None:
    @tool
    def foreign() -> str:
        """Foreign."""
        raise AssertionError("foreign code ran")

    @tool
    def own() -> str:
        """Own."""
        return "mine"

    model = ScriptedModel([[call("foreign"), call("own")], [say("ok")]])
    child = scripted(Child, get_tools=lambda self: [own])
    child.model = model

    async def script(parent: Any) -> None:
        asked = await parent.sub_agent(child, "c")
        with pytest.warns(UserWarning, match="tools belong to the agent"):
            assert (await asked.chat("x", tools={"foreign": foreign})).status == "completed"

    async with serving(Parent, data=tmp_path, sub_agents=[child]) as server:
        await do(await server.tab("p", agent="parent"), script)
        assert model.requests[0].tools == ["own"]
        parts = (await server.stored(CHILD, agent="parent"))[1]["parts"]
        assert [part.get("output") for part in parts if part["type"] == "tool-own"] == ["mine"]


# ── stopped with whoever asked ──────────────────────────────────────


async def test_stopping_the_parents_turn_stops_the_childs(tmp_path: Path) -> None:
    gate = Gate()
    child = scripted(Child, [say("half"), pause(gate), say("never")])
    parent = parent_of(child, [call("ask")])
    async with serving(parent, data=tmp_path, sub_agents=[child]) as server:
        above, page = await server.tab("p", agent="parent"), await server.tab(CHILD, agent="parent")
        await above.ask("R1", "go")
        await gate.reached()
        await above.cancel("R1")
        assert (await above.done("R1"))["outcome"] == "aborted"
        await page.seen(lambda frame: frame.get("outcome") == "aborted")
        assert await last_snapshot(page) == ["Please.", "half"]


async def test_a_time_limit_stops_the_childs_turn_and_the_child_can_be_asked_again(tmp_path: Path) -> None:
    gate = Gate()
    child = scripted(Child, [say("half"), pause(gate)], [say("whole")])

    async def script(parent: Any) -> None:
        asked = await parent.sub_agent(child, "c")
        with pytest.raises(TimeoutError):
            await chat_with_a_limit(asked)
        assert (await asked.chat("y")).status == "completed"

    async def chat_with_a_limit(asked: Any) -> None:
        async with asyncio.timeout(None) as limit:
            expiring = asyncio.create_task(expire(limit))
            await asked.chat("x")
        await expiring

    async def expire(limit: asyncio.Timeout) -> None:
        await gate.reached()
        limit.reschedule(0)

    async with serving(Parent, data=tmp_path, sub_agents=[child]) as server:
        await do(await server.tab("p", agent="parent"), script)
        assert texts(await server.stored(CHILD, agent="parent")) == ["x", "half", "y", "whole"]


async def test_aborting_a_child_tells_the_model_of_the_parent_that_asked_it(tmp_path: Path) -> None:
    gate = Gate()
    child = scripted(Child, [say("half"), pause(gate), say("never")])
    parent = parent_of(child, [call("ask")], [say("It was stopped.")])

    async def stop(agent: Any) -> None:
        await agent.abort_sub_agent(child, "c")

    async with serving(parent, data=tmp_path, sub_agents=[child]) as server:
        above = await server.tab("p", agent="parent")
        await above.ask("R1", "go")
        await gate.reached()
        await do(above, stop)
        assert (await above.done("R1"))["outcome"] == "completed"
        parts = (await server.stored("p", agent="parent"))[1]["parts"]
        assert "was stopped" in next(part["errorText"] for part in parts if part["type"] == "tool-ask")
        assert texts(await server.stored(CHILD, agent="parent")) == ["Please.", "half"]


async def test_deleting_a_child_in_the_middle_of_its_answer_leaves_nothing(tmp_path: Path) -> None:
    gate = Gate()
    child = scripted(Child, [say("half"), pause(gate), say("never")])

    async def script(parent: Any) -> None:
        asked = await parent.sub_agent(child, "c")
        asking = asyncio.create_task(asked.chat("x"))
        await gate.reached()
        await parent.delete_sub_agent(child, "c")
        with pytest.raises(AgentStopped):
            await asking
        assert not await parent.has_sub_agent(child, "c")

    async with serving(Parent, data=tmp_path, sub_agents=[child]) as server:
        await do(await server.tab("p", agent="parent"), script)
    store = await SqliteStore.open(tmp_path)
    assert (await store.read(LoadAgent("parent/p/sub/child/c"))).next_pos == 0
    assert (await store.read(LoadAgent("parent/p/sub/child/c"))).last_turn is None
    await store.close()


async def test_the_end_of_the_server_leaves_the_turns_of_parent_and_child_open(tmp_path: Path) -> None:
    gate = Gate()
    child = scripted(Child, [say("half"), pause(gate), say("never")])
    parent = parent_of(child, [say("Asking."), call("ask")])
    async with serving(parent, data=tmp_path, sub_agents=[child]) as server:
        await (await server.tab("p", agent="parent")).ask("R1", "go")
        await gate.reached()
    store = await SqliteStore.open(tmp_path)
    records = [await store.read(LoadAgent(f"parent/{path}")) for path in ("p", CHILD)]
    await store.close()
    assert [[turn.status for turn in record.open_turns] for record in records] == [["running"], ["running"]]
    async with serving(parent, data=tmp_path, sub_agents=[child]) as server:
        assert texts(await server.stored(CHILD, agent="parent")) == ["Please.", "half"]
        assert texts(await server.stored("p", agent="parent")) == ["go", "Asking."]


# ── never in a circle ───────────────────────────────────────────────


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
