"""Waiting for a person is not hanging: nothing runs meanwhile, nothing is held, and no start pays for it."""

from __future__ import annotations

import asyncio
import gc
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from perdure import Think, client_tool, tool
from perdure.agent.turn import Turn
from perdure.chat.interactions import Interaction, Interactions
from perdure.storage.contract import OpenAgents
from perdure.testing import FakeClock, ScriptedModel, call, say, strict_provider_errors
from tests.requirements import requirement
from tests.support import agent
from tests.support.hosting import Hosting, hosting
from tests.support.rooms import Room

pytestmark = pytest.mark.anyio

DAY = 24 * 3600.0
MANY = 1_000
HELD = (Think, Interactions, Interaction, Turn)


@tool(needs_approval=True)
async def pay(amount: int) -> str:
    """Pay."""
    return f"paid {amount}"


def asks(*ids: str) -> list[Any]:
    return [call("pay", {"amount": 5}, id=id) for id in ids]


def held() -> Counter[str]:
    """What of conversations is in memory."""
    gc.collect()
    found = [type(each) for each in gc.get_objects() if isinstance(each, HELD)]
    return Counter("Think" if issubclass(kind, Think) else kind.__name__ for kind in found)


def counting(model: ScriptedModel, *tools: Any, **fields: Any) -> tuple[type[Think], list[str]]:
    """A class, and the names of its agents that came into memory."""
    woken: list[str] = []
    return agent(model, *tools, on_start=lambda self: woken.append(self.name), **fields), woken


@requirement("engine:84", "engine:114", "fault:AP-14")
async def test_an_agent_that_waits_for_a_person_is_let_go_like_any_other_and_runs_nothing() -> None:
    model = ScriptedModel([asks("c1"), [say("done")]])
    kind, woken = counting(model, pay)
    async with hosting(kind) as host:
        before, tasks = held(), asyncio.all_tasks()
        room = Room(host)
        await room.ask()
        await host.store.settled()
        assert asyncio.all_tasks() <= tasks, "nothing runs while it waits"
        await host.rest()
        assert (host.in_memory, held()) == (0, before)

        await host.rest(30 * DAY)
        assert (host.in_memory, len(woken)) == (0, 1), "nothing wakes it"
        room.decide("c1")
        assert (await room.continued())["outcome"] == "completed"
        assert await room.states() == {"c1": "output-available"}
        assert host.in_memory == 1
        await host.rest()
        assert (host.in_memory, held()) == (0, before)
    model.assert_done()
    assert strict_provider_errors(model.requests[1]) == []


@requirement("fault:AP-14")
async def test_a_question_that_survives_restarts_and_days_is_answered_from_a_new_connection(tmp_path: Path) -> None:
    clock = FakeClock()
    model = ScriptedModel([[*asks("c1"), call("place", id="c2")], [say("done")]])
    kind, woken = counting(model, pay, client_tool("place"))
    async with hosting(kind, folder=tmp_path, clock=clock) as host:
        await Room(host).ask()
    for days in (1, 7):
        async with hosting(kind, folder=tmp_path, clock=clock) as host:
            await host.rest(days * DAY)
            assert (host.in_memory, len(woken)) == (0, 1)
    async with hosting(kind, folder=tmp_path, clock=clock) as host:
        room = Room(host)
        assert await room.states() == {"c1": "approval-requested", "c2": "input-available"}
        room.line.post({"type": "cf_agent_stream_resume_request", "probeId": "p"})
        assert (await room.line.seen(lambda frame: frame.get("probeId") == "p"))["reason"] == "idle"
        room.result("c2", "Brno")
        await host.rest(DAY)
        assert host.in_memory == 0
        assert len(model.requests) == 1
        room.decide("c1")
        await room.continued()
        parts = await room.parts()
        assert (parts["c1"]["output"], parts["c2"]["output"]) == ("paid 5", "Brno")
    model.assert_done()


async def test_a_thousand_agents_that_wait_are_held_nowhere_and_no_start_pays_for_them(tmp_path: Path) -> None:
    clock = FakeClock()
    names = [f"room-{number}" for number in range(MANY)]
    kind, woken = counting(ScriptedModel([asks("c1")] * MANY + [[say("done")]]), pay)
    async with hosting(kind, folder=tmp_path, clock=clock) as host:
        before = held()
        await ask_all(host, names)
        assert host.in_memory == MANY
        await host.rest()
        assert (host.in_memory, held()) == (0, before)
    assert len(woken) == MANY

    async with hosting(kind, folder=tmp_path, clock=clock) as host:
        await host.rest()
        assert await host.read(OpenAgents()) == []
        assert (host.in_memory, len(woken), held()) == (0, MANY, before)
        room = Room(host, names[MANY // 2])
        room.decide("c1")
        await room.continued()
        assert await room.states() == {"c1": "output-available"}
        assert woken[MANY:] == [names[MANY // 2]]


async def ask_all(host: Hosting, names: list[str]) -> None:
    """Each of these agents is asked something, and asks in turn whether it may."""
    for name in names:
        room = Room(host, name)
        await room.ask()
        room.line.leave()
