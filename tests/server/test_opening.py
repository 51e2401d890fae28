"""What a connection is greeted with, and in which order."""

import json

import pytest

from perdure import tool
from perdure.testing import Gate, ScriptedModel, call, pause, say
from tests.requirements import requirement
from tests.support import Serve, agent, chat_request, user_message

pytestmark = pytest.mark.anyio

IDENTITY = {"type": "cf_agent_identity", "name": "room", "agent": "agent"}
SERVERS = {"type": "cf_agent_mcp_servers", "mcp": {"servers": {}, "tools": [], "prompts": [], "resources": []}}


@requirement("protocol:40")
async def test_an_idle_agent_greets_with_the_whole_conversation_then_says_who_it_is(serve: Serve) -> None:
    server = await serve(agent(ScriptedModel([say("One."), say("Two.")])))
    tab = await server.tab()
    assert await tab.opened() == [
        {"type": "cf_agent_chat_messages", "connect": True, "messages": []},
        IDENTITY,
        SERVERS,
    ]

    await tab.ask("r1", "First")
    await tab.done("r1")
    await tab.ask("r2", "Second")
    await tab.done("r2")

    greeting, *rest = await (await server.tab()).opened()
    assert greeting == {"type": "cf_agent_chat_messages", "connect": True, "messages": await server.stored()}
    assert len(greeting["messages"]) == 4
    assert rest == [IDENTITY, SERVERS]


@requirement("protocol:41", "protocol:43", "engine:104", "fault:RS-06")
async def test_a_stream_that_runs_is_offered_instead_of_the_conversation(serve: Serve) -> None:
    gate = Gate()
    server = await serve(agent(ScriptedModel([[say("Half"), pause(gate), say(" done.")]])))
    first = await server.tab()
    await first.ask("r1", "Go")
    await first.delta("r1", "Half")

    late = await server.tab()
    assert await late.opened() == [{"type": "cf_agent_stream_resuming", "id": "r1"}, IDENTITY, SERVERS]

    await late.ack("r1")
    await late.seen(lambda frame: frame.get("replayComplete", False))
    assert "cf_agent_chat_messages" not in late.kinds(), "a snapshot without the running answer would wipe it"
    gate.open()
    await late.done("r1")
    snapshots = [frame for frame in late.frames if frame["type"] == "cf_agent_chat_messages"]
    assert [len(frame["messages"]) for frame in snapshots] == [2]

    greeting, *rest = await (await server.tab()).opened()
    assert greeting["connect"] is True
    assert len(greeting["messages"]) == 2
    assert rest == [IDENTITY, SERVERS]


@requirement("protocol:42")
async def test_a_turn_that_does_not_stream_yet_is_pending_and_then_comes_the_conversation(serve: Serve) -> None:
    gate = Gate()

    async def get_model(self: object) -> ScriptedModel:
        await gate.passed()
        return ScriptedModel([say("Hello.")])

    server = await serve(agent(None, get_model=get_model))
    first = await server.tab()
    question = user_message("Go")
    await first.ask("r1", question)
    await gate.reached()

    late = await server.tab()
    assert await late.opened() == [
        {"type": "cf_agent_stream_pending", "id": "r1"},
        {"type": "cf_agent_chat_messages", "connect": True, "messages": [question]},
        IDENTITY,
        SERVERS,
    ]
    gate.open()
    await late.seen(lambda frame: frame == {"type": "cf_agent_stream_resuming", "id": "r1"})
    await late.ack("r1")
    await late.done("r1")


@requirement("protocol:20")
async def test_each_connection_gets_the_whole_opening(serve: Serve) -> None:
    server = await serve(agent(ScriptedModel([])))
    openings = []
    for _ in range(3):
        tab = await server.tab()
        openings.append(await tab.opened())
        await tab.close()
    assert openings == [[{"type": "cf_agent_chat_messages", "connect": True, "messages": []}, IDENTITY, SERVERS]] * 3


async def test_a_connection_id_that_is_taken_twice_is_two_connections(serve: Serve) -> None:
    """After a line broke, the old socket may look open while the new one comes with the same id."""
    server = await serve(agent(ScriptedModel([say("Hello.")])))
    old = await server.connect("/agents/agent/room?_pk=one")
    new = await server.connect("/agents/agent/room?_pk=one")
    await old.opened()
    await new.opened()
    await new.ask("r1", "Hi")
    await new.done("r1")
    await old.done("r1")
    assert old.kinds(3)[0] == "cf_agent_chat_messages", "the other one is told of the question"
    assert new.kinds(3)[0] == "cf_agent_use_chat_response"


@requirement("protocol:39")
async def test_what_a_client_sends_at_once_is_answered_after_the_opening(serve: Serve) -> None:
    """The hook's probe is queued before the socket is open, so it comes in with the handshake's last byte."""
    server = await serve(agent(ScriptedModel([say("Hello.")])))
    tab = await server.tab("fresh")
    await tab.send_together(
        {"type": "cf_agent_stream_resume_request", "probeId": "p1"},
        chat_request("r1", json.dumps({"messages": [user_message("Hi")]})),
    )
    await tab.done("r1")
    assert tab.kinds()[:5] == [
        "cf_agent_chat_messages",
        "cf_agent_identity",
        "cf_agent_mcp_servers",
        "cf_agent_stream_resume_none",
        "cf_agent_use_chat_response",
    ]


async def test_a_tool_that_runs_is_a_stream_on_offer(serve: Serve) -> None:
    gate = Gate()

    @tool
    async def slow() -> str:
        """Slow."""
        await gate.passed()
        return "done"

    server = await serve(agent(ScriptedModel([[call("slow", id="c1")], say("Ready.")]), slow))
    tab = await server.tab()
    await tab.ask("r1", "Go")
    await gate.reached()
    late = await server.tab()
    assert (await late.opened())[0] == {"type": "cf_agent_stream_resuming", "id": "r1"}
    gate.open()
    await tab.done("r1")
