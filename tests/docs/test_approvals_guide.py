"""The treasurer and the clerk of the guide to approvals."""

from typing import Any

import pytest

from docs_src import approvals
from perdure.testing import ScriptedModel, call, say
from tests.agent.calls import said
from tests.agent.deciding import approval, continued, part_of, result
from tests.support import Serve
from tests.support.fixtures import log, serve

__all__ = ["log", "serve"]

pytestmark = pytest.mark.anyio


def playing(kind: Any, *steps: Any) -> Any:
    return type("Agent", (kind,), {"model": ScriptedModel(steps)})


async def test_the_treasurer_asks_about_what_is_large_or_important(serve: Serve, monkeypatch: Any) -> None:
    monkeypatch.setattr(approvals, "FILES", {"/tmp/notes", "/important/plan"})
    calls = [
        call("pay", {"to": "Ann", "amount": 5}, id="c1"),
        call("pay", {"to": "Ann", "amount": 5000}, id="c2"),
        call("delete_file", {"path": "/tmp/notes"}, id="c3"),
        call("delete_file", {"path": "/important/plan"}, id="c4"),
        call("pick_card", id="c5"),
    ]
    server = await serve(playing(approvals.Treasurer, calls, say("Done.")))
    tab = await server.tab()
    await tab.ask("r1", "Go")
    await tab.done("r1")
    stored = await server.stored()
    states = {each: part_of(stored, each)["state"] for each in ("c1", "c2", "c3", "c4", "c5")}
    asked = [each for each, state in states.items() if state == "approval-requested"]
    assert asked == ["c2", "c4", "c5"]
    await tab.send(approval("c2", input={"to": "Ann", "amount": 500}))
    await tab.send(approval("c4", approved=False, reason="Not the plan."))
    await tab.send(approval("c5"))
    await tab.send(result("c5", "the blue one"))
    await continued(tab)
    stored = await server.stored()
    assert part_of(stored, "c2")["output"] == "Ann got 500.0."
    assert part_of(stored, "c4")["state"] == "output-denied"
    assert part_of(stored, "c5")["output"] == "the blue one"
    assert {"/important/plan"} == approvals.FILES


async def test_the_clerk_is_told_over_http(serve: Serve) -> None:
    calls = [call("pay", {"to": to, "amount": 5000}, id=f"c{to}") for to in ("Ann", "Bob")]
    server = await serve(playing(approvals.Clerk, calls, say("Done.")))
    tab = await server.tab()
    await tab.ask("r1", "Go")
    await tab.done("r1")
    hook = "/agents/agent/room/approvals"
    waiting = (await server.get(hook)).json()
    assert [each["input"]["to"] for each in waiting] == ["Ann", "Bob"]
    wrong = await server.request("POST", hook, json={"id": "cAnn", "approved": True, "input": {"amount": "much"}})
    assert wrong.status_code == 422
    assert "amount" in wrong.json()["error"]
    yes = {"id": "cAnn", "approved": True}
    no = {"id": "cBob", "approved": False, "reason": "Not this month."}
    assert [(await server.request("POST", hook, json=each)).json() for each in (yes, no, no)] == [
        {"taken": True},
        {"taken": True},
        {"taken": False},
    ]
    last = await server.tab()
    if (await last.probe("end"))["type"] != "cf_agent_stream_resume_none":
        await continued(last)
    stored = await server.stored()
    assert said(stored)[1] == "Done."
    assert part_of(stored, "cAnn")["output"] == "Ann got 5000.0."
    assert part_of(stored, "cBob")["approval"]["reason"] == "Not this month."
