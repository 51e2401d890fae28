"""The HTTP side: the history of a conversation, health, and what is not there."""

import json

import pytest

from perdure import __version__
from perdure.testing import Gate, ScriptedModel, pause, say
from tests.requirements import requirement
from tests.support import Serve, agent, user_message

pytestmark = pytest.mark.anyio


@requirement("protocol:9")
async def test_get_messages_gives_the_stored_messages_in_order(serve: Serve) -> None:
    server = await serve(agent(ScriptedModel([say("One."), say("Two.")])))
    response = await server.get("/agents/agent/room/get-messages")
    assert (response.status_code, response.text) == (200, "[]")
    assert response.headers["content-type"] == "application/json"

    tab = await server.tab()
    first, second = user_message("First"), user_message("Second")
    await tab.ask("r1", first)
    await tab.done("r1")
    await tab.ask("r2", first, second)
    await tab.done("r2")

    messages = await server.stored()
    assert [message["role"] for message in messages] == ["user", "assistant", "user", "assistant"]
    assert [message["parts"][-1]["text"] for message in messages] == ["First", "One.", "Second", "Two."]
    assert messages[0] == first


async def test_get_messages_is_what_the_socket_shows(serve: Serve) -> None:
    server = await serve(agent(ScriptedModel([say("One.")])))
    tab = await server.tab()
    await tab.ask("r1", "First")
    await tab.done("r1")
    greeting = (await (await server.tab()).opened())[0]
    assert await server.stored() == greeting["messages"]


async def test_get_messages_is_answered_with_any_method_and_below_any_tail(serve: Serve) -> None:
    server = await serve(agent(ScriptedModel([])))
    for method in ("GET", "POST", "PUT"):
        response = await server.request(method, "/agents/agent/room/get-messages?token=1")
        assert (response.status_code, response.text) == (200, "[]"), method
    assert (await server.get("/agents/agent/room/some/tail/get-messages")).text == "[]"


async def test_get_messages_while_a_turn_streams_has_the_question_and_not_yet_the_answer(serve: Serve) -> None:
    gate = Gate()
    server = await serve(agent(ScriptedModel([[say("Half"), pause(gate), say(" done")]])))
    tab = await server.tab()
    await tab.ask("r1", "First")
    await gate.reached()
    assert [message["role"] for message in await server.stored()] == ["user"]
    gate.open()
    await tab.done("r1")
    assert [message["role"] for message in await server.stored()] == ["user", "assistant"]


async def test_other_paths_of_an_agent_are_not_implemented(serve: Serve) -> None:
    server = await serve(agent(ScriptedModel([])))
    for path in ("/agents/agent/room", "/agents/agent/room/elsewhere", "/agents/agent/room/get-messages/more"):
        response = await server.get(path)
        assert (response.status_code, response.text) == (404, "Not implemented"), path


async def test_a_class_that_cannot_be_made_is_a_service_that_is_unavailable(serve: Serve, log) -> None:
    def broken(self: object) -> None:
        raise RuntimeError("no such table: secret")

    server = await serve(agent(ScriptedModel([]), __init__=broken))
    response = await server.get("/agents/agent/room/get-messages")
    assert response.status_code == 503
    assert "secret" not in response.text
    code, reason = await (await server.tab()).ended()
    assert code == 1011
    assert "secret" not in reason
    log.expect("is dropped from memory")


async def test_health_and_what_the_page_asks_for(serve: Serve) -> None:
    server = await serve(agent(ScriptedModel([]), name="MyAgent"))
    health = (await server.get("/health")).json()
    assert health.pop("uptime") >= 0
    assert health == {"status": "ok", "version": __version__, "agents": 0}
    playground = json.loads((await server.get("/playground.json")).text)
    assert playground["agents"] == [{"class": "MyAgent", "path": "my-agent"}]
