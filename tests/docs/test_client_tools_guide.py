"""The guides of the guide to client tools."""

from typing import Any

import pytest

from docs_src import client_tools
from perdure.testing import ScriptedModel, call, say
from tests.agent.calls import result_of, said, tool_parts
from tests.server.answering import ask_for_calls, continued
from tests.support import Serve, approval, tool_result
from tests.support.fixtures import log, serve

__all__ = ["log", "serve"]

pytestmark = pytest.mark.anyio


def playing(kind: Any, *steps: Any, **fields: Any) -> Any:
    return type("Agent", (kind,), {"model": ScriptedModel(steps), **fields})


async def test_the_guide_has_the_page_run_its_tools(serve: Serve) -> None:
    calls = [
        call("locate", id="c1"),
        call("choose", {"question": "Which?", "options": ["a", "b"]}, id="c2"),
        call("choose", {"question": "Which?", "options": ["a"]}, id="c3"),
        call("read_clipboard", id="c4"),
    ]
    server = await serve(playing(client_tools.Guide, calls, say("There you are.")))
    tab = await ask_for_calls(server)
    states = [part["state"] for part in tool_parts((await server.stored())[1])]
    assert states == ["input-available", "input-available", "output-error", "approval-requested"]
    await tab.send(approval("c4"))
    for each, output in {"c4": "copied", "c1": [59.9, 10.7], "c2": "b"}.items():
        await tab.send(tool_result(each, output))
    await continued(tab)
    outputs = [part.get("output") for part in tool_parts((await server.stored())[1])]
    assert outputs == [[59.9, 10.7], "b", None, "copied"]


async def test_the_thrifty_one_goes_on_with_its_cheap_model(serve: Serve) -> None:
    cheap = ScriptedModel([say("Cheaply.")])
    server = await serve(playing(client_tools.Thrifty, call("locate", id="c1"), cheap_model=cheap))
    tab = await ask_for_calls(server)
    await tab.send(tool_result("c1"))
    await continued(tab)
    assert said(await server.stored()) == ["Go", "Cheaply."]


async def test_the_patient_one_goes_on_when_it_is_told_to(serve: Serve) -> None:
    server = await serve(playing(client_tools.Patient, call("locate", id="c1"), say("Enough.")))
    tab = await ask_for_calls(server)
    await tab.send(tool_result("c1", go_on=False))
    assert await result_of(tab, "enough") == "completed"
    assert said(await server.stored()) == ["Go", "Enough."]
