"""Turns of sub-agents that other agents ask for: seen live, and stopped with whoever asked."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

from perdure import AgentStopped, TurnFailed, TurnResult, tool
from perdure.errors import ModelRejected
from perdure.storage.contract import LoadAgent
from perdure.storage.sqlite import SqliteStore
from perdure.testing import Gate, ScriptedModel, call, fail, pause, say
from tests.agent.asking import CHILD, Child, Parent, parent_of, scripted, texts
from tests.requirements.marker import requirement
from tests.support import Tab, chunks_of, do, serving

pytestmark = pytest.mark.anyio


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
