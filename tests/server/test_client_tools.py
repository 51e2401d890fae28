"""Tools that a page runs: what it may offer, what becomes of its results, and who is told."""

import json
from typing import Any

import pytest

from perdure import Think, client_tool, tool
from perdure.protocol import client_tools as caps
from perdure.testing import Gate, ScriptedModel, call, pause, say, strict_provider_errors
from tests.agent.calls import parts_of, said, tool_parts
from tests.requirements import requirement
from tests.support import (
    Doing,
    Doubles,
    Frame,
    Serve,
    Serving,
    Tab,
    agent,
    approval,
    chat_request,
    chunks_of,
    do,
    offer,
    tool_failure,
    tool_result,
    user_message,
)

pytestmark = pytest.mark.anyio

DENIED = "Tool execution denied by user"
INTERRUPTED = "The tool call was interrupted before a result was recorded."


def updates(tab: Tab, since: int = 0) -> list[Frame]:
    """The messages of all updates that a tab was sent."""
    return [frame["message"] for frame in tab.frames[since:] if frame["type"] == "cf_agent_message_updated"]


def is_continuation_end(frame: Frame) -> bool:
    return frame.get("continuation", False) and frame.get("done") is True


async def continued(tab: Tab, count: int = 1) -> str:
    """Returns when so many continuations are over; gives the id of the last."""
    ended: list[Frame] = []

    def is_last(frame: Frame) -> bool:
        if is_continuation_end(frame):
            ended.append(frame)
        return len(ended) == count

    return (await tab.seen(is_last))["id"]


async def ask_for_calls(server: Serving, *names: str, **body: Any) -> Tab:
    """A tab whose request has ended with open calls of the page's tools."""
    tab = await server.tab()
    await tab.ask("r1", "Go", clientTools=offer(*names), **body)
    await tab.done("r1")
    return tab


async def states(server: Serving, message: int = 1) -> list[str]:
    """The states of the stored calls."""
    return [part["state"] for part in tool_parts((await server.stored())[message])]


# ── what is offered ─────────────────────────────────────────────────


@requirement("protocol:62", "engine:91", "fault:CT-10")
async def test_the_model_is_offered_the_tools_that_the_page_offers_at_the_time(serve: Serve) -> None:
    model = ScriptedModel([call("a", id="c1"), say("Two."), say("Three."), say("Four."), say("Five."), say("Six.")])
    server = await serve(agent(model))
    tab = await ask_for_calls(server, "a")
    assert model.requests[0].tools == ["a"]

    await tab.send(tool_result("c1", clientTools=offer("b", "c")))
    await continued(tab)
    assert model.requests[1].tools == ["b", "c"], "what comes with a result replaces it"
    await tab.ask("r2", "And")
    await tab.done("r2")
    assert model.requests[2].tools == ["b", "c"], "a request that says nothing keeps it"
    await tab.ask("r3", "And", clientTools=[])
    await tab.done("r3")
    assert model.requests[3].tools == [], "an empty list takes it away"

    await tab.ask("r4", "And", clientTools=offer("d"))
    await tab.done("r4")
    await tab.clear()
    await tab.ask("r5", "And")
    await tab.done("r5")
    assert [request.tools for request in model.requests[4:]] == [["d"], []], "so does a clear"


@requirement("protocol:62")
async def test_an_empty_list_that_comes_with_a_result_changes_nothing(serve: Serve) -> None:
    model = ScriptedModel([call("a", id="c1"), say("Done.")])
    server = await serve(agent(model))
    tab = await ask_for_calls(server, "a")
    await tab.send(tool_result("c1", clientTools=[]))
    await continued(tab)
    assert model.requests[1].tools == ["a"]


async def test_tools_that_come_with_a_result_are_left_aside_when_they_cannot_be_used(serve: Serve) -> None:
    model = ScriptedModel([call("a", id="c1"), say("Done.")])
    server = await serve(agent(model))
    tab = await ask_for_calls(server, "a")
    await tab.send(tool_result("c1", "here", clientTools=[{"name": "b", "parameters": {"type": "nonsense"}}]))
    await continued(tab)
    assert model.requests[1].tools == ["a"]
    assert tool_parts((await server.stored())[1])[0]["output"] == "here"


async def test_tools_that_come_with_a_result_that_nobody_waits_for_change_nothing(serve: Serve) -> None:
    model = ScriptedModel([call("a", id="c1"), say("Done."), say("Next.")])
    server = await serve(agent(model))
    tab = await ask_for_calls(server, "a")
    await tab.send(tool_result("c1"))
    await continued(tab)
    await tab.send(tool_result("c1", clientTools=offer("late")))
    await tab.ask("r2", "And")
    await tab.done("r2")
    assert model.requests[2].tools == ["a"]


@requirement("fault:CT-19")
async def test_odd_tools_are_taken_as_they_were_meant(serve: Serve) -> None:
    first = {"type": "object", "properties": {"one": {"type": "string"}}}
    second = {"type": "object", "properties": {"two": {"type": "integer"}}, "required": ["two"]}
    odd = [
        {"name": "a", "parameters": first},
        {"name": "a", "parameters": second, "description": "The later one."},
        {"name": "b"},
        {"description": "x"},
        {"name": ""},
        {"name": 7},
        "text",
        {"name": "c", "description": None, "parameters": None},
        {"name": "d", "parameters": {}},
    ]
    moves = [call("a", {"one": "x"}, id="c1"), call("b", {"any": [1]}, id="c2"), call("a", {"two": 2}, id="c3")]
    model = ScriptedModel([moves, say("Done.")])
    server = await serve(agent(model))
    tab = await server.tab()
    await tab.ask("r1", "Go", clientTools=odd)
    await tab.done("r1")
    assert model.requests[0].tools == ["a", "b", "c", "d"]
    broken, *good = tool_parts((await server.stored())[1])
    assert broken["state"] == "output-error"
    assert "two" in broken["errorText"], "checked against the later schema"
    assert [part["state"] for part in good] == ["input-available", "input-available"]


NESTED = '{"not":' * 20_000 + "{}" + "}" * 20_000


@pytest.mark.parametrize(
    ("tools", "said_of_it"),
    [
        (json.dumps([{"name": f"t{n}"} for n in range(caps.MAX_TOOLS + 1)]), "129 client tools"),
        (json.dumps([{"name": "x" * 257}]), "257 characters"),
        (json.dumps([{"name": "a", "description": "x" * caps.MAX_BYTES}]), "bytes"),
        (json.dumps([{"name": "a", "parameters": {"type": "nonsense"}}]), "'a'"),
        (json.dumps([{"name": "a", "parameters": {"type": "string"}}]), "'a'"),
        (json.dumps([{"name": "a", "parameters": []}]), "JSON Schema"),
        (json.dumps([{"name": "a", "parameters": {"$ref": "http://127.0.0.1:9/x.json"}}]), "'a'"),
        (json.dumps([{"name": "a", "parameters": {"properties": {"x": {"pattern": "("}}}}]), "'a'"),
        (f'[{{"name":"a","parameters":{NESTED}}}]', "nest"),
        (f'[{{"name":"a","parameters":{"[" * 101}{"]" * 101}}}]', ""),
        ('{"a":{}}', "list"),
        ('"a"', "list"),
    ],
    ids=[
        "too many",
        "a long name",
        "too large",
        "no schema",
        "not of an object",
        "a list",
        "elsewhere",
        "a bad pattern",
        "deep",
        "deep lists",
        "an object",
        "a text",
    ],
)
async def test_tools_that_cannot_be_used_end_their_request_with_an_error_and_leave_nothing(
    serve: Serve, tools: str, said_of_it: str
) -> None:
    model = ScriptedModel([say("Hello."), say("Well.")])
    server = await serve(agent(model))
    tab, other = await server.tab(), await server.tab()
    await tab.ask("r1", "Go", clientTools=offer("kept"), mood="kept")
    await tab.done("r1")
    await other.done("r1")
    mark = len(other.frames)
    body = json.dumps({"messages": [user_message("Bad")], "mood": "bad"})
    await tab.send(chat_request("r2", f'{body[:-1]},"clientTools":{tools}}}'))
    end = await tab.done("r2")
    assert end["error"]
    assert said_of_it in end["body"]
    assert len(end["body"]) < 1000
    assert said(await server.stored()) == ["Go", "Hello."]
    await other.settle()
    assert other.frames[mark:] == []
    await tab.ask("r3", "Again")
    await tab.done("r3")
    assert model.requests[1].tools == ["kept"]


@requirement("protocol:62")
async def test_as_many_and_as_large_tools_as_are_allowed_are_offered(serve: Serve) -> None:
    name = "n" * caps.MAX_NAME
    many = [{"name": f"t{n}"} for n in range(caps.MAX_TOOLS - 1)]
    text = json.dumps([*many, {"name": name, "description": ""}])
    large = [*many, {"name": name, "description": "x" * (caps.MAX_BYTES - len(text))}]
    model = ScriptedModel([call("n" * 64, id="c1"), say("Done.")])
    server = await serve(agent(model))
    tab = await server.tab()
    await tab.ask("r1", "Go", clientTools=large)
    assert (await tab.done("r1"))["outcome"] == "completed"
    assert len(model.requests[0].tools) == caps.MAX_TOOLS
    (part,) = tool_parts((await server.stored())[1])
    assert (part["type"], part["state"]) == (f"tool-{name}", "input-available")
    await tab.send(tool_result("c1", tool=name))
    await continued(tab)


@requirement("engine:45", "fault:CT-11")
async def test_a_tool_of_the_page_stands_in_for_the_servers_own_for_its_turn_only(serve: Serve) -> None:
    ran: list[str] = []

    @tool
    def read(path: str) -> str:
        """Read a file."""
        ran.append(path)
        return "from the server"

    model = ScriptedModel(
        [call("read", {"path": "/a"}, id="c1"), say("One."), call("read", {"path": "/a"}, id="c2"), say("Two.")]
    )
    server = await serve(agent(model, read))
    tab = await ask_for_calls(server, "read")
    assert (model.requests[0].tools, await states(server)) == (["read"], ["input-available"])
    await tab.send(tool_result("c1", "from the page", tool="read"))
    await continued(tab)
    assert ran == []
    await tab.ask("r2", *(await server.stored()), user_message("Again"), clientTools=[])
    await tab.done("r2")
    assert ran == ["/a"]
    outputs = [part["output"] for message in await server.stored() for part in tool_parts(message)]
    assert outputs == ["from the page", "from the server"]


# ── a call and its result ───────────────────────────────────────────


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


# ── other turns ─────────────────────────────────────────────────────


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


async def test_a_turn_of_the_servers_own_runs_with_the_pages_tools_and_fields(serve: Serve) -> None:
    seen: list[Any] = []

    class Agent(Think):
        model = ScriptedModel([say("Hi."), call("a", id="c1"), say("Done.")])

        def before_turn(self, ctx: Any) -> None:
            seen.append([list(ctx.tools), dict(ctx.body), ctx.continuation])

        async def on_start(self) -> None:
            agents.append(self)

    agents: list[Think] = []
    server = await serve(Agent)
    tab = await server.tab()
    await tab.ask("r1", "Go", clientTools=offer("a"), mood="good")
    await tab.done("r1")
    assert (await agents[0].save_messages("from the server")).status == "completed"
    await tab.send(tool_result("c1"))
    await continued(tab)
    assert seen == [[["a"], {"mood": "good"}, False], [["a"], {"mood": "good"}, False], [["a"], {"mood": "good"}, True]]


async def test_a_turn_that_waited_runs_with_what_its_own_request_brought(serve: Serve) -> None:
    seen: list[Any] = []
    gate = Gate()
    model = ScriptedModel([pause(gate), say("Two."), say("Three.")])

    def before_turn(self: Think, ctx: Any) -> None:
        seen.append([list(ctx.tools), dict(ctx.body)])

    server = await serve(agent(model, before_turn=before_turn))
    tab = await server.tab()
    await tab.ask("r1", "One", clientTools=offer("one"), n=1)
    await gate.reached()
    await tab.ask("r2", "Two", clientTools=offer("two"), n=2)
    await tab.ask("r3", "Three", clientTools=[], n=3)
    gate.open()
    for request in ("r1", "r2", "r3"):
        await tab.done(request)
    assert seen == [[["one"], {"n": 1}], [["two"], {"n": 2}], [[], {"n": 3}]]


# ── messages that are not in memory ─────────────────────────────────


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


# ── declared on the server ──────────────────────────────────────────


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
