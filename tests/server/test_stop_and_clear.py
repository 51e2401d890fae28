"""Stopping a turn, and forgetting a conversation."""

import json

import pytest

from perdure import tool
from perdure.testing import Gate, ScriptedModel, call, pause, say, strict_provider_errors
from tests.requirements import requirement
from tests.support import Serve, agent, chat_request, chunks_of, text_of, user_message

pytestmark = pytest.mark.anyio

CANCEL = "cf_agent_chat_request_cancel"
DELTAS = [f"d{number} " for number in range(20)]


@requirement("protocol:104", "fault:PS-14")
async def test_stop_keeps_what_was_said_in_one_message_and_the_next_request_works(serve: Serve) -> None:
    gate = Gate()
    model = ScriptedModel([[say(*DELTAS[:5]), pause(gate), say(*DELTAS[5:])], say("Next.")])
    server = await serve(agent(model))
    tab, other = await server.tab(), await server.tab()
    await tab.opened()
    await other.opened()
    await tab.ask("r1", user_message("Count", "u-1"))
    await tab.delta("r1", "d4 ")
    await other.cancel("r1")
    done = await tab.done("r1")
    assert await other.done("r1") == done
    assert (done["outcome"], done["messageIds"]) == ("aborted", ["u-1"])
    gate.open()
    await tab.settle()

    assert text_of(chunks_of(tab.frames, "r1")) == "".join(DELTAS[:5])
    assert tab.frames[-2] == {"type": "cf_agent_chat_messages", "messages": await server.stored()}
    assert tab.frames[3:] == other.frames[4:]
    _, answer = await server.stored()
    assert answer["parts"][-1] == {"type": "text", "text": "".join(DELTAS[:5]), "state": "done"}
    assert model.requests[0].outcome == "closed", "the provider is let go"

    await tab.ask("r2", *(await server.stored()), user_message("And now?"))
    assert (await tab.done("r2"))["outcome"] == "completed"
    assert strict_provider_errors(model.requests[1]) == []
    assert [message["role"] for message in await server.stored()] == ["user", "assistant", "user", "assistant"]


@requirement("protocol:105")
async def test_stopping_what_is_not_there_or_over_is_no_event(serve: Serve) -> None:
    server = await serve(agent(ScriptedModel([say("One."), say("Two.")])))
    tab = await server.tab()
    await tab.ask("r1", "First")
    await tab.done("r1")
    count = len(tab.frames)
    for request in ("r1", "unknown", ""):
        await tab.cancel(request)
    await tab.settle()
    assert len(tab.frames) == count
    await tab.ask("r2", "Second")
    assert (await tab.done("r2"))["outcome"] == "completed"


@requirement("protocol:106")
async def test_stopping_a_request_that_waits_ends_it_without_asking_the_model(serve: Serve) -> None:
    gate = Gate()
    model = ScriptedModel([[pause(gate), say("One.")], say("Three.")])
    server = await serve(agent(model))
    tab = await server.tab()
    first, second, third = (user_message(text) for text in ("First", "Second", "Third"))
    await tab.ask("r1", first)
    await gate.reached()
    await tab.ask("r2", first, second)
    await tab.cancel("r2")
    done = await tab.done("r2")
    assert (done["outcome"], done["messageIds"]) == ("aborted", [first["id"], second["id"]])
    assert tab.of("r2") == [done]
    gate.open()
    await tab.done("r1")
    await tab.ask("r3", first, second, third)
    await tab.done("r3")
    model.assert_done()
    texts = [message["parts"][-1]["text"] for message in await server.stored()]
    assert texts == ["First", "One.", "Second", "Third", "Three."]


async def test_stopping_while_a_tool_runs_settles_the_call_as_an_error(serve: Serve) -> None:
    gate = Gate()
    stopped: list[str] = []

    @tool
    async def slow() -> str:
        """Slow."""
        try:
            await gate.passed()
        finally:
            stopped.append("slow")
        return "done"

    model = ScriptedModel([[call("slow", id="c1")], say("Next.")])
    server = await serve(agent(model, slow))
    tab = await server.tab()
    await tab.ask("r1", "Go")
    await gate.reached()
    await tab.cancel("r1")
    assert (await tab.done("r1"))["outcome"] == "aborted"
    assert stopped == ["slow"]
    part = (await server.stored())[-1]["parts"][-1]
    assert part["state"] == "output-error"
    await tab.ask("r2", "Again")
    await tab.done("r2")
    assert strict_provider_errors(model.requests[1]) == []


async def test_stopping_before_the_first_chunk_leaves_no_answer(serve: Serve) -> None:
    gate = Gate()
    server = await serve(agent(ScriptedModel([[pause(gate), say("Never.")]])))
    tab = await server.tab()
    await tab.opened()
    question = user_message("Go")
    await tab.ask("r1", question)
    await gate.reached()
    await tab.cancel("r1")
    assert (await tab.done("r1"))["outcome"] == "aborted"
    assert await server.stored() == [question]
    assert "cf_agent_chat_messages" not in tab.kinds(3)


async def test_a_request_that_is_stopped_in_the_same_breath_is_aborted(serve: Serve) -> None:
    """The model has nothing to wait for, so nothing but the stop itself can end the turn."""
    model = ScriptedModel([say("Never."), say("Next.")])
    server = await serve(agent(model))
    tab = await server.tab()
    await tab.opened()
    request = chat_request("r1", json.dumps({"messages": [user_message("Go")]}))
    await tab.send_together(request, {"type": CANCEL, "id": "r1"})
    assert (await tab.done("r1"))["outcome"] == "aborted"
    assert model.requests == []


async def test_a_question_whose_turn_was_stopped_while_it_waited_keeps_its_place(serve: Serve) -> None:
    gate = Gate()
    server = await serve(agent(ScriptedModel([[pause(gate), say("One.")]])))
    tab, other = await server.tab(), await server.tab()
    first, second = user_message("First"), user_message("Second")
    await tab.ask("r1", first)
    await gate.reached()
    await tab.ask("r2", first, second)
    await tab.cancel("r2")
    await other.done("r2")
    gate.open()
    await other.done("r1")
    expected = [message["id"] for message in await server.stored()]
    assert [expected[0], expected[2]] == [first["id"], second["id"]]
    snapshot = [frame for frame in other.frames if frame["type"] == "cf_agent_chat_messages"][-1]
    assert [message["id"] for message in snapshot["messages"]] == expected


@requirement("protocol:107")
async def test_clear_empties_the_others_and_ends_what_ran_and_what_waited(serve: Serve) -> None:
    gate = Gate()
    model = ScriptedModel([[say("Half"), pause(gate), say(" done.")], say("Fresh.")])
    server = await serve(agent(model))
    tab, other = await server.tab(), await server.tab()
    first, second = user_message("First"), user_message("Second", "u-2")
    await tab.ask("r1", first)
    await gate.reached()
    await tab.ask("r2", first, second)
    await tab.settle()
    start, mark = len(tab.frames), len(other.frames)
    await tab.clear()
    aborted = await tab.done("r1")
    skipped = await tab.done("r2")
    await other.done("r1")
    gate.open()
    await tab.settle()
    await other.settle()

    assert (aborted["outcome"], skipped["outcome"]) == ("aborted", "skipped")
    assert skipped["messageIds"] == [first["id"], "u-2"]
    assert tab.frames[start:] == [skipped, aborted], "the sender has emptied itself"
    assert other.frames[mark:] == [{"type": "cf_agent_chat_clear"}, skipped, aborted]
    assert await server.stored() == []
    assert (await (await server.tab()).opened())[0]["messages"] == []

    await tab.ask("r3", "Anew")
    await tab.done("r3")
    assert [message["role"] for message in await server.stored()] == ["user", "assistant"]
    model.assert_done()


async def test_clear_releases_tabs_that_wait_for_a_turn_to_stream(serve: Serve) -> None:
    gate = Gate()

    async def get_model(self: object) -> ScriptedModel:
        await gate.passed()
        return ScriptedModel([say("Never.")])

    server = await serve(agent(None, get_model=get_model))
    tab = await server.tab()
    await tab.ask("r1", "Go")
    await gate.reached()
    late = await server.tab()
    await late.probe("p1")
    start = len(late.frames)
    await tab.clear()
    await late.done("r1")
    assert late.kinds(start) == [
        "cf_agent_stream_resume_none",
        "cf_agent_chat_clear",
        "cf_agent_use_chat_response",
    ]
    assert late.frames[start] == {"type": "cf_agent_stream_resume_none"}


@requirement("fault:PS-15")
async def test_clear_takes_buffered_chunks_along(serve: Serve) -> None:
    gate = Gate()
    first = await serve(agent(ScriptedModel([[say(*DELTAS[:3]), pause(gate)]])))
    tab = await first.tab()
    await tab.ask("r1", "Go")
    await tab.delta("r1", "d2 ")
    await tab.clear()
    await tab.done("r1")
    late = await first.tab()
    assert (await late.opened())[0]["messages"] == []
    assert (await late.probe("p1"))["reason"] == "idle"
    await first.stop()

    second = await serve(agent(ScriptedModel([])))
    late = await second.tab()
    assert (await late.opened())[0]["messages"] == []
    assert (await late.probe("p1"))["reason"] == "idle"
    assert await second.stored() == []


async def test_a_request_that_is_cleared_in_the_same_breath_ends_without_a_trace(serve: Serve) -> None:
    model = ScriptedModel([say("Never."), say("Fresh.")])
    server = await serve(agent(model))
    tab, other = await server.tab(), await server.tab()
    await tab.opened()
    await other.opened()
    request = chat_request("r1", json.dumps({"messages": [user_message("Go")]}))
    await tab.send_together(request, {"type": "cf_agent_chat_clear"})
    assert (await tab.done("r1"))["outcome"] in {"aborted", "skipped"}
    await other.done("r1")
    assert chunks_of(other.frames, "r1") == []
    assert await server.stored() == []
    assert model.requests == []
    await tab.ask("r2", "Again")
    assert (await tab.done("r2"))["outcome"] == "completed"


async def test_a_request_right_after_a_clear_waits_for_the_old_turn_and_is_answered(serve: Serve) -> None:
    gate = Gate()
    model = ScriptedModel([[say("Half"), pause(gate)], say("Fresh.")])
    server = await serve(agent(model))
    tab = await server.tab()
    await tab.ask("r1", "Old")
    await gate.reached()
    fresh = user_message("New")
    body = json.dumps({"messages": [fresh]})
    await tab.send_together({"type": "cf_agent_chat_clear"}, chat_request("r2", body))
    assert (await tab.done("r2"))["outcome"] == "completed"
    order = [frame["id"] for frame in tab.frames if frame.get("done")]
    assert order == ["r1", "r2"]
    assert [message["role"] for message in model.requests[1].messages] == ["user"]
    stored = await server.stored()
    assert stored[0] == fresh
    assert [message["role"] for message in stored] == ["user", "assistant"]


async def test_a_stop_and_a_clear_in_the_same_breath_are_a_clear(serve: Serve) -> None:
    gate = Gate()
    server = await serve(agent(ScriptedModel([[say("Half"), pause(gate)]])))
    tab = await server.tab()
    await tab.ask("r1", "Go")
    await gate.reached()
    await tab.send_together({"type": CANCEL, "id": "r1"}, {"type": "cf_agent_chat_clear"})
    assert (await tab.done("r1"))["outcome"] == "aborted"
    assert await server.stored() == []
