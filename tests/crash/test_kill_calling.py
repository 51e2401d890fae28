"""The server ends while the caller of ``chat()`` runs a client tool: nobody is waited for."""

from pathlib import Path

import pytest

from tests.agent.calls import result_of, tool_parts
from tests.agent.deciding import result
from tests.crash.consistency import check_goes_on
from tests.crash.process import process
from tests.requirements import requirement

pytestmark = pytest.mark.anyio

TARGET = "tests.crash.caller:app"


@requirement("engine:94")
@pytest.mark.parametrize("how", ["kill", "terminate"])
async def test_ended_while_a_callers_tool_runs_the_call_is_an_orphan_and_runs_never_again(
    folder: Path, asked, ran, how: str
) -> None:
    async with process(folder, TARGET) as server:
        await server.started()
        tab = await server.tab()
        await tab.opened()
        await tab.send({"type": "rpc", "id": "1", "method": "ask", "args": []})
        await tab.seen(lambda f: f["type"] == "begun")
        await (server.kill() if how == "kill" else server.terminate())
        assert "Left behind" not in server.log()
    async with process(folder, TARGET) as server:
        await server.started()
        tab = await server.tab()
        calls = [part for message in await server.stored() for part in tool_parts(message)]
        assert all(part["state"] == "output-error" for part in calls)
        assert len(calls) == 1 or how == "kill", "an orderly end keeps what was shown before"
        assert await result_of(tab, "pending") == 0
        await tab.send(result("c-timezone", "UTC"))
        await check_goes_on(server, tab, asked)
    assert ran() == ["timezone"]
