"""What a turn runs with, as the agent's class says it."""

from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from perdure import ConfigurationError, Think, Tool, tool
from perdure.agent.hooks import prepare
from perdure.agent.turn import Turn
from perdure.models.contract import HistoryMessage
from perdure.testing import ScriptedModel

pytestmark = pytest.mark.anyio

MODEL = ScriptedModel([])
HISTORY = [HistoryMessage(text='{"id":"u1","role":"user","parts":[]}')]


@tool
async def add(a: int, b: int) -> int:
    return a + b


def turn() -> Turn:
    return Turn(id="R1", trigger="ws-chat", message_id="a1", parent="u1", own_messages=[], origin_ids=[], generation=0)


async def test_the_class_says_what_a_turn_runs_with() -> None:
    class Agent(Think):
        model = MODEL
        system_prompt = "Be brief."
        max_steps = 3

        def get_tools(self) -> Sequence[Tool]:
            return [add]

    agent = Agent()
    job = await prepare(agent, turn(), HISTORY, str)
    assert (job.plan.model, job.plan.system, list(job.plan.tools), job.max_steps) == (MODEL, "Be brief.", ["add"], 3)
    assert (job.agent, job.turn_id, job.history) == (agent, "R1", HISTORY)


async def test_what_the_class_leaves_out_has_a_default() -> None:
    class Agent(Think):
        model = MODEL

    job = await prepare(Agent(), turn(), [], str)
    assert (job.plan.system, dict(job.plan.tools), job.max_steps) == ("You are a helpful assistant.", {}, 10)


async def test_methods_may_be_asynchronous() -> None:
    class Agent(Think):
        async def get_model(self) -> Any:
            return MODEL

        async def get_system_prompt(self) -> str:
            return "Be brief."

        async def get_tools(self) -> Mapping[str, Tool]:
            return {"plus": add}

    job = await prepare(Agent(), turn(), [], str)
    assert (job.plan.model, job.plan.system, list(job.plan.tools)) == (MODEL, "Be brief.", ["plus"])


async def test_methods_are_asked_anew_for_each_turn() -> None:
    class Agent(Think):
        model = MODEL
        asked = 0

        def get_system_prompt(self) -> str:
            self.asked += 1
            return f"Turn {self.asked}."

    agent = Agent()
    assert [(await prepare(agent, turn(), [], str)).plan.system for _ in range(2)] == ["Turn 1.", "Turn 2."]


async def test_a_class_without_a_model_is_told_how_to_get_one() -> None:
    class Assistant(Think):
        pass

    with pytest.raises(ConfigurationError, match=r"Assistant has no model\. Set model = "):
        await prepare(Assistant(), turn(), [], str)


async def test_what_a_method_raises_comes_out() -> None:
    class Agent(Think):
        model = MODEL

        def get_tools(self) -> Sequence[Tool]:
            raise LookupError("no database")

    with pytest.raises(LookupError, match="no database"):
        await prepare(Agent(), turn(), [], str)
