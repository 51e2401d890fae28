"""What an approved call runs with: the arguments that a person was shown, or gave instead. Nothing else runs."""

import asyncio
from datetime import date
from typing import Any

import pytest
from pydantic import BaseModel, Field

from perdure import InvalidToolInput, Think, Tool, TurnConfig, allow, block, client_tool, substitute, tool
from perdure.testing import Gate, ScriptedModel, call, say
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
from tests.support import Doing, ErrorLog, Serve, Tab, chunks_of, do
from tests.support import agent as agent_of

pytestmark = pytest.mark.anyio


def agent(model: ScriptedModel, *tools: Tool, **fields: Any) -> type[Think]:
    return type("Agent", (Doing, agent_of(model, *tools)), fields)


def remove(path: Any = "x", id: str = "c1") -> Any:
    return call("remove", {"path": path}, id=id)


async def asked(serve: Serve, kind: type[Think]) -> tuple[Any, Tab]:
    """A server on which the agent's first turn is over, and the tab that asked."""
    server = await serve(kind)
    tab = await server.tab()
    await tab.ask("r1", "Go")
    assert (await tab.done("r1"))["outcome"] == "completed"
    return server, tab


# ── repaired calls ──────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        (call("remove", {"file": "/important/x"}, id="c1"), {"path": "/important/x"}),
        (call("remove", raw='{"path": "/important', id="c1"), {"path": "/important/x"}),
        (call("removes", {"path": "/important/x"}, id="c1"), {"path": "/important/x"}),
    ],
    ids=["arguments that do not fit", "no JSON", "an unknown tool"],
)
async def test_a_repaired_call_is_asked_about_with_what_will_run(serve: Serve, written: Any, meant: Any) -> None:
    ran: list[Any] = []
    model = ScriptedModel([written, say("Gone.")])
    tool = remover(ran, lambda path: path.startswith("/important/"))
    kind = agent(model, tool, repair_tool_call=lambda self, name, input, error: ("remove", meant))
    server, tab = await asked(serve, kind)
    part = await stored_part(server)
    assert (part["type"], part["state"], part["input"]) == ("tool-remove", "approval-requested", meant)
    chunks = chunks_of(tab.frames, "r1")
    assert [c["input"] for c in chunks if c["type"] == "tool-input-available"][-1] == meant
    assert chunks[-3]["type"] == "tool-approval-request"
    assert ran == []
    await tab.send(approval("c1"))
    await continued(tab)
    assert ran == ["/important/x"]
    check_prompts(model.requests)


async def test_a_repaired_call_that_is_harmless_runs_at_once_as_it_was_repaired(serve: Serve) -> None:
    ran: list[Any] = []
    repairs: list[Any] = []

    def repair(self: Any, name: str, input: Any, error: str) -> Any:
        repairs.append(input)
        return ("remove", {"path": "/tmp/x"})

    model = ScriptedModel([call("remove", {"path": 5}, id="c1"), say("Gone.")])
    kind = agent(model, remover(ran, lambda path: path.startswith("/important/")), repair_tool_call=repair)
    server, _ = await asked(serve, kind)
    part = await stored_part(server)
    assert (part["state"], part["input"]) == ("output-available", {"path": "/tmp/x"})
    assert (ran, repairs) == (["/tmp/x"], [{"path": 5}])


async def test_a_repair_that_does_not_fit_either_is_the_models_mistake(serve: Serve) -> None:
    ran: list[Any] = []
    model = ScriptedModel([call("remove", {"path": 5}, id="c1"), say("Sorry.")])
    kind = agent(model, remover(ran), repair_tool_call=lambda self, name, input, error: ("remove", {"path": []}))
    server, _ = await asked(serve, kind)
    part = await stored_part(server)
    assert (part["state"], part["input"], ran) == ("output-error", {"path": 5}, [])
    check_prompts(model.requests)


# ── edited input ────────────────────────────────────────────────────


@pytest.mark.parametrize("way", ["frame", "method"])
async def test_edited_input_is_what_runs_and_what_everybody_sees(serve: Serve, way: str) -> None:
    ran: list[Any] = []
    model = ScriptedModel([remove(), say("Gone.")])
    server, tab = await asked(serve, agent(model, remover(ran)))
    other = await server.tab()
    await other.opened()
    if way == "frame":
        await tab.send(approval("c1", input={"path": "y"}, reason="You meant y."))
    else:
        assert await do(other, lambda agent: agent.approve("c1", {"path": "y"}))
    shown = await seen_state(other, "c1", "approval-responded")
    assert shown["input"] == {"path": "y"}
    assert shown["approval"].get("reason") == ("You meant y." if way == "frame" else None)
    await continued(tab)
    assert ran == ["y"]
    part = await stored_part(server)
    assert (part["input"], part["output"]) == ({"path": "y"}, {"removed": "y"})
    assert part_of(model.requests[1].messages, "c1")["input"] == {"path": "y"}
    check_prompts(model.requests)


class Removal(BaseModel):
    path: str
    after: date = Field(default=date(2020, 1, 1))


UNFIT = [{"path": 5}, {}, {"path": "y", "force": True}]


@pytest.mark.parametrize("edited", UNFIT)
async def test_edited_input_that_does_not_fit_is_refused_and_the_question_stays(serve: Serve, edited: Any) -> None:
    ran: list[Any] = []
    model = ScriptedModel([remove(), say("Gone.")])
    server, tab = await asked(serve, agent(model, remover(ran)))
    other = await server.tab()
    await other.opened()
    before = await stored_part(server)
    seen = len(other.frames)
    await tab.send(approval("c1", input=edited))
    shown = await seen_state(tab, "c1", "approval-requested")
    assert {**shown, "approval": before["approval"]} == before
    assert shown["approval"]["error"].startswith("Invalid input for tool remove:")
    await nothing_comes(tab)
    assert await stored_part(server) == before
    await other.settle()
    assert len(other.frames) == seen, "only the one who decided is told"
    with pytest.raises(InvalidToolInput, match="Invalid input for tool remove"):
        await do(tab, lambda agent: agent.approve("c1", edited))
    assert await stored_part(server) == before
    assert len(await do(tab, _pending)) == 1
    await tab.send(approval("c1"))
    await continued(tab)
    assert ran == ["x"]
    assert "error" not in (await stored_part(server))["approval"]


async def _pending(agent: Any) -> Any:
    return agent.pending_approvals()


async def test_edited_input_that_does_not_fit_is_refused_while_the_turn_still_streams(serve: Serve) -> None:
    gate = Gate()

    @tool
    async def slow() -> None:
        """Slow."""
        await gate.passed()

    model = ScriptedModel([[remove(), call("slow", id="c2")]])
    server = await serve(agent(model, remover([]), slow))
    tab = await server.tab()
    await tab.ask("r1", "Go")
    await tab.seen(lambda f: "tool-approval-request" in f.get("body", ""))
    await tab.send(approval("c1", input={"path": 5}))
    shown = await seen_state(tab, "c1", "approval-requested")
    assert shown["approval"]["error"].startswith("Invalid input for tool remove:")
    gate.open()
    await tab.done("r1")
    assert (await stored_part(server))["state"] == "approval-requested"


async def test_who_edits_decides_before_those_who_come_while_the_tools_are_found_out(serve: Serve) -> None:
    gate, ran = Gate(), list[Any]()
    slow: list[bool] = []

    async def get_tools(self: Any) -> Any:
        if slow:
            await gate.passed()
        return [remover(ran)]

    model = ScriptedModel([remove(), say("Gone.")])
    server, tab = await asked(serve, agent(model, get_tools=get_tools))
    other = await server.tab()
    await other.opened()
    slow.append(True)
    await tab.send(approval("c1", input={"path": "y"}))
    await gate.reached()
    await other.send(approval("c1", approved=False))
    probing = asyncio.ensure_future(tab.probe("right-behind"))
    gate.open()
    assert (await probing)["type"] == "cf_agent_stream_pending"
    await continued(tab)
    assert ran == ["y"]
    assert (await stored_part(server))["state"] == "output-available"
    model.assert_done()


async def test_edited_input_of_a_call_that_is_decided_already_is_not_looked_at(serve: Serve) -> None:
    model = ScriptedModel([remove(), say("Kept.")])
    _, tab = await asked(serve, agent(model, remover([])))
    await tab.send(approval("c1", approved=False))
    await continued(tab)
    assert await do(tab, lambda agent: agent.approve("c1", {"path": 5})) is False
    assert await do(tab, lambda agent: agent.approve("unknown", {"path": 5})) is False


async def test_edited_input_given_by_code_is_kept_as_the_json_that_it_is(serve: Serve) -> None:
    ran: list[Any] = []
    order = Tool(
        "order", description="Order.", input_schema={"type": "object"}, execute=ran.append, needs_approval=True
    )
    model = ScriptedModel([call("order", {"items": []}, id="c1"), call("order", {}, id="c2"), say("Ordered.")])
    server, tab = await asked(serve, agent(model, order))
    with pytest.raises(InvalidToolInput, match="JSON"):
        await do(tab, lambda agent: agent.approve("c1", {"items": object()}))
    with pytest.raises(InvalidToolInput, match="object"):
        await do(tab, lambda agent: agent.approve("c1", ["tea"]))
    given = {"items": ["tea"], "by": date(2030, 1, 1)}

    async def approve(agent: Any) -> None:
        assert await agent.approve("c1", given)
        given["items"].append("a yacht")

    await do(tab, approve)
    await continued(tab)
    assert ran == [{"items": ["tea"], "by": "2030-01-01"}]
    assert (await stored_part(server))["input"] == {"items": ["tea"], "by": "2030-01-01"}


async def test_a_client_tool_runs_with_the_edited_input_too(serve: Serve) -> None:
    pay = client_tool("pay", schema=Removal, needs_approval=True)
    model = ScriptedModel([call("pay", {"path": "x"}, id="c1"), say("Paid.")])
    server, tab = await asked(serve, agent(model, pay))
    await tab.send(approval("c1", input={"path": "x", "after": "soon"}))
    shown = await seen_state(tab, "c1", "approval-requested")
    assert "after" in shown["approval"]["error"]
    await tab.send(approval("c1", input={"path": "y"}))
    assert (await seen_state(tab, "c1", "approval-responded"))["input"] == {"path": "y"}
    await tab.send(result("c1", "paid"))
    await continued(tab)
    part = await stored_part(server)
    assert (part["input"], part["output"]) == ({"path": "y"}, "paid")


async def test_edited_input_when_the_tools_cannot_be_found_out_is_refused(serve: Serve, log: ErrorLog) -> None:
    broken: list[bool] = []
    tools = [remover([])]

    def get_tools(self: Any) -> Any:
        if broken:
            raise RuntimeError("the catalogue is down")
        return tools

    model = ScriptedModel([remove(), say("Gone.")])
    _, tab = await asked(serve, agent(model, get_tools=get_tools))
    broken.append(True)
    await tab.send(approval("c1", input={"path": "y"}))
    shown = await seen_state(tab, "c1", "approval-requested")
    assert "catalogue" not in shown["approval"]["error"]
    log.expect("could not be checked")
    with pytest.raises(RuntimeError, match="catalogue"):
        await do(tab, lambda agent: agent.approve("c1", {"path": "y"}))
    broken.clear()
    await tab.send(approval("c1", input={"path": "y"}))
    await continued(tab)
    model.assert_done()


@pytest.mark.parametrize(("edited", "ran_with"), [({"path": "y"}, ["y"]), ({"path": 5}, [])])
async def test_edited_input_of_a_tool_that_only_turns_have_is_checked_when_it_runs(
    serve: Serve, edited: Any, ran_with: Any
) -> None:
    ran: list[Any] = []
    extra = remover(ran)
    model = ScriptedModel([remove(), say("Gone.")])
    kind = agent(model, before_turn=lambda self, ctx: TurnConfig(tools=[extra]))
    server, tab = await asked(serve, kind)
    await tab.send(approval("c1", input=edited))
    await continued(tab)
    part = await stored_part(server)
    assert ran == ran_with
    assert part["state"] == ("output-available" if ran_with else "output-error")
    if not ran_with:
        assert part["errorText"].startswith("Invalid input for tool remove:")
    check_prompts(model.requests)


# ── before_tool_call ────────────────────────────────────────────────


@requirement("engine:72")
@pytest.mark.parametrize("decision", [None, allow(), allow({"path": "x"})], ids=["nothing", "allow", "the same input"])
async def test_the_hook_before_a_call_comes_after_the_approval_and_then_it_runs_once(
    serve: Serve, decision: Any
) -> None:
    ran: list[Any] = []
    heard: list[Any] = []

    def before(self: Any, ctx: Any) -> Any:
        heard.append((ctx.tool_name, ctx.tool_call_id, ctx.input))
        return decision

    model = ScriptedModel([remove(), say("Gone.")])
    _, tab = await asked(serve, agent(model, remover(ran), before_tool_call=before))
    assert heard == []
    await tab.send(approval("c1"))
    await continued(tab)
    assert heard == [("remove", "c1", {"path": "x"})]
    assert ran == ["x"]
    model.assert_done()


@requirement("engine:72", "engine:73")
@pytest.mark.parametrize("edited", [None, {"path": "z"}])
async def test_a_hook_that_wants_other_arguments_than_the_approved_ones_is_refused(serve: Serve, edited: Any) -> None:
    ran: list[Any] = []
    model = ScriptedModel([remove(), say("Sorry.")])
    kind = agent(model, remover(ran), before_tool_call=lambda self, ctx: allow({"path": "y"}))
    server, tab = await asked(serve, kind)
    await tab.send(approval("c1", **({} if edited is None else {"input": edited})))
    assert (await continued(tab))["outcome"] == "completed"
    part = await stored_part(server)
    assert (part["state"], ran) == ("output-error", [])
    assert "other arguments" in part["errorText"]
    assert part["input"] == (edited or {"path": "x"})
    check_prompts(model.requests)
    model.assert_done()


@requirement("engine:72")
async def test_arguments_of_a_hook_that_would_have_needed_approval_do_not_run_without_it(serve: Serve) -> None:
    ran: list[Any] = []

    def before(self: Any, ctx: Any) -> Any:
        return allow({"path": ctx.input["path"].replace("~", "/important")})

    model = ScriptedModel([[remove("~/x", "c1"), remove("y", "c2")], say("Sorry.")])
    tool = remover(ran, lambda path: path.startswith("/important/"))
    server, _ = await asked(serve, agent(model, tool, before_tool_call=before))
    part = await stored_part(server, "c1")
    assert part["state"] == "output-error"
    assert "need approval" in part["errorText"]
    assert ran == ["y"]


@pytest.mark.parametrize(
    ("decision", "output"), [(block("Not today."), "Not today."), (substitute({"ok": 1}), {"ok": 1})]
)
async def test_a_hook_may_keep_an_approved_call_from_running(serve: Serve, decision: Any, output: Any) -> None:
    ran: list[Any] = []
    model = ScriptedModel([remove(), say("Fine.")])
    server, tab = await asked(serve, agent(model, remover(ran), before_tool_call=lambda self, ctx: decision))
    await tab.send(approval("c1"))
    await continued(tab)
    part = await stored_part(server)
    assert (part["state"], part["output"], ran) == ("output-available", output, [])
    assert part["approval"]["approved"] is True
    model.assert_done()


async def test_the_hook_is_not_asked_about_denied_calls(serve: Serve) -> None:
    heard: list[Any] = []
    model = ScriptedModel([remove(), say("Fine.")])
    _, tab = await asked(serve, agent(model, remover([]), before_tool_call=lambda self, ctx: heard.append(ctx)))
    await tab.send(approval("c1", approved=False))
    await continued(tab)
    assert heard == []


async def test_an_approved_call_runs_although_the_model_may_not_call_the_tool_any_more(serve: Serve) -> None:
    ran: list[Any] = []
    model = ScriptedModel([remove(), say("Gone.")])

    def before(self: Any, ctx: Any) -> Any:
        return TurnConfig(active_tools=[]) if ctx.continuation else None

    server, tab = await asked(serve, agent(model, remover(ran), before_turn=before))
    await tab.send(approval("c1"))
    await continued(tab)
    assert (await stored_part(server))["state"] == "output-available"
    assert ran == ["x"]
    assert model.requests[1].tools == []


# ── tools that changed meanwhile ────────────────────────────────────


@requirement("fault:AP-19")
@pytest.mark.parametrize("edited", [False, True])
async def test_an_approved_call_of_a_tool_that_is_gone_is_an_error_and_the_model_goes_on(
    serve: Serve, edited: bool
) -> None:
    first = ScriptedModel([remove()])
    server, tab = await asked(serve, agent(first, remover([])))
    await server.stop()
    second = ScriptedModel([say("It is not there any more.")])
    server = await serve(agent(second))
    tab = await server.tab()
    await tab.send(approval("c1", **({"input": {"path": "y"}} if edited else {})))
    assert (await continued(tab))["outcome"] == "completed"
    part = await stored_part(server)
    assert part["state"] == "output-error"
    assert "not available any more" in part["errorText"]
    check_prompts(second.requests)
    second.assert_done()


@requirement("fault:AP-19")
async def test_an_approved_call_of_a_tool_that_pages_run_now_is_an_error_and_the_model_goes_on(serve: Serve) -> None:
    first = ScriptedModel([remove()])
    server, tab = await asked(serve, agent(first, remover([])))
    await server.stop()
    second = ScriptedModel([say("Ask the page.")])
    server = await serve(agent(second, client_tool("remove")))
    tab = await server.tab()
    await tab.send(approval("c1"))
    await continued(tab)
    part = await stored_part(server)
    assert part["state"] == "output-error"
    assert "not available any more" in part["errorText"]
    check_prompts(second.requests)


async def test_an_approved_call_that_does_not_fit_the_tool_any_more_is_an_error(serve: Serve) -> None:
    first = ScriptedModel([remove()])
    server, tab = await asked(serve, agent(first, remover([])))
    await server.stop()

    @tool(name="remove", needs_approval=True)
    async def changed(paths: list[str]) -> None:
        """Remove files."""
        raise AssertionError("ran")

    repaired = {"repair_tool_call": lambda self, name, input, error: ("remove", {"paths": ["x"]})}
    second = ScriptedModel([say("Sorry.")])
    server = await serve(agent(second, changed, **repaired))
    tab = await server.tab()
    await tab.send(approval("c1"))
    await continued(tab)
    part = await stored_part(server)
    assert part["state"] == "output-error"
    assert "paths" in part["errorText"]
