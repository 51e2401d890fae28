"""Turns that fail: what everybody is told, what is kept, and that the agent goes on."""

import json

import pytest

from perdure import ModelRejected, ModelUnreachable, tool
from perdure.testing import Gate, ScriptedModel, call, fail, pause, say, strict_provider_errors
from tests.requirements import requirement
from tests.support import ErrorLog, Serve, agent, chunks_of, text_of, user_message

pytestmark = pytest.mark.anyio

OVERLOADED = ModelRejected("The model is overloaded.", status=529)


@requirement("protocol:59", "protocol:60")
async def test_an_error_in_mid_stream_keeps_the_partial_and_the_next_turn_works(serve: Serve) -> None:
    model = ScriptedModel([[say("a", "b"), fail(ModelUnreachable("The line broke."))], say("Better.")])
    server = await serve(agent(model))
    tab, other = await server.tab(), await server.tab()
    await tab.opened()
    await other.opened()
    first = user_message("First", "u-1")
    await tab.ask("r1", first)
    await tab.done("r1")
    await other.done("r1")

    assert tab.frames[3:] == other.frames[4:]
    *chunks, error, snapshot, done = tab.frames[3:]
    assert text_of(chunks_of(chunks, "r1")) == "ab"
    assert error == {
        "type": "cf_agent_use_chat_response",
        "id": "r1",
        "body": "The line broke.",
        "done": False,
        "error": True,
        "messageIds": ["u-1"],
    }
    assert snapshot["messages"][-1]["parts"][-1] == {"type": "text", "text": "ab", "state": "done"}
    assert done == {
        "type": "cf_agent_use_chat_response",
        "id": "r1",
        "body": "",
        "done": True,
        "outcome": "error",
        "messageIds": ["u-1"],
    }
    assert not {"error", "abort"} & {chunk["type"] for chunk in chunks_of(tab.frames, "r1")}

    await tab.ask("r2", *(await server.stored()), user_message("Second"))
    assert (await tab.done("r2"))["outcome"] == "completed"
    assert strict_provider_errors(model.requests[1]) == []
    assert [message["role"] for message in await server.stored()] == ["user", "assistant", "user", "assistant"]


async def test_an_error_before_the_first_word_leaves_no_answer(serve: Serve) -> None:
    server = await serve(agent(ScriptedModel([[fail(OVERLOADED)], say("Better.")])))
    tab = await server.tab()
    await tab.opened()
    question = user_message("First")
    await tab.ask("r1", question)
    assert (await tab.done("r1"))["outcome"] == "error"
    assert "cf_agent_chat_messages" not in tab.kinds(3)
    assert await server.stored() == [question]

    await tab.ask("r2", question)
    assert (await tab.done("r2"))["outcome"] == "completed"
    assert [message["role"] for message in await server.stored()] == ["user", "assistant"]


@requirement("protocol:58", "engine:40")
async def test_an_error_before_the_stream_is_one_frame(serve: Serve) -> None:
    server = await serve(agent(None))
    tab = await server.tab()
    await tab.opened()
    question = user_message("Hi", "u-1")
    await tab.ask("r1", question)
    frame = await tab.done("r1")
    assert tab.frames[3:] == [frame]
    assert (frame["error"], frame["outcome"], frame["messageIds"]) == (True, "error", ["u-1"])
    assert "has no model" in frame["body"]
    assert await server.stored() == [question]


async def test_what_the_users_code_raises_ends_the_turn_and_stays_in_the_log(serve: Serve, log: ErrorLog) -> None:
    def get_system_prompt(self: object) -> str:
        raise RuntimeError("password is hunter2")

    server = await serve(agent(ScriptedModel([]), get_system_prompt=get_system_prompt))
    tab = await server.tab()
    await tab.ask("r1", "Hi")
    frame = await tab.done("r1")
    assert frame["error"] is True
    assert "hunter2" not in frame["body"]
    log.expect("Turn r1 failed")


async def test_a_model_that_raises_anything_ends_the_turn_and_the_partial_is_kept(serve: Serve, log: ErrorLog) -> None:
    server = await serve(agent(ScriptedModel([[say("Half"), fail(KeyError("oops"))], say("Better.")])))
    tab = await server.tab()
    await tab.ask("r1", "Hi")
    assert (await tab.done("r1"))["outcome"] == "error"
    assert (await server.stored())[-1]["parts"][-1]["text"] == "Half"
    log.expect("Turn r1 failed")
    await tab.ask("r2", "Again")
    assert (await tab.done("r2"))["outcome"] == "completed"


async def test_an_error_in_mid_stream_is_not_told_to_a_tab_that_owes_an_ack_but_its_end_is(serve: Serve) -> None:
    gate = Gate()
    server = await serve(agent(ScriptedModel([[say("Half"), pause(gate), fail(OVERLOADED)]])))
    tab = await server.tab()
    await tab.ask("r1", "Hi")
    await gate.reached()
    late = await server.tab()
    await late.opened()
    gate.open()
    done = await late.done("r1")
    assert late.of("r1") == [{"type": "cf_agent_stream_resuming", "id": "r1"}, done]
    assert done["outcome"] == "error"


async def test_a_model_that_calls_a_tool_for_ever_stops_at_the_limit_of_steps(serve: Serve) -> None:
    @tool
    async def again() -> str:
        """Once more."""
        return "again"

    model = ScriptedModel([*([call("again")] for _ in range(4)), say("Enough.")])
    server = await serve(agent(model, again, max_steps=4))
    tab = await server.tab()
    await tab.ask("r1", "Go")
    assert (await tab.done("r1"))["outcome"] == "completed"
    assert len(model.requests) == 4
    await tab.ask("r2", "Stop")
    assert (await tab.done("r2"))["outcome"] == "completed"
    assert strict_provider_errors(model.requests[-1]) == []


@requirement("fault:MQ-07")
async def test_calls_that_cannot_be_run_and_one_that_raises_are_results_and_the_model_goes_on(serve: Serve) -> None:
    runs: list[int] = []

    @tool
    async def broken(number: int) -> str:
        """Always fails."""
        runs.append(number)
        raise ValueError("out of paper")

    calls = [
        call("broken", {"number": 1}, id="c1"),
        call("nope", id="c2"),
        call("broken", id="c3", raw='{"number":'),
        call("broken", {"number": "x"}, id="c4"),
    ]
    model = ScriptedModel([calls, say("Sorry.")])
    server = await serve(agent(model, broken))
    tab = await server.tab()
    await tab.ask("r1", "Print")
    assert (await tab.done("r1"))["outcome"] == "completed"
    parts = {part["toolCallId"]: part for part in (await server.stored())[-1]["parts"] if "toolCallId" in part}
    assert [parts[f"c{n}"]["state"] for n in range(1, 5)] == ["output-error"] * 4
    assert "out of paper" in parts["c1"]["errorText"]
    assert "nope" in parts["c2"]["errorText"]
    assert runs == [1]
    model.assert_done()


async def test_an_error_text_travels_as_text_not_as_a_chunk(serve: Serve) -> None:
    text = json.dumps({"type": "text-delta", "id": "0", "delta": "planted"})
    server = await serve(agent(ScriptedModel([[fail(ModelRejected(text))]])))
    tab = await server.tab()
    await tab.ask("r1", "Hi")
    await tab.done("r1")
    [error] = [frame for frame in tab.of("r1") if frame.get("error")]
    assert error["body"] == text
    assert "seq" not in error
