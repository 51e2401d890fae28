"""Questions that the server's own code answers: a method, a webhook, a schedule, another agent."""

import asyncio
from pathlib import Path
from typing import Any

import pytest
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from perdure import PendingApproval, callable, client_tool, tool
from perdure.testing import Gate, ScriptedModel, call, pause, say
from tests.agent.asking import CHILD, Child, Parent, scripted
from tests.agent.calls import said
from tests.agent.deciding import (
    approval,
    check_prompts,
    continued,
    nothing_comes,
    part_of,
    remover,
    result,
    seen_state,
    stored_part,
)
from tests.requirements import requirement
from tests.support import Doing, Serve, Tab, agent, do, serving, user_message

pytestmark = pytest.mark.anyio


def remove(path: str = "x", id: str = "c1") -> Any:
    return call("remove", {"path": path}, id=id)


def doing(model: ScriptedModel, *tools: Any, **fields: Any) -> Any:
    return type("Agent", (Doing, agent(model, *tools)), fields)


async def pending(agent: Any) -> list[PendingApproval]:
    return agent.pending_approvals()


# ── a method ────────────────────────────────────────────────────────


async def test_what_waits_for_a_decision_is_listed_in_the_order_of_the_questions(serve: Serve) -> None:
    calls = [remove("a", "c1"), call("locate", id="c2"), call("pay", {"amount": 5}, id="c3"), remove("tmp", "c4")]
    model = ScriptedModel([calls, say("Done.")])
    tools = [remover([], lambda path: path != "tmp"), client_tool("locate"), client_tool("pay", needs_approval=True)]
    server = await serve(doing(model, *tools))
    tab = await server.tab()
    assert await do(tab, pending) == []
    await tab.ask("r1", "Go")
    await tab.done("r1")
    first, second = await do(tab, pending)
    assert (first.tool_call_id, first.tool_name, first.input) == ("c1", "remove", {"path": "a"})
    assert (second.tool_call_id, second.tool_name, second.input) == ("c3", "pay", {"amount": 5})
    stored = await server.stored()
    assert {first.message_id, second.message_id} == {stored[1]["id"]}
    assert first.approval_id == part_of(stored, "c1")["approval"]["id"]
    assert first.expires_ms is None
    assert first.asked_ms <= second.asked_ms
    first.input["path"] = "/"
    assert (await do(tab, pending))[0].input == {"path": "a"}
    await tab.send(approval("c1", approved=False))
    await tab.settle()
    assert [each.tool_call_id for each in await do(tab, pending)] == ["c3"]
    await tab.send(approval("c3"))
    await tab.settle()
    assert await do(tab, pending) == [], "an approved client tool waits for its page, not for a decision"


async def test_a_question_is_listed_and_may_be_answered_while_the_turn_still_runs(serve: Serve) -> None:
    gate, ran = Gate(), list[Any]()

    @tool
    async def slow() -> None:
        """Slow."""
        await gate.passed()

    model = ScriptedModel([[remove(), call("slow", id="c2")], say("Done.")])
    server = await serve(doing(model, remover(ran), slow))
    tab = await server.tab()
    await tab.ask("r1", "Go")
    await gate.reached()
    await tab.seen(lambda f: "tool-approval-request" in f.get("body", ""))
    (question,) = await do(tab, pending)
    assert await do(tab, lambda agent: agent.approve(question.tool_call_id))
    assert await do(tab, pending) == []
    gate.open()
    await continued(tab)
    assert ran == ["x"]


@pytest.mark.parametrize("approved", [True, False])
async def test_code_decides_without_any_browser_and_every_tab_that_comes_sees_it(serve: Serve, approved: bool) -> None:
    ran: list[Any] = []
    model = ScriptedModel([remove(), say("So be it.")])
    ended = asyncio.Event()
    kind = doing(model, remover(ran), on_chat_response=lambda self, response: response.continuation and ended.set())
    server = await serve(kind)
    tab = await server.tab()
    result = await do(tab, lambda agent: agent.save_messages("Remove x"))
    assert (result.status, result.continuation) == ("completed", False)

    async def decide(agent: Any) -> bool:
        await tab.close()
        return await (agent.approve("c1") if approved else agent.reject("c1", "Not that one."))

    assert await do(tab, decide) is True
    await asyncio.wait_for(ended.wait(), 20)
    assert ran == (["x"] if approved else [])
    part = await stored_part(server)
    assert part["state"] == ("output-available" if approved else "output-denied")
    assert part["approval"].get("reason") == (None if approved else "Not that one.")
    assert said(await server.stored()) == ["Remove x", "So be it."]
    check_prompts(model.requests)
    model.assert_done()


async def test_a_decision_returns_once_it_is_stored_and_only_the_first_one_is_taken(serve: Serve) -> None:
    model = ScriptedModel([remove(), say("Kept.")])
    server = await serve(doing(model, remover([])))
    tab = await server.tab()
    await tab.ask("r1", "Go")
    await tab.done("r1")

    async def script(agent: Any) -> list[bool]:
        first = await agent.reject("c1", "No.")
        assert (await stored_part(server))["state"] == "output-denied"
        return [first, await agent.reject("c1"), await agent.approve("c1"), await agent.approve("unknown")]

    assert await do(tab, script) == [True, False, False, False]
    await continued(tab)
    assert (await stored_part(server))["approval"]["reason"] == "No."
    model.assert_done()


async def test_several_decisions_at_once_start_one_continuation(serve: Serve) -> None:
    ran: list[Any] = []
    model = ScriptedModel([[remove("a", "c1"), remove("b", "c2"), remove("c", "c3")], say("Done.")])
    server = await serve(doing(model, remover(ran)))
    tab = await server.tab()
    await tab.ask("r1", "Go")
    await tab.done("r1")

    async def script(agent: Any) -> list[bool]:
        return await asyncio.gather(agent.approve("c1"), agent.reject("c2"), agent.approve("c3"), agent.approve("c2"))

    assert await do(tab, script) == [True, True, True, False]
    await continued(tab)
    await nothing_comes(tab)
    assert sorted(ran) == ["a", "c"]
    model.assert_done()


async def test_a_decision_of_code_may_leave_it_to_another_to_go_on(serve: Serve) -> None:
    ran: list[Any] = []
    model = ScriptedModel([[remove("a", "c1"), remove("b", "c2")], say("Done.")])
    server = await serve(doing(model, remover(ran)))
    tab = await server.tab()
    await tab.ask("r1", "Go")
    await tab.done("r1")
    assert await do(tab, lambda agent: agent.approve("c1", go_on=False))
    await nothing_comes(tab)
    assert await do(tab, lambda agent: agent.reject("c2", go_on=False))
    await nothing_comes(tab)
    assert (ran, len(model.requests)) == ([], 1)


@requirement("engine:66")
@pytest.mark.parametrize("tab_first", [True, False])
async def test_of_a_tab_and_the_servers_code_the_first_wins(serve: Serve, tab_first: bool) -> None:
    ran: list[Any] = []
    model = ScriptedModel([remove(), say("Fine.")])
    server = await serve(doing(model, remover(ran)))
    tab, other = await server.tab(), await server.tab()
    await tab.ask("r1", "Go")
    await tab.done("r1")

    async def script(agent: Any) -> bool:
        if tab_first:
            await tab.send(approval("c1", approved=False))
            await seen_state(other, "c1", "output-denied")
        return await agent.approve("c1")

    assert await do(other, script) is not tab_first
    if not tab_first:
        await tab.send(approval("c1", approved=False))
    await continued(tab)
    await nothing_comes(tab)
    assert ran == ([] if tab_first else ["x"])
    assert (await stored_part(server))["state"] == ("output-denied" if tab_first else "output-available")
    model.assert_done()


async def test_a_tab_that_gives_the_result_before_the_code_decides_wins(serve: Serve) -> None:
    model = ScriptedModel([remove(), say("Fine.")])
    server = await serve(doing(model, remover([])))
    tab = await server.tab()
    await tab.ask("r1", "Go")
    await tab.done("r1")
    await tab.send(result("c1", "by hand"))
    await continued(tab)
    assert await do(tab, lambda agent: agent.approve("c1")) is False
    assert (await stored_part(server))["output"] == "by hand"


async def test_a_tool_may_decide_on_the_call_beside_it(serve: Serve) -> None:
    ran: list[Any] = []

    class Chief(Doing, agent(ScriptedModel([]), name="Base")):
        @tool
        async def wave_through(self) -> int:
            """Approve all."""
            return sum([await self.approve(each.tool_call_id) for each in self.pending_approvals()])

        def get_tools(self) -> Any:
            return [remover(ran), self.wave_through]

    model = ScriptedModel([[remove(), call("wave_through", id="c2")], say("Done.")])
    server = await serve(type("Agent", (Chief,), {"model": model}))
    tab = await server.tab()
    await tab.ask("r1", "Go")
    await continued(tab)
    assert ran == ["x"]
    assert (await stored_part(server, "c2"))["output"] == 1


# ── a webhook, a schedule ───────────────────────────────────────────


async def test_a_webhook_decides(serve: Serve) -> None:
    ran: list[Any] = []
    model = ScriptedModel([[remove("a", "c1"), remove("b", "c2")], say("Done.")])

    async def on_request(self: Any, request: Request) -> Response:
        if request.method == "GET":
            return JSONResponse([{"id": each.tool_call_id, "input": each.input} for each in self.pending_approvals()])
        decision = await request.json()
        if decision["yes"]:
            taken = await self.approve(decision["id"], decision.get("input"))
        else:
            taken = await self.reject(decision["id"], decision.get("reason"))
        return JSONResponse({"taken": taken})

    server = await serve(agent(model, remover(ran), on_request=on_request))
    tab = await server.tab()
    await tab.ask("r1", "Go")
    await tab.done("r1")
    await tab.close()
    hook = "/agents/agent/room/approvals"
    assert (await server.get(hook)).json() == [
        {"id": "c1", "input": {"path": "a"}},
        {"id": "c2", "input": {"path": "b"}},
    ]
    for body in ({"id": "c1", "yes": True, "input": {"path": "A"}}, {"id": "c2", "yes": False, "reason": "No."}):
        assert (await server.request("POST", hook, json=body)).json() == {"taken": True}
        assert (await server.request("POST", hook, json=body)).json() == {"taken": False}
    late = await server.tab()
    await _at_rest(late, server)
    assert ran == ["A"]
    assert said(await server.stored()) == ["Go", "Done."]
    model.assert_done()


async def _at_rest(tab: Tab, server: Any) -> None:
    """Returns once no turn runs: one that is asked for now is the last."""
    probe = await tab.probe("rest")
    if probe["type"] != "cf_agent_stream_resume_none":
        await continued(tab)


async def test_a_schedule_decides(serve: Serve) -> None:
    ran: list[Any] = []

    async def decide(self: Any, call: str) -> None:
        await self.approve(call)

    model = ScriptedModel([remove(), say("Gone.")])
    server = await serve(doing(model, remover(ran), decide=decide))
    tab = await server.tab()
    await tab.ask("r1", "Go")
    await tab.done("r1")

    async def plan(agent: Any) -> None:
        agent.schedule(0, agent.decide, "c1")

    await do(tab, plan)
    await continued(tab)
    assert ran == ["x"]


# ── another agent ───────────────────────────────────────────────────


async def test_a_parent_asks_a_child_and_decides_on_its_calls(tmp_path: Path) -> None:
    ran: list[Any] = []
    model = ScriptedModel([[remove("a", "c1"), remove("b", "c2")], say("Done.")])
    child = scripted(Child, get_tools=lambda self: [remover(ran)])
    child.model = model

    async def script(parent: Any) -> None:
        asked = await parent.sub_agent(child, "c")
        result = await asked.chat("Go")
        assert result.status == "completed"
        assert [part["state"] for part in result.message["parts"] if part["type"] == "tool-remove"] == [
            "approval-requested",
            "approval-requested",
        ]
        questions = await asked.pending_approvals()
        assert [each.input for each in questions] == [{"path": "a"}, {"path": "b"}]
        assert await asked.approve(questions[0].tool_call_id)
        assert await asked.reject(questions[1].tool_call_id, "Not b.")
        assert await asked.approve(questions[1].tool_call_id) is False

    async with serving(Parent, data=tmp_path, sub_agents=[child]) as server:
        page = await server.tab(CHILD, agent="parent")
        await page.opened()
        await do(await server.tab("p", agent="parent"), script)
        await continued(page)
        assert ran == ["a"]
        stored = await server.stored(CHILD, agent="parent")
        assert said(stored) == ["Go", "Done."]
        assert part_of(stored, "c2")["approval"]["reason"] == "Not b."
    check_prompts(model.requests)
    model.assert_done()


async def test_a_client_may_be_given_methods_to_decide_with(serve: Serve) -> None:
    ran: list[Any] = []
    model = ScriptedModel([remove(), say("Gone.")])
    base = agent(model, remover(ran))

    async def decide(self: Any, call: str, yes: bool) -> bool:
        return await (self.approve(call) if yes else self.reject(call))

    server = await serve(type("Agent", (base,), {"decide": callable(decide)}))
    tab = await server.tab()
    await tab.ask("r1", "Go")
    await tab.done("r1")
    await tab.send({"type": "rpc", "id": "1", "method": "approve", "args": ["c1"]})
    refusal = await tab.seen(lambda f: f["type"] == "rpc" and f["id"] == "1")
    assert refusal["success"] is False, "no page may call it by itself"
    await tab.send({"type": "rpc", "id": "2", "method": "decide", "args": ["c1", True]})
    assert (await tab.seen(lambda f: f["type"] == "rpc" and f["id"] == "2"))["result"] is True
    await continued(tab)
    assert ran == ["x"]


# ── waiting turns ───────────────────────────────────────────────────


async def test_a_decision_while_a_message_waits_is_stored_and_left_to_its_turn(serve: Serve) -> None:
    """The answer of the waiting message sees it; the call does not run behind its back."""
    ran: list[Any] = []
    gate = Gate()

    @tool
    async def slow() -> None:
        """Slow."""
        await gate.passed()

    model = ScriptedModel([[remove(), call("slow", id="c2")], [pause(gate), say("Hello.")]])
    server = await serve(doing(model, remover(ran), slow))
    tab = await server.tab()
    first = user_message("Go", "u1")
    await tab.ask("r1", first)
    await gate.reached()
    await tab.seen(lambda f: "tool-approval-request" in f.get("body", ""))
    await tab.ask("r2", first, user_message("Hello", "u2"))
    await tab.settle()
    assert await do(tab, lambda agent: agent.approve("c1"))
    await seen_state(tab, "c1", "approval-responded")
    gate.open()
    await tab.done("r2")
    await nothing_comes(tab)
    assert ran == []
    assert (await stored_part(server))["errorText"].startswith("The tool call was approved but did not run")
    check_prompts(model.requests)
    model.assert_done()
