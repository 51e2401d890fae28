"""The tools that a page offers: which are taken, which turns are told of them, and for how long."""

import json
from typing import Any

import pytest

from perdure import Think, tool
from perdure.protocol import client_tools as caps
from perdure.testing import Gate, ScriptedModel, call, pause, say
from tests.agent.calls import said, tool_parts
from tests.requirements import requirement
from tests.server.answering import ask_for_calls, continued, states
from tests.support import Serve, agent, chat_request, offer, tool_result, user_message

pytestmark = pytest.mark.anyio


# ── what is offered ───────────────────────────────────────────────────


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


# ── what turns run with ───────────────────────────────────────────────


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


async def test_a_request_that_comes_twice_does_not_bring_its_tools_again(serve: Serve) -> None:
    model = ScriptedModel([say("One."), say("Two."), say("Three."), say("Four.")])
    server = await serve(agent(model))
    tab = await server.tab()
    question = user_message("Go")
    await tab.ask("r1", question)
    await tab.done("r1")
    await tab.ask("r2", question, trigger="regenerate-message", clientTools=offer("old"))
    await tab.done("r2")
    await tab.ask("r3", question, trigger="regenerate-message", clientTools=offer("new"))
    await tab.done("r3")
    await tab.ask("r2", question, trigger="regenerate-message", clientTools=offer("old"))
    await tab.ask("r4", question, trigger="regenerate-message")
    await tab.done("r4")
    assert [request.tools for request in model.requests] == [[], ["old"], ["new"], ["new"]]
