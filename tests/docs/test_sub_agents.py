"""The desk of the guide to sub-agents."""

from pathlib import Path
from typing import Any

import pytest

from docs_src import sub_agents
from tests.support import Doing, do, serving

pytestmark = pytest.mark.anyio


class Desk(Doing, sub_agents.Desk):
    """The desk, and what the test has it do."""


async def test_the_desk_asks_lists_shows_and_forgets_its_researchers(tmp_path: Path) -> None:
    async with serving(Desk, sub_agents=[sub_agents.Researcher], data=tmp_path) as server:
        desk = await server.tab("front", agent="desk")
        path = "front/sub/researcher/tides"
        assert (await server.get(f"/agents/desk/{path}/get-messages")).status_code == 404
        await desk.ask("R1", 'call research {"topic": "tides"}')
        await desk.done("R1")
        parts = (await server.stored("front", agent="desk"))[1]["parts"]
        asked, answer = await server.stored(path, agent="desk")
        assert asked["parts"][0]["text"] == "What is there to know about tides?"
        said = "".join(part.get("text", "") for part in answer["parts"])
        assert [part["output"] for part in parts if part["type"] == "tool-research"] == [said]
        assert said

        async def script(agent: Any) -> None:
            assert await agent.overview() == {"tides": 1}
            assert await sub_agents.read_aloud(agent, "tides")
            assert await agent.overview() == {"tides": 2}
            assert "front" in await sub_agents.ask(agent, "tides", "call where_am_i {}")
            assert await agent.overview() == {"tides": 3}
            await agent.forget("tides")
            assert await agent.overview() == {}

        await do(desk, script)
        assert (await server.get(f"/agents/desk/{path}/get-messages")).status_code == 404


def test_the_app_of_the_guide_has_both_classes() -> None:
    assert list(sub_agents.app.agents) == ["desk"]
    assert list(sub_agents.app.kinds) == ["desk", "researcher"]
