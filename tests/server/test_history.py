"""What is kept: large messages, branches, restarts."""

import json
from pathlib import Path

import pytest

from perdure import ChatResponse, Limits, Think, tool
from perdure.testing import Gate, ScriptedModel, call, pause, say, strict_provider_errors
from tests.requirements import requirement
from tests.support import Serve, agent, chat_request, chunks_of, user_message

pytestmark = pytest.mark.anyio

MB = 1_000_000

WIDE = Limits(window=32 * MB, upload=32 * MB, frame=128 * MB)
"""So much is sent that no test here is about a window; ``test_history_windows`` is."""


@requirement("protocol:56")
async def test_another_answer_stands_beside_the_first_and_is_the_one_shown(serve: Serve) -> None:
    model = ScriptedModel([say("One."), say("Two."), say("Two, again.")])
    server = await serve(agent(model))
    tab, other = await server.tab(), await server.tab()
    first, second = user_message("First"), user_message("Second")
    await tab.ask("r1", first)
    await tab.done("r1")
    answer = (await server.stored())[-1]
    await tab.ask("r2", first, answer, second)
    await tab.done("r2")
    old = await server.stored()

    start = len(other.frames)
    await tab.ask("r3", first, answer, second, trigger="regenerate-message")
    await other.done("r3")
    new = await server.stored()
    assert new[:3] == old[:3]
    assert new[3]["id"] != old[3]["id"]
    assert new[3]["parts"][-1]["text"] == "Two, again."
    snapshots = [frame["messages"] for frame in other.frames[start:] if frame["type"] == "cf_agent_chat_messages"]
    assert snapshots[-1] == new
    assert [message["id"] for message in model.requests[2].messages] == [message["id"] for message in old[:3]]
    assert strict_provider_errors(model.requests[2]) == []


@requirement("engine:64")
async def test_another_answer_is_reported_like_any_other(serve: Serve) -> None:
    heard: list[ChatResponse] = []
    model = ScriptedModel([say("One."), say("One, again.")])

    def on_chat_response(self: Think, response: ChatResponse) -> None:
        heard.append(response)

    server = await serve(agent(model, on_chat_response=on_chat_response))
    tab = await server.tab()
    question = user_message("Hi")
    await tab.ask("r1", question)
    await tab.done("r1")
    (_, old) = await server.stored()
    await tab.ask("r2", question, trigger="regenerate-message")
    await tab.done("r2")
    (_, new) = await server.stored()
    assert [(said.request_id, said.status, said.continuation) for said in heard] == [
        ("r1", "completed", False),
        ("r2", "completed", False),
    ]
    assert [said.message["id"] for said in heard] == [old["id"], new["id"]]
    assert new["id"] != old["id"]


@requirement("engine:64")
async def test_asking_for_another_answer_with_an_empty_list_is_an_ordinary_request(serve: Serve) -> None:
    model = ScriptedModel([say("One.")])
    server = await serve(agent(model))
    tab = await server.tab()
    await tab.ask("r1", "Hi")
    await tab.done("r1")
    stored = await server.stored()
    start = len(tab.frames)
    for request, trigger in (("r2", "submit-message"), ("r3", "regenerate-message")):
        await tab.ask(request, trigger=trigger)
        assert (await tab.done(request))["outcome"] == "completed"
    assert tab.kinds(start) == ["cf_agent_chat_messages", "cf_agent_use_chat_response"] * 2
    assert await server.stored() == stored, "the last message is an answer: there is nothing to answer"


async def test_another_answer_in_the_middle_leaves_the_later_messages_off_the_path(serve: Serve) -> None:
    model = ScriptedModel([say("One."), say("Two."), say("One, again."), say("Three.")])
    server = await serve(agent(model))
    tab = await server.tab()
    first, second, third = (user_message(text) for text in ("First", "Second", "Third"))
    await tab.ask("r1", first)
    await tab.done("r1")
    await tab.ask("r2", *(await server.stored()), second)
    await tab.done("r2")
    await tab.ask("r3", first, trigger="regenerate-message")
    await tab.done("r3")
    assert [message["parts"][-1]["text"] for message in await server.stored()] == ["First", "One, again."]
    await tab.ask("r4", *(await server.stored()), third)
    await tab.done("r4")
    shown = [message["parts"][-1]["text"] for message in await server.stored()]
    assert shown == ["First", "One, again.", "Third", "Three."]
    assert all(strict_provider_errors(request) == [] for request in model.requests)


async def test_an_edited_question_is_answered_on_a_branch_of_its_own(serve: Serve) -> None:
    model = ScriptedModel([say("One."), say("Two."), say("Other.")])
    server = await serve(agent(model))
    tab, other = await server.tab(), await server.tab()
    first = user_message("First")
    await tab.ask("r1", first)
    await tab.done("r1")
    await tab.ask("r2", *(await server.stored()), user_message("Second"))
    await tab.done("r2")
    edited = {**first, "parts": [{"type": "text", "text": "First, edited"}]}
    await tab.ask("r3", edited)
    await other.done("r3")
    stored = await server.stored()
    assert [message["parts"][-1]["text"] for message in stored] == ["First, edited", "Other."]
    assert stored[0]["id"] != first["id"]
    assert [message["parts"][-1]["text"] for message in model.requests[2].messages] == ["First, edited"]


async def test_a_restart_keeps_branches_and_the_path_that_is_shown(serve: Serve) -> None:
    first = await serve(agent(ScriptedModel([say("One."), say("One, again."), say("Two.")])))
    tab = await first.tab()
    question = user_message("First")
    await tab.ask("r1", question)
    await tab.done("r1")
    await tab.ask("r2", question, trigger="regenerate-message")
    await tab.done("r2")
    await tab.ask("r3", *(await first.stored()), user_message("Second"))
    await tab.done("r3")
    stored = await first.stored()
    await first.stop()

    model = ScriptedModel([say("Three.")])
    second = await serve(agent(model))
    assert await second.stored() == stored
    tab = await second.tab()
    await tab.ask("r4", *stored, user_message("Third"))
    await tab.done("r4")
    assert [message["id"] for message in model.requests[0].messages[:4]] == [message["id"] for message in stored]


async def test_edits_among_waiting_questions_can_be_read_after_a_restart(serve: Serve) -> None:
    """The question that is edited away follows one whose place changes when the first answer is stored."""
    gate = Gate()
    model = ScriptedModel([[pause(gate), say("One.")], say("Two."), say("Three."), say("Edited.")])
    first = await serve(agent(model))
    tab = await first.tab()
    u1, u2, u3 = (user_message(text) for text in ("First", "Second", "Third"))
    await tab.ask("r1", u1)
    await gate.reached()
    await tab.ask("r2", u1, u2)
    await tab.ask("r3", u1, u2, u3)
    await tab.ask("r4", u1, u2, {**u3, "parts": [{"type": "text", "text": "Third, edited"}]})
    await tab.settle()
    gate.open()
    await tab.done("r4")
    stored = await first.stored()
    await first.stop()

    second = await serve(agent(ScriptedModel([say("More.")])))
    assert await second.stored() == stored
    tab = await second.tab()
    await tab.ask("r5", *stored, user_message("Fourth"))
    assert (await tab.done("r5"))["outcome"] == "completed"


async def test_a_message_of_twenty_megabytes_is_stored_byte_for_byte(serve: Serve, tmp_path: Path) -> None:
    text = (
        '{ "id":"u-big", "role":"user",\n "parts":[{"text":"' + "☃🌍é\\n" * 1_700_000 + '","type":"text"}], "x":1.50}'
    )
    assert len(text.encode()) > 18 * MB
    server = await serve(agent(ScriptedModel([say("Long."), say("Next.")])), limits=WIDE)
    tab, other = await server.tab(), await server.tab()
    await tab.send(chat_request("r1", f'{{"messages":[{text}]}}'))
    assert (await tab.done("r1"))["outcome"] == "completed"
    await other.done("r1")
    history = (await server.get("/agents/agent/room/get-messages")).text
    assert history.startswith(f"[{text},")

    assert other.closed is None, "a large message is no slow reader"
    late = await server.tab()
    assert json.dumps((await late.opened())[0]["messages"][0]) == json.dumps(json.loads(text))
    await late.ask("r2", "Next")
    assert (await late.done("r2"))["outcome"] == "completed"
    await server.stop()

    again = await serve(agent(ScriptedModel([])), limits=WIDE)
    assert (await again.get("/agents/agent/room/get-messages")).text.startswith(f"[{text},")


async def test_a_conversation_that_is_larger_than_the_backlog_can_still_be_opened(serve: Serve) -> None:
    server = await serve(agent(ScriptedModel([say("One."), say("Two.")])), limits=WIDE)
    tab = await server.tab()
    for number in (1, 2):
        await tab.ask(f"r{number}", user_message("x" * 10 * MB))
        assert (await tab.done(f"r{number}"))["outcome"] == "completed"
    late = await server.tab()
    assert len((await late.opened())[0]["messages"]) == 4
    await late.settle()


@requirement("fault:PS-04")
async def test_a_pasted_text_and_an_attachment_of_some_megabytes_are_stored_whole(serve: Serve) -> None:
    model = ScriptedModel([say("One."), say("Two."), say("Three.")])
    server = await serve(agent(model), limits=WIDE)
    tab, other = await server.tab(), await server.tab()
    pasted = user_message("x" * 3 * MB)
    picture = {"type": "file", "mediaType": "image/png", "url": "data:image/png;base64," + "A" * 6 * MB}
    attached = {"id": "u-file", "role": "user", "parts": [picture]}
    await tab.ask("r1", pasted)
    await other.done("r1")
    await tab.ask("r2", attached)
    await other.done("r2")
    await tab.ask("r3", "Small")
    assert (await other.done("r3"))["outcome"] == "completed"
    stored = await server.stored()
    assert (stored[0], stored[2]) == (pasted, attached)
    assert other.closed is None


@requirement("fault:RS-15")
async def test_one_huge_chunk_reaches_the_live_tab_the_late_one_and_the_store(serve: Serve) -> None:
    gate = Gate()
    output = "y" * 3 * MB

    @tool
    async def dump() -> str:
        """A lot."""
        return output

    server = await serve(agent(ScriptedModel([[call("dump", id="c1")], [say("There."), pause(gate)]]), dump))
    tab = await server.tab()
    await tab.ask("r1", "Go")
    await gate.reached()
    late = await server.tab()
    await late.opened()
    await late.ack("r1")
    await late.seen(lambda frame: frame.get("replayComplete", False))
    gate.open()
    for seen in (tab, late):
        await seen.done("r1")
        [chunk] = [item for item in chunks_of(seen.frames, "r1") if item["type"] == "tool-output-available"]
        assert chunk["output"] == output
    assert (await server.stored())[-1]["parts"][1]["output"] == output


@requirement("fault:PS-02")
async def test_outputs_in_other_scripts_are_kept_whole_over_a_restart(serve: Serve) -> None:
    outputs = ["漢" * 700_000, "😀" * 500_000]

    @tool
    async def read(number: int) -> str:
        """Text."""
        return outputs[number]

    calls = [call("read", {"number": number}, id=f"c{number}") for number in range(2)]
    first = await serve(agent(ScriptedModel([calls, say("Read.")]), read))
    tab = await first.tab()
    await tab.ask("r1", "Go")
    await tab.done("r1")
    await first.stop()
    model = ScriptedModel([say("Again.")])
    second = await serve(agent(model, read))
    stored = await second.stored()
    assert [part["output"] for part in stored[-1]["parts"] if "output" in part] == outputs
    tab = await second.tab()
    await tab.ask("r2", *stored, user_message("And?"))
    assert (await tab.done("r2"))["outcome"] == "completed"
    assert strict_provider_errors(model.requests[0]) == []


async def test_a_restart_keeps_everything_that_was_said(serve: Serve) -> None:
    first = await serve(agent(ScriptedModel([say("One."), say("Two.")])))
    for name in ("one", "two"):
        tab = await first.tab(name)
        await tab.ask("r1", f"To {name}")
        await tab.done("r1")
    stored = {name: await first.stored(name) for name in ("one", "two")}
    await first.stop()
    second = await serve(agent(ScriptedModel([])))
    for name, messages in stored.items():
        assert await second.stored(name) == messages
        greeting = (await (await second.tab(name)).opened())[0]
        assert greeting["messages"] == messages
