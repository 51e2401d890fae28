"""Turns that the server's own code asks for, seen from the code and from a connected tab."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

from perdure import NestedTurn, Think, TurnConfig, TurnFailed, TurnResult, block, callable, tool
from perdure.errors import ModelRejected
from perdure.testing import Gate, ScriptedModel, call, fail, pause, say
from tests.support import Tab, chunks_of, serving

pytestmark = pytest.mark.anyio


def texts(messages: list[dict[str, Any]]) -> list[str]:
    return ["".join(p.get("text", "") for p in m["parts"]) for m in messages]


async def rpc(tab: Tab, method: str, *args: Any) -> Any:
    await tab.send({"type": "rpc", "id": method, "method": method, "args": list(args)})
    reply = await tab.next(lambda frame: frame["type"] == "rpc" and frame["id"] == method, since=0)
    assert reply["success"], reply
    return reply.get("result")


async def test_saving_messages_answers_them_in_every_tab(tmp_path: Path) -> None:
    class Agent(Think):
        model = ScriptedModel([[say("hello ", "there")]])

        @callable
        async def start(self) -> str:
            result = await self.save_messages("hi")
            assert result.message is not None
            return result.status

    async with serving(Agent, data=tmp_path) as server:
        tab = await server.tab()
        assert await rpc(tab, "start") == "completed"
        done = await tab.seen(lambda frame: frame.get("done") is True and "outcome" in frame)
        assert [c["type"] for c in chunks_of(tab.frames, done["id"])][:2] == ["start", "start-step"]
        assert texts(await server.stored()) == ["hi", "hello there"]


async def test_a_continuation_extends_the_last_answer(tmp_path: Path) -> None:
    model = ScriptedModel([[say("one")], [say(" two")]])

    class Agent(Think):
        pass

    Agent.model = model

    class Going(Agent):
        @callable
        async def more(self) -> bool:
            return (await self.continue_last_turn()).continuation

    async with serving(Going, data=tmp_path) as server:
        tab = await server.tab(agent="going")
        await tab.ask("R1", "count")
        await tab.done("R1")
        assert await rpc(tab, "more") is True
        stored = await server.stored(agent="going")
        assert [m["role"] for m in stored] == ["user", "assistant"]
        assert texts(stored)[1] == "one two"
        continued = [frame for frame in tab.frames if frame.get("continuation")]
        assert continued
        assert all(frame["id"] == continued[0]["id"] for frame in continued)
        assert "messageId" not in chunks_of(tab.frames, continued[0]["id"])[0]


async def test_waiting_for_a_turn_from_inside_a_turn_raises_instead_of_hanging(tmp_path: Path) -> None:
    seen: list[BaseException] = []

    class Agent(Think):
        model = ScriptedModel([[call("again")], [say("ok")]])

        @tool
        async def again(self) -> str:
            """Ask again."""
            try:
                await self.save_messages("inner")
            except NestedTurn as error:
                seen.append(error)
                raise
            return "no"

        def get_tools(self):
            return [self.again]

    async with serving(Agent, data=tmp_path) as server:
        tab = await server.tab()
        await tab.ask("R1", "go")
        assert (await tab.done("R1"))["outcome"] == "completed"
        assert len(seen) == 1


async def test_messages_added_from_a_tool_stand_before_the_answer(tmp_path: Path) -> None:
    class Agent(Think):
        model = ScriptedModel([[call("note")], [say("done")]])

        @tool
        async def note(self) -> str:
            """Note."""
            await self.add_messages("noted")
            return "ok"

        def get_tools(self):
            return [self.note]

    async with serving(Agent, data=tmp_path) as server:
        tab = await server.tab()
        await tab.ask("R1", "go")
        await tab.done("R1")
        assert texts(await server.stored()) == ["go", "noted", "done"]


async def test_stopping_the_wait_stops_the_turn_and_keeps_what_was_said(tmp_path: Path) -> None:
    gate = Gate()
    stop = asyncio.Event()
    results: list[TurnResult] = []

    class Agent(Think):
        model = ScriptedModel([[say("half"), pause(gate), say("never")]])

        @callable
        async def start(self) -> None:
            results.append(await self.save_messages("go", signal=stop))

    async with serving(Agent, data=tmp_path) as server:
        tab = await server.tab()
        await tab.send({"type": "rpc", "id": "1", "method": "start", "args": []})
        await gate.reached()
        stop.set()
        await tab.seen(lambda frame: frame.get("outcome") == "aborted")
        assert texts(await server.stored()) == ["go", "half"]
        await tab.seen(lambda frame: frame["type"] == "rpc")
        assert results[0].status == "aborted"


async def test_chat_gives_chunks_to_its_callback_and_raises_what_failed(tmp_path: Path) -> None:
    heard: list[str] = []

    class Agent(Think):
        model = ScriptedModel([[say("a", "b")], [fail(ModelRejected("nope"))]])

        @callable
        async def talk(self) -> str:
            await self.chat("hi", lambda chunk: heard.append(chunk.get("delta", "")))
            try:
                await self.chat("again")
            except TurnFailed as error:
                return str(error)
            return "it did not fail"

    async with serving(Agent, data=tmp_path) as server:
        tab = await server.tab()
        assert await rpc(tab, "talk") == "nope"
        assert "".join(heard) == "ab"


async def test_before_turn_changes_the_turn_and_before_tool_call_its_calls(tmp_path: Path) -> None:
    model = ScriptedModel([[call("extra", {}), call("hidden", {})], [say("end")]])

    @tool
    def extra() -> str:
        """More."""
        return "extra ran"

    @tool
    def hidden() -> str:
        """Hidden."""
        return "hidden ran"

    class Agent(Think):
        def get_model(self):
            return "demo"

        def get_tools(self):
            return [hidden]

        def before_turn(self, ctx):
            assert ctx.system == self.system_prompt
            return TurnConfig(model=model, tools=[extra], active_tools=[], system="be brief", temperature=0.5)

        async def before_tool_call(self, ctx):
            return block("not today")

    async with serving(Agent, data=tmp_path) as server:
        tab = await server.tab()
        await tab.ask("R1", "go")
        await tab.done("R1")
        request = model.requests[0]
        assert (request.system, request.tools, request.settings) == ("be brief", ["extra"], {"temperature": 0.5})
        parts = [part for part in (await server.stored())[1]["parts"] if part["type"].startswith("tool-")]
        assert parts[0]["output"] == "not today"
        assert "unavailable tool 'hidden'" in parts[1]["errorText"]
