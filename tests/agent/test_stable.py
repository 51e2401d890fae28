"""Waiting until nothing goes on in an agent."""

import asyncio
from typing import Any

import pytest

from perdure import NestedTurn, Think, tool
from perdure.testing import Gate, ScriptedModel, call, pause, say
from tests.requirements import requirement
from tests.support import Doing, Serve, Tab, do, offer, tool_result, user_message

pytestmark = pytest.mark.anyio


def chatting(*steps: Any, **fields: Any) -> type[Think]:
    """An agent that answers with these steps and does what a test says."""
    return type("Agent", (Doing, Think), {"model": ScriptedModel(steps), **fields})


async def stable(tab: Tab, seconds: float | None = None) -> bool:
    return await do(tab, lambda agent: agent.wait_until_stable(seconds))


async def pending(tab: Tab) -> bool:
    async def look(agent: Think) -> bool:
        return agent.has_pending_interaction()

    return await do(tab, look)


@requirement("engine:85")
async def test_an_agent_is_not_stable_while_a_call_waits_or_a_continuation_is_to_come(serve: Serve) -> None:
    window, streaming = Gate(), Gate()

    async def before_turn(self: Think, ctx: Any) -> None:
        if ctx.continuation:
            await window.passed()

    steps = [call("a", id="c1"), [say("Do"), pause(streaming), say("ne.")]]
    server = await serve(chatting(*steps, before_turn=before_turn))
    tab = await server.tab()
    assert await stable(tab)
    await tab.ask("r1", "Go", clientTools=offer("a"))
    await tab.done("r1")
    assert (await stable(tab, 0.01), await pending(tab)) == (False, True)
    waiting = asyncio.create_task(stable(tab))
    await tab.settle()
    await tab.send(tool_result("c1"))
    for gate in (window, streaming):
        await gate.reached()
        assert (await stable(tab, 0.01), await pending(tab)) == (False, False)
        assert not waiting.done()
        gate.open()
    assert await waiting
    assert (await server.stored())[1]["parts"][-1]["text"] == "Done."


async def test_an_agent_is_stable_once_its_call_was_answered_and_nobody_wants_more(serve: Serve) -> None:
    server = await serve(chatting(call("a", id="c1")))
    tab = await server.tab()
    await tab.ask("r1", "Go", clientTools=offer("a"))
    await tab.done("r1")
    waiting = asyncio.create_task(stable(tab))
    await tab.settle()
    await tab.send(tool_result("c1", go_on=False))
    assert await waiting


async def test_a_clear_makes_an_agent_stable(serve: Serve) -> None:
    server = await serve(chatting(call("a", id="c1")))
    tab = await server.tab()
    await tab.ask("r1", "Go", clientTools=offer("a"))
    await tab.done("r1")
    waiting = asyncio.create_task(stable(tab))
    await tab.settle()
    await tab.clear()
    assert await waiting


async def test_turns_that_wait_are_waited_for(serve: Serve) -> None:
    gate = Gate()
    server = await serve(chatting([pause(gate), say("One.")], say("Two.")))
    tab = await server.tab()
    await tab.ask("r1", "One")
    await tab.ask("r2", user_message("Two"))
    await gate.reached()
    waiting = asyncio.create_task(stable(tab))
    assert not await stable(tab, 0.01)
    gate.open()
    assert await waiting
    assert len(await server.stored()) == 4


async def test_a_tool_that_would_wait_for_its_own_turn_is_told_so(serve: Serve) -> None:
    raised: list[str] = []

    class Waiting(Doing, Think):
        model = ScriptedModel([call("wait", id="c1"), say("Done.")])

        def get_tools(self) -> list[Any]:
            return [self.wait]

        @tool
        async def wait(self) -> None:
            """Wait."""
            try:
                await self.wait_until_stable()
            except NestedTurn as error:
                raised.append(str(error))

    server = await serve(type("Agent", (Waiting,), {}))
    tab = await server.tab()
    await tab.ask("r1", "Go")
    await tab.done("r1")
    assert len(raised) == 1
    assert "wait_until_stable()" in raised[0]
