"""One turn as every connection sees it, and several turns after each other."""

import json

import pytest

from perdure import tool
from perdure.testing import Gate, ScriptedModel, call, chunk, finish, pause, say, strict_provider_errors, think
from tests.requirements import requirement
from tests.support import Serve, agent, chat_request, chunks_of, text_of, user_message

pytestmark = pytest.mark.anyio


@tool
async def double(number: int) -> int:
    """Twice the number."""
    return 2 * number


@requirement("protocol:44", "protocol:45", "protocol:47", "protocol:48", "protocol:49", "fault:MT-01")
async def test_an_ordinary_turn_is_the_same_on_every_connection(serve: Serve) -> None:
    server = await serve(agent(ScriptedModel([[think("Hm."), say("Hel", "lo.")]])))
    asking, second, third = [await server.tab() for _ in range(3)]
    for tab in (asking, second, third):
        await tab.opened()
    question = user_message("Hi", "u-1")
    await asking.ask("R1", question)
    for tab in (asking, second, third):
        await tab.done("R1")

    assert second.frames[3] == {"type": "cf_agent_chat_messages", "messages": [question]}
    assert third.frames[3] == second.frames[3]
    assert asking.kinds(3)[0] == "cf_agent_use_chat_response", "the one that asks knows its question"
    assert asking.frames[3:] == second.frames[4:] == third.frames[4:]

    *chunks, snapshot, done = asking.frames[3:]
    assert [frame["seq"] for frame in chunks] == list(range(len(chunks)))
    assert all(frame["id"] == "R1" and frame["done"] is False for frame in chunks)
    assert [json.loads(frame["body"])["type"] for frame in chunks] == [
        "start",
        "start-step",
        "reasoning-start",
        "reasoning-delta",
        "reasoning-end",
        "text-start",
        "text-delta",
        "text-delta",
        "text-end",
        "finish-step",
        "finish",
    ]
    assert [message["role"] for message in snapshot["messages"]] == ["user", "assistant"]
    assert "connect" not in snapshot
    assert done == {
        "type": "cf_agent_use_chat_response",
        "id": "R1",
        "body": "",
        "done": True,
        "outcome": "completed",
        "messageIds": ["u-1"],
    }


@requirement("protocol:46", "engine:63", "fault:MT-05")
async def test_the_first_chunk_names_the_id_under_which_the_answer_is_stored(serve: Serve) -> None:
    server = await serve(agent(ScriptedModel([say("Hello.")])))
    tab = await server.tab()
    await tab.ask("r1", "Hi")
    await tab.done("r1")
    start = chunks_of(tab.frames, "r1")[0]
    snapshot = [frame for frame in tab.frames if frame["type"] == "cf_agent_chat_messages"][-1]
    stored = await server.stored()
    assert start["type"] == "start"
    assert start["messageId"] == snapshot["messages"][-1]["id"] == stored[-1]["id"]
    assert len(stored) == 2


async def test_message_ids_are_those_of_the_user_messages_at_the_end_of_what_was_posted(serve: Serve) -> None:
    server = await serve(agent(ScriptedModel([say("One."), say("Two.")])))
    tab = await server.tab()
    first = user_message("First")
    await tab.ask("r1", first)
    await tab.done("r1")
    answer = (await server.stored())[-1]
    await tab.ask("r2", first, answer, user_message("a", "u-a"), user_message("b", "u-b"))
    assert (await tab.done("r2"))["messageIds"] == ["u-a", "u-b"]
    assert [message["id"] for message in await server.stored()][:4] == [first["id"], answer["id"], "u-a", "u-b"]


@requirement("protocol:50")
async def test_a_turn_that_says_nothing_stores_nothing_and_sends_no_snapshot(serve: Serve) -> None:
    server = await serve(agent(ScriptedModel([finish(), say("Hello.")])))
    tab = await server.tab()
    await tab.opened()
    await tab.ask("r1", "Hi")
    assert (await tab.done("r1"))["outcome"] == "completed"
    assert "cf_agent_chat_messages" not in tab.kinds(3)
    assert [message["role"] for message in await server.stored()] == ["user"]

    await tab.ask("r2", "And now?")
    await tab.done("r2")
    assert [message["role"] for message in await server.stored()] == ["user", "user", "assistant"]


async def test_a_turn_with_a_tool_streams_the_call_and_its_result_in_order(serve: Serve) -> None:
    model = ScriptedModel([[say("Let me see."), call("double", {"number": 21}, id="c1")], [say("42.")]])
    server = await serve(agent(model, double))
    tab = await server.tab()
    await tab.ask("r1", "Twice 21?")
    await tab.done("r1")
    chunks = chunks_of(tab.frames, "r1")
    assert [item["type"] for item in chunks] == [
        *["start", "start-step", "text-start", "text-delta", "text-end"],
        *["tool-input-start", "tool-input-delta", "tool-input-available", "tool-output-available", "finish-step"],
        *["start-step", "text-start", "text-delta", "text-end", "finish-step", "finish"],
    ]
    assert chunks[8] == {"type": "tool-output-available", "toolCallId": "c1", "output": 42}
    model.assert_done()
    assert strict_provider_errors(model.requests[1]) == []
    parts = (await server.stored())[-1]["parts"]
    assert [part["type"] for part in parts] == ["step-start", "text", "tool-double", "step-start", "text"]
    assert (parts[2]["state"], parts[2]["output"]) == ("output-available", 42)


@requirement("protocol:53", "fault:CO-01")
async def test_overlapping_requests_are_answered_one_after_the_other(serve: Serve) -> None:
    gates = [Gate(), Gate(), Gate()]
    steps = [
        [say(*(f"{turn}{n}" for n in range(5))), pause(gate), say(f"{turn}-end")] for turn, gate in enumerate(gates)
    ]
    model = ScriptedModel(steps)
    server = await serve(agent(model))
    tab, other = await server.tab(), await server.tab()
    posted = []
    for turn in range(3):
        posted.append(user_message(f"question {turn}"))
        await tab.ask(f"r{turn}", *posted)
        await gates[0].reached()
    await tab.settle()
    assert len(model.requests) == 1, "the second waits"
    for gate in gates:
        gate.open()
    for turn in range(3):
        await tab.done(f"r{turn}")
        await other.done(f"r{turn}")

    for seen in (tab, other):
        order = [frame["id"] for frame in seen.frames if frame["type"] == "cf_agent_use_chat_response"]
        assert order == sorted(order), "frames of two turns are mixed"
        for turn in range(3):
            frames = seen.of(f"r{turn}")
            assert frames[-1]["done"] is True
            assert text_of(chunks_of(frames, f"r{turn}")) == "".join(f"{turn}{n}" for n in range(5)) + f"{turn}-end"

    roles = [message["role"] for message in await server.stored()]
    assert roles == ["user", "assistant"] * 3
    second = model.requests[1].messages
    assert [message["role"] for message in second] == ["user", "assistant", "user"]
    assert second[1]["parts"][-1]["text"].endswith("0-end")
    assert all(strict_provider_errors(request) == [] for request in model.requests)


async def test_others_see_the_question_of_a_turn_that_waits(serve: Serve) -> None:
    gate = Gate()
    server = await serve(agent(ScriptedModel([[pause(gate), say("One.")], say("Two.")])))
    tab, other = await server.tab(), await server.tab()
    first, second = user_message("First"), user_message("Second")
    await tab.ask("r1", first)
    await tab.ask("r2", first, second)
    frame = await other.seen(lambda frame: len(frame.get("messages", [])) == 2)
    assert frame["messages"] == [first, second]
    gate.open()
    await other.done("r2")
    assert [message["id"] for message in await server.stored()][::2] == [first["id"], second["id"]]


@requirement("protocol:54")
async def test_a_user_message_that_is_posted_again_is_not_stored_twice(serve: Serve) -> None:
    server = await serve(agent(ScriptedModel([say("One."), say("Two.")])))
    tab = await server.tab()
    first = user_message("First")
    await tab.ask("r1", first)
    await tab.done("r1")
    stored = await server.stored()
    await tab.ask("r2", *stored, user_message("Second"))
    await tab.done("r2")
    assert (await server.stored())[:2] == stored
    assert len(await server.stored()) == 4


async def test_a_question_that_was_answered_is_not_answered_again_under_another_request(serve: Serve) -> None:
    model = ScriptedModel([say("One.")])
    server = await serve(agent(model))
    tab = await server.tab()
    first = user_message("First")
    await tab.ask("r1", first)
    await tab.done("r1")
    stored = await server.stored()
    await tab.ask("r2", first)
    assert (await tab.done("r2"))["outcome"] == "completed"
    model.assert_done()
    assert await server.stored() == stored
    assert tab.frames[-2] == {"type": "cf_agent_chat_messages", "messages": stored}


async def test_the_fields_of_a_posted_message_that_nobody_knows_are_kept(serve: Serve) -> None:
    server = await serve(agent(ScriptedModel([say("Hello.")])))
    tab = await server.tab()
    message = {**user_message("Hi ☃ \u2028"), "createdAt": "2026-01-01", "metadata": {"a": [1, None, {"b": 0.5}]}}
    message["parts"].append({"type": "data-mood", "data": {"x": 1}, "unknown": True})
    await tab.ask("r1", message)
    await tab.done("r1")
    assert (await server.stored())[0] == message


async def test_chunks_of_a_step_are_passed_on_as_they_are(serve: Serve) -> None:
    odd = [
        {"type": "data-progress", "id": "p", "data": {"value": 10}},
        {"type": "data-progress", "id": "p", "data": {"value": 90}},
        {"type": "data-note", "data": "psst", "transient": True},
        {"type": "source-url", "sourceId": "s", "url": "https://example.org"},
    ]
    server = await serve(agent(ScriptedModel([[*map(chunk, odd), say("Done.")]])))
    tab = await server.tab()
    await tab.ask("r1", "Go")
    await tab.done("r1")
    assert chunks_of(tab.frames, "r1")[2:6] == odd
    parts = (await server.stored())[-1]["parts"]
    assert [part["type"] for part in parts] == ["step-start", "data-progress", "source-url", "text"]
    assert parts[1]["data"] == {"value": 90}


async def test_a_trigger_that_nobody_knows_is_a_submit_and_so_is_none(serve: Serve) -> None:
    server = await serve(agent(ScriptedModel([say("One."), say("Two.")])))
    tab = await server.tab()
    await tab.ask("r1", "First", trigger="resume-stream")
    await tab.done("r1")
    await tab.send(chat_request("r2", json.dumps({"messages": [user_message("Second")]})))
    assert (await tab.done("r2"))["outcome"] == "completed"
    assert len(await server.stored()) == 4


@requirement("protocol:110", "fault:RS-12")
async def test_closing_the_only_page_does_not_stop_its_turn(serve: Serve) -> None:
    gate = Gate()
    deltas = [f"d{n} " for n in range(20)]
    server = await serve(agent(ScriptedModel([[say(*deltas[:3]), pause(gate), say(*deltas[3:])]])))
    tab = await server.tab()
    await tab.ask("r1", "Go")
    await tab.delta("r1", "d2 ")
    await tab.close()
    gate.open()

    late = await server.tab()
    await late.opened()
    if late.kinds()[0] == "cf_agent_stream_resuming":
        await late.ack("r1")
        await late.done("r1")
    assert (await server.stored())[-1]["parts"][-1]["text"] == "".join(deltas)
