"""``kill -9`` at every stage of a turn: what anybody has seen is there after the restart, and the chat goes on."""

from __future__ import annotations

import json

import pytest

from tests.crash.conftest import Start
from tests.crash.consistency import INTERRUPTED, check_consistent, check_goes_on, offered, text_so_far
from tests.requirements import requirement
from tests.support import chunks_of, user_message

pytestmark = pytest.mark.anyio


async def test_killed_before_the_first_checkpoint_the_question_is_kept(start: Start, asked) -> None:
    server = await start()
    tab, other = await server.tab(), await server.tab()
    question = user_message("hang 3")
    await tab.ask("r1", question)
    await tab.delta("r1", "2 ")
    streamed = text_so_far(tab, "r1")
    await server.kill()

    server = await start()
    late = await server.tab()
    greeting = (await late.opened())[0]
    assert greeting["messages"] == await server.stored()
    check_consistent(greeting["messages"], [question], streamed)
    assert other.frames[3:4] == [{"type": "cf_agent_chat_messages", "messages": [question]}]
    assert (await offered(late))["body"] == INTERRUPTED
    await check_goes_on(server, late, asked)


async def test_killed_after_a_checkpoint_the_answer_is_kept_as_far_as_it_was_stored(start: Start, asked) -> None:
    server = await start()
    tab = await server.tab()
    question = user_message("hang 100")
    await tab.ask("r1", question)
    await tab.delta("r1", "99 ")
    await server.stored()
    streamed = text_so_far(tab, "r1")
    live = [frame for frame in tab.of("r1") if "seq" in frame]
    await server.kill()

    server = await start()
    messages = await server.stored()
    check_consistent(messages, [question], streamed)
    assert [message["role"] for message in messages] == ["user", "assistant"]
    assert len(messages[1]["parts"][-1]["text"].split()) >= 50, "a checkpoint was stored"
    assert messages[1]["id"] == chunks_of(tab.frames, "r1")[0]["messageId"]

    for _ in range(2):
        late = await server.tab()
        done = await offered(late)
        assert (done["body"], done["error"], done["messageIds"]) == (INTERRUPTED, True, [question["id"]])
        replayed = [frame for frame in late.of("r1") if "seq" in frame]
        assert replayed == [{**frame, "replay": True} for frame in live[: len(replayed)]]
        assert text_so_far(late, "r1") == messages[1]["parts"][-1]["text"]
    await check_goes_on(server, late, asked)


async def test_killed_with_a_tool_running_the_call_is_an_error_and_is_not_run_again(start: Start, asked, ran) -> None:
    server = await start()
    tab = await server.tab()
    question = user_message("tool hangs")
    await tab.ask("r1", question)
    await tab.seen(lambda frame: '"tool-input-available"' in frame.get("body", ""))
    await tab.settle()
    await server.stored()
    await server.kill()

    server = await start()
    late = await server.tab()
    messages = await server.stored()
    check_consistent(messages, [question])
    assert (await offered(late))["body"] == INTERRUPTED
    await check_goes_on(server, late, asked)
    assert ran() == ["hangs"]
    assert len(asked()) == 2


@requirement("engine:122")
async def test_killed_after_a_tool_has_run_its_result_is_kept(start: Start, asked, ran) -> None:
    """The result is durable before the model is asked again, so it is there once the next step has begun."""
    server = await start()
    tab = await server.tab()
    question = user_message("tool counts")
    await tab.ask("r1", question)
    await tab.delta("r1", "after")
    await server.kill()

    server = await start()
    messages = await server.stored()
    check_consistent(messages, [question])
    [part] = [part for part in messages[1]["parts"] if part["type"] == "tool-counts"]
    assert (part["state"], part["output"]) == ("output-available", "counted")
    await check_goes_on(server, await server.tab(), asked)
    assert ran() == ["counts"]


async def test_killed_while_a_request_waits_both_questions_are_kept(start: Start, asked) -> None:
    server = await start()
    tab, other = await server.tab(), await server.tab()
    first, second = user_message("hang 100"), user_message("say 3")
    await tab.ask("r1", first)
    await tab.delta("r1", "99 ")
    await tab.ask("r2", first, second)
    await other.seen(lambda frame: len(frame.get("messages", [])) == 2)
    await server.stored()
    streamed = text_so_far(tab, "r1")
    await server.kill()

    server = await start()
    messages = await server.stored()
    assert [message["id"] for message in messages if message["role"] == "user"] == [first["id"], second["id"]]
    assert [message["role"] for message in messages] == ["user", "assistant", "user"]
    assert streamed.startswith(messages[1]["parts"][-1]["text"])
    late = await server.tab()
    assert (await offered(late))["body"] == INTERRUPTED
    await check_goes_on(server, late, asked)


async def test_killed_after_a_waiting_request_was_stopped_its_question_is_still_shown(start: Start, asked) -> None:
    server = await start()
    tab, other = await server.tab(), await server.tab()
    first, second = user_message("hang 100"), user_message("say 3")
    await tab.ask("r1", first)
    await tab.delta("r1", "99 ")
    await tab.ask("r2", first, second)
    await tab.cancel("r2")
    await other.done("r2")
    await server.stored()
    await server.kill()

    server = await start()
    messages = await server.stored()
    assert [message["id"] for message in messages if message["role"] == "user"] == [first["id"], second["id"]]
    await check_goes_on(server, await server.tab(), asked)


async def test_killed_right_after_done_the_answer_is_there(start: Start, asked) -> None:
    server = await start()
    tab = await server.tab()
    question = user_message("say 20")
    await tab.ask("r1", question)
    await tab.done("r1")
    snapshot = [frame for frame in tab.frames if frame["type"] == "cf_agent_chat_messages"][-1]["messages"]
    await server.kill()

    server = await start()
    assert await server.stored() == snapshot
    late = await server.tab()
    assert (await late.probe("p1"))["reason"] == "idle"
    start_count = len(late.frames)
    body = json.dumps({"messages": [question]})
    await late.send({"type": "cf_agent_use_chat_request", "id": "r1", "init": {"method": "POST", "body": body}})
    await late.settle()
    assert late.kinds(start_count).count("cf_agent_use_chat_response") <= 1, "it is not answered again"
    assert await server.stored() == snapshot
    await check_goes_on(server, late, asked)


async def test_killed_right_after_a_stop_what_was_shown_is_there(start: Start, asked) -> None:
    server = await start()
    tab = await server.tab()
    await tab.ask("r1", "hang 30")
    await tab.delta("r1", "29 ")
    await tab.cancel("r1")
    assert (await tab.done("r1"))["outcome"] == "aborted"
    snapshot = [frame for frame in tab.frames if frame["type"] == "cf_agent_chat_messages"][-1]["messages"]
    await server.kill()

    server = await start()
    assert await server.stored() == snapshot
    late = await server.tab()
    assert (await late.probe("p1"))["reason"] == "idle"
    await check_goes_on(server, late, asked)


async def test_killed_right_after_a_clear_nothing_comes_back(start: Start, asked) -> None:
    server = await start()
    tab, other = await server.tab(), await server.tab()
    await tab.ask("r1", "hang 100")
    await tab.delta("r1", "99 ")
    await tab.clear()
    await other.seen(lambda frame: frame["type"] == "cf_agent_chat_clear")
    await server.kill()

    server = await start()
    assert await server.stored() == []
    late = await server.tab()
    assert (await late.probe("p1"))["reason"] == "idle"
    await check_goes_on(server, late, asked)


async def test_killed_again_and_again_in_the_same_conversation(start: Start, asked) -> None:
    questions = []
    for number in range(3):
        server = await start()
        tab = await server.tab()
        questions.append(user_message(f"hang {100 + number}"))
        await tab.ask(f"r{number}", *(await server.stored()), questions[-1])
        await tab.delta(f"r{number}", f"{99 + number} ")
        await server.stored()
        streamed = text_so_far(tab, f"r{number}")
        await server.kill()
    server = await start()
    messages = await server.stored()
    check_consistent(messages, questions, streamed)
    assert [message["role"] for message in messages] == ["user", "assistant"] * 3
    await check_goes_on(server, await server.tab(), asked)
