"""Tools that a page runs: what becomes of their calls and results, and who is told."""

import pytest

from perdure import Think, client_tool, tool
from perdure.testing import ScriptedModel, call, say, strict_provider_errors
from tests.agent.calls import parts_of, said, tool_parts
from tests.requirements import requirement
from tests.server.answering import INTERRUPTED, ask_for_calls, continued, states, updates
from tests.support import (
    Doing,
    Doubles,
    ErrorLog,
    Serve,
    agent,
    approval,
    chunks_of,
    do,
    offer,
    tool_failure,
    tool_result,
    user_message,
)

pytestmark = pytest.mark.anyio

DENIED = "Tool execution denied by user"

# ── a call and its result ─────────────────────────────────────────────


@requirement("protocol:63")
async def test_a_turn_that_stops_at_an_open_call_shows_it_and_ends(serve: Serve) -> None:
    server = await serve(agent(ScriptedModel([[say("Where are you?"), call("locate", {"near": "me"}, id="c1")]])))
    tab, other = await server.tab(), await server.tab()
    await other.opened()
    mark = len(other.frames)
    await tab.ask("r1", "Go", clientTools=offer("locate"))
    await other.done("r1")
    chunks = chunks_of(other.frames, "r1")
    assert chunks[-1] == {"type": "finish", "finishReason": "tool-calls"}
    (*_, snapshot, end) = other.frames[mark:]
    assert snapshot["type"] == "cf_agent_chat_messages"
    assert end == {
        "type": "cf_agent_use_chat_response",
        "id": "r1",
        "body": "",
        "done": True,
        "messageIds": end["messageIds"],
        "outcome": "completed",
    }
    text, part = parts_of(snapshot["messages"][1])
    assert text["text"] == "Where are you?"
    assert part == {"type": "tool-locate", "toolCallId": "c1", "state": "input-available", "input": {"near": "me"}}
    assert snapshot["messages"] == await server.stored()


@requirement("protocol:64", "engine:76", "engine:90", "fault:MT-03")
async def test_a_result_from_any_tab_settles_the_call_and_all_tabs_are_told_once(serve: Serve) -> None:
    model = ScriptedModel([call("a", id="c1"), say("Done.")])
    server = await serve(agent(model))
    asking = await ask_for_calls(server, "a")
    answering, watching = await server.tab(), await server.tab()
    for tab in (answering, watching):
        await tab.opened()
    await answering.send(tool_result("c1", {"deep": [1, None, "ü"]}, tool="a"))
    await continued(watching)
    await asking.send(tool_result("c1", "too late", tool="a"))
    for tab in (asking, answering, watching):
        await continued(tab)
        await tab.settle()
        (message,) = updates(tab)
        (part,) = tool_parts(message)
        assert (part["state"], part["output"], part["preliminary"]) == (
            "output-available",
            {"deep": [1, None, "ü"]},
            False,
        )
    assert said(await server.stored()) == ["Go", "Done."]
    assert len(model.requests) == 2
    shown = tool_parts(model.requests[1].messages[1])
    assert shown[0]["output"] == {"deep": [1, None, "ü"]}


@requirement("protocol:65", "engine:76", "fault:CT-07")
@pytest.mark.parametrize(("text", "shown"), [("no camera", "no camera"), (None, DENIED), ("", DENIED)])
async def test_a_failed_call_has_the_pages_error_and_alone_it_wakes_no_model(
    serve: Serve, text: str | None, shown: str
) -> None:
    model = ScriptedModel([call("a", id="c1")])
    server = await serve(agent(model))
    tab = await ask_for_calls(server, "a")
    await tab.send(tool_failure("c1", text))
    await tab.seen(lambda frame: frame["type"] == "cf_agent_message_updated")
    (part,) = tool_parts((await server.stored())[1])
    assert (part["state"], part["errorText"], "output" in part) == ("output-error", shown, False)
    assert updates(tab) == [(await server.stored())[1]]
    assert (await tab.probe("p"))["reason"] == "idle"
    assert len(model.requests) == 1


@requirement("protocol:66", "engine:76", "fault:CT-13", "fault:MQ-13")
async def test_a_result_that_nobody_waits_for_changes_nothing_and_tells_nobody(serve: Serve) -> None:
    @tool(needs_approval=True)
    def pay() -> str:
        """Pay."""
        return "paid"

    calls = [call("a", id="settled"), call("pay", id="denied"), call("a", id="open")]
    model = ScriptedModel([say("Just text."), calls])
    server = await serve(agent(model, pay))
    tab, other = await server.tab(), await server.tab()
    await tab.send(tool_result("nope"))
    await tab.ask("r0", "Hi")
    await tab.done("r0")
    await tab.send(tool_result("nope"))
    await tab.ask("r1", "Go", clientTools=offer("a"))
    await tab.done("r1")
    await tab.send(tool_result("settled", "the result", go_on=False))
    await tab.send(approval("denied", approved=False, go_on=False))
    await tab.settle()
    stored = await server.stored()
    await other.settle()
    seen = [len(tab.frames), len(other.frames)]
    for foreign in (
        tool_result("nope"),
        tool_result("settled", "another"),
        tool_failure("settled", "no", go_on=True),
        tool_result("denied", "paid after all"),
        tool_failure("denied", "no", go_on=True),
        tool_result("open", tool="pay"),
        tool_result("open", tool="tool-a"),
        {"type": "cf_agent_tool_result", "toolCallId": "", "output": 1, "autoContinue": True},
        {"type": "cf_agent_tool_result", "toolCallId": 7, "output": 1},
        {"type": "cf_agent_tool_result"},
    ):
        await tab.send(foreign)
    await tab.settle()
    await other.settle()
    assert [len(tab.frames), len(other.frames)] == seen
    assert await server.stored() == stored
    assert await states(server, 3) == ["output-available", "output-denied", "input-available"]
    assert len(model.requests) == 2
    assert (await tab.probe("p"))["reason"] == "idle"


@requirement("fault:CT-14")
@pytest.mark.parametrize(("text", "shown"), [("limit exceeded", "limit exceeded"), (None, DENIED)])
async def test_a_gated_call_may_be_answered_with_an_error_instead_of_a_decision(
    serve: Serve, text: str | None, shown: str
) -> None:
    ran: list[str] = []

    @tool(needs_approval=True)
    def pay() -> None:
        """Pay."""
        ran.append("paid")

    model = ScriptedModel([call("pay", id="c1"), say("I see.")])
    server = await serve(agent(model, pay))
    tab = await ask_for_calls(server)
    await tab.send(tool_failure("c1", text, go_on=True))
    await continued(tab)
    (part,) = tool_parts((await server.stored())[1])
    assert (part["state"], part["errorText"]) == ("output-error", shown)
    assert tool_parts(model.requests[1].messages[1])[0]["errorText"] == shown
    assert strict_provider_errors(model.requests[1]) == []
    assert ran == []


@requirement("engine:65", "fault:CT-12")
async def test_a_result_of_an_earlier_turn_stays_in_what_the_model_sees(serve: Serve) -> None:
    model = ScriptedModel([call("pick", id="c1"), *[say(f"Turn {n}.") for n in range(4)]])
    server = await serve(agent(model))
    tab = await ask_for_calls(server, "pick")
    await tab.send(tool_result("c1", {"plan": "B"}))
    await continued(tab)
    for turn in range(3):
        await tab.ask(f"later-{turn}", *(await server.stored()), user_message("And?"))
        await tab.done(f"later-{turn}")
    (part,) = tool_parts(model.requests[4].messages[1])
    assert (part["toolCallId"], part["state"], part["output"]) == ("c1", "output-available", {"plan": "B"})
    assert strict_provider_errors(model.requests[4]) == []


@requirement("protocol:74", "engine:79", "fault:CT-03")
async def test_results_in_one_burst_on_a_slow_store_do_not_overwrite_each_other(serve: Serve) -> None:
    calls = [call("a", id="c1"), call("b", id="c2"), call("c", id="c3")]
    model = ScriptedModel([calls, say("Done.")])
    server = await serve(agent(model), engine=Doubles(seed=3, longest_ms=20).engine)
    tab = await ask_for_calls(server, "a", "b", "c")
    others = [await server.tab(), await server.tab()]
    for other in others:
        await other.opened()
    await others[0].send_together(*(tool_result(f"c{n}", f"result {n}") for n in (3, 1, 2)))
    await continued(tab)
    assert len(model.requests) == 2
    stored = await server.stored()
    assert [part["output"] for part in tool_parts(stored[1])] == ["result 1", "result 2", "result 3"]
    for each in (tab, *others):
        await continued(each)
        assert len(updates(each)) == 3
        assert [frame["messages"] for frame in each.frames if frame["type"] == "cf_agent_chat_messages"][-1] == stored


async def test_a_call_whose_arguments_do_not_fit_is_answered_at_once_and_no_page_is_bothered(serve: Serve) -> None:
    spec = [
        {"name": "a", "parameters": {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}}
    ]
    model = ScriptedModel([call("a", {"n": "many"}, id="c1"), call("a", {"n": 1}, id="c2"), say("Done.")])
    server = await serve(agent(model))
    tab = await server.tab()
    await tab.ask("r1", "Go", clientTools=spec)
    await tab.done("r1")
    assert await states(server) == ["output-error", "input-available"]
    await tab.send(tool_result("c2"))
    await continued(tab)
    assert said(await server.stored())[1] == "Done."


# ── other turns ───────────────────────────────────────────────────────


async def test_a_new_message_settles_what_nobody_answered(serve: Serve) -> None:
    model = ScriptedModel([[call("a", id="c1"), call("a", id="c2")], say("Never mind.")])
    server = await serve(agent(model))
    tab = await ask_for_calls(server, "a")
    await tab.send(tool_result("c1", "mine", go_on=True))
    await tab.ask("r2", *(await server.stored()), user_message("Leave it"))
    await tab.done("r2")
    first, second = tool_parts((await server.stored())[1])
    assert (first["state"], first["output"]) == ("output-available", "mine")
    assert (second["state"], second["errorText"]) == ("output-error", INTERRUPTED)
    assert strict_provider_errors(model.requests[1]) == []
    await tab.settle()
    assert [len(tool_parts(message)) for message in updates(tab)] == [2, 2], "one for the answer, one for the error"
    mark = len(tab.frames)
    await tab.send(tool_result("c2", "late"))
    await tab.settle()
    assert tab.frames[mark:] == []
    assert len(model.requests) == 2


async def test_a_result_without_an_output_is_null(serve: Serve) -> None:
    model = ScriptedModel([call("a", id="c1"), say("Done.")])
    server = await serve(agent(model))
    tab = await ask_for_calls(server, "a")
    await tab.send({"type": "cf_agent_tool_result", "toolCallId": "c1", "toolName": "", "autoContinue": True})
    await continued(tab)
    (part,) = tool_parts((await server.stored())[1])
    assert (part["state"], part["output"]) == ("output-available", None)
    assert strict_provider_errors(model.requests[1]) == []


async def test_an_answer_that_could_not_be_stored_can_be_given_again(serve: Serve, log: ErrorLog) -> None:
    doubles = Doubles()
    model = ScriptedModel([[call("a", id="c1"), call("a", id="c2")], say("Done.")])
    server = await serve(agent(model), engine=doubles.engine)
    tab = await ask_for_calls(server, "a")
    await tab.send(tool_result("c1", "one"))
    await tab.seen(lambda frame: frame["type"] == "cf_agent_message_updated")
    doubles.store.fail("agent/room")
    mark = len(tab.frames)
    await tab.send(tool_result("c2", "lost"))
    assert (await tab.ended())[0] == 1011
    assert updates(tab, mark) == [], "nobody was told of it"
    log.expect("database or disk is full")
    doubles.store.heal("agent/room")
    tab = await server.tab()
    assert await states(server) == ["output-available", "input-available"]
    await tab.send(tool_result("c2", "two"))
    await continued(tab)
    assert [part["output"] for part in tool_parts(model.requests[1].messages[1])] == ["one", "two"]
    assert len(model.requests) == 2


# ── messages that are not in memory ───────────────────────────────────


class Forgetful(Doing, Think):
    """Holds little more than the last message in memory."""

    hydration_byte_budget = 2_000


@pytest.mark.parametrize("answers", [1, 2])
async def test_a_result_reaches_a_message_that_is_in_the_store_only(serve: Serve, answers: int) -> None:
    calls = [call("a", id=f"c{n}") for n in range(answers)]
    server = await serve(type("Agent", (Forgetful,), {"model": ScriptedModel([calls, say("Done.")])}))
    tab = await ask_for_calls(server, "a")
    await do(tab, lambda agent: agent.add_messages([user_message("long " * 200) for _ in range(4)]))
    for n in range(answers):
        await tab.send(tool_result(f"c{n}", n))
    await continued(tab)
    for n, message in enumerate(updates(tab)):
        assert [part["state"] for part in tool_parts(message)][n] == "output-available"
    assert len(updates(tab)) == answers
    messages = await do(tab, lambda agent: agent.get_messages())
    assert said(messages)[:2] == ["Go", "Done."]
    assert [part["output"] for part in tool_parts(messages[1])] == list(range(answers))


async def test_a_call_in_a_message_that_is_in_the_store_only_is_settled_by_a_new_message(serve: Serve) -> None:
    server = await serve(type("Agent", (Forgetful,), {"model": ScriptedModel([call("a", id="c1"), say("Next.")])}))
    tab = await ask_for_calls(server, "a")
    await do(tab, lambda agent: agent.add_messages([user_message("long " * 200) for _ in range(4)]))
    await tab.ask("r2", user_message("And"))
    await tab.done("r2")
    messages = await do(tab, lambda agent: agent.get_messages())
    (part,) = tool_parts(messages[1])
    assert (part["state"], part["errorText"]) == ("output-error", INTERRUPTED)
    await tab.settle()
    assert [tool_parts(message)[0]["state"] for message in updates(tab)] == ["output-error"]


# ── declared on the server ────────────────────────────────────────────


@pytest.mark.parametrize("gated", [False, True])
async def test_a_client_tool_may_be_declared_on_the_server(serve: Serve, gated: bool) -> None:
    def declaring(model: ScriptedModel) -> type[Think]:
        schema = {"type": "object", "properties": {"near": {"type": "string"}}, "required": ["near"]}
        return agent(model, client_tool("locate", "Where the user is.", schema, needs_approval=gated))

    first = ScriptedModel([call("locate", {"near": "me"}, id="c1")])
    server = await serve(declaring(first))
    tab = await server.tab()
    await tab.ask("r1", "Go")
    await tab.done("r1")
    assert first.requests[0].tools == ["locate"]
    assert await states(server) == ["approval-requested" if gated else "input-available"]
    await server.stop()

    second = ScriptedModel([call("locate", {"near": "you"}, id="c2"), say("There.")])
    server = await serve(declaring(second))
    tab = await server.tab()
    if gated:
        await tab.send(approval("c1"))
        await tab.settle()
        assert await states(server) == ["approval-responded"]
        assert second.requests == [], "the page has not run it yet"
    await tab.send(tool_result("c1", "Paris", tool="locate"))
    await continued(tab)
    assert second.requests[0].tools == ["locate"]
    assert await states(server) == ["output-available", "approval-requested" if gated else "input-available"]
    if gated:
        await tab.send(approval("c2"))
    await tab.send(tool_result("c2", "Rome", tool="locate"))
    await continued(tab, 2)
    parts = tool_parts((await server.stored())[1])
    assert [part["output"] for part in parts] == ["Paris", "Rome"]
    assert [part.get("approval", {}).get("approved") for part in parts] == [True if gated else None] * 2
    assert said(await server.stored())[1] == "There."


async def test_a_function_decides_which_calls_of_a_client_tool_need_approval(serve: Serve) -> None:
    tool_of_the_page = client_tool("pay", needs_approval=lambda input: input["amount"] > 100)
    model = ScriptedModel([[call("pay", {"amount": 5}, id="c1"), call("pay", {"amount": 500}, id="c2")], say("Done.")])
    server = await serve(agent(model, tool_of_the_page))
    tab = await ask_for_calls(server)
    assert await states(server) == ["input-available", "approval-requested"]
    await tab.send(tool_result("c1", "paid"))
    await tab.send(approval("c2"))
    await tab.settle()
    assert len(model.requests) == 1
    await tab.send(tool_result("c2", "paid as well"))
    await continued(tab)
    assert [part["output"] for part in tool_parts(model.requests[1].messages[1])] == ["paid", "paid as well"]


async def test_a_denied_call_of_a_client_tool_takes_no_result(serve: Serve) -> None:
    model = ScriptedModel([call("locate", id="c1"), say("As you like.")])
    server = await serve(agent(model, client_tool("locate", needs_approval=True)))
    tab = await ask_for_calls(server)
    await tab.send(approval("c1", approved=False))
    await continued(tab)
    await tab.send(tool_result("c1", "Paris"))
    await tab.settle()
    assert await states(server) == ["output-denied"]
    assert len(model.requests) == 2
