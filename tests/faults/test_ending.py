"""A server that ends while things go on: everything is let go of in time, and what was said is kept."""

import asyncio

import pytest

import perdure.host.tasks
from perdure import tool
from perdure.testing import Gate, ScriptedModel, call, pause, say
from tests.support import ErrorLog, Serve, agent, chunks_of, text_of

pytestmark = pytest.mark.anyio


async def test_a_tool_that_refuses_to_be_stopped_does_not_keep_others_from_being_stored(
    serve: Serve, log: ErrorLog, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(perdure.host.tasks, "GRACE", 0.1)
    gate, release = Gate(), Gate()

    @tool
    async def stubborn() -> str:
        """Returns when it likes."""
        while True:
            try:
                await release.passed()
            except asyncio.CancelledError:
                continue
            return "at last"

    model = ScriptedModel([[call("stubborn", id="c1")], [say("Half"), pause(gate)], say("Never.")])
    first = await serve(agent(model, stubborn))
    one, two = await first.tab("one"), await first.tab("two")
    await one.ask("r1", "Go")
    await release.reached()
    await two.ask("r2", "Go")
    await two.delta("r2", "Half")
    await first.stop()
    release.open()

    second = await serve(agent(ScriptedModel([say("Next.")])))
    assert (await second.stored("two"))[-1]["parts"][-1]["text"] == "Half"
    late = await second.tab("one")
    await late.ask("r3", "Again")
    assert (await late.done("r3"))["outcome"] == "completed"


async def test_a_server_that_stops_closes_its_tabs_so_that_they_come_back(serve: Serve) -> None:
    server = await serve(agent(ScriptedModel([])))
    tab = await server.tab()
    await tab.opened()
    await server.stop()
    assert (await tab.ended())[0] == 1012


async def test_a_stop_in_mid_stream_keeps_what_was_said_and_no_task_of_the_server_stays(serve: Serve) -> None:
    before = asyncio.all_tasks()
    gate = Gate()
    server = await serve(agent(ScriptedModel([[say("a", "b", "c"), pause(gate)]])))
    tabs = [await server.tab() for _ in range(5)]
    await tabs[0].ask("r1", "Go")
    await tabs[4].delta("r1", "c")
    late = await server.tab()
    await late.opened()
    await server.stop()
    assert text_of(chunks_of(tabs[0].frames, "r1")) == "abc"
    left = {task.get_name() for task in asyncio.all_tasks() - before}
    assert not [name for name in left if "agent/room" in name or "connection" in name]

    again = await serve(agent(ScriptedModel([])))
    assert (await again.stored())[-1]["parts"][-1]["text"] == "abc"
