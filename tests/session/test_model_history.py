"""What a model is shown of a conversation."""

import json
import math
from typing import Any

import pytest

from perdure.models.contract import HistoryMessage, ModelRequest, ToolSpec
from perdure.storage.contract import LoadBranch, UpdateMessage
from perdure.storage.sqlite import SqliteStore
from perdure.testing import strict_provider_errors
from tests.requirements import requirement
from tests.session.chats import AGENT, Chat, answer_of, file_of, text_of, write_line

pytestmark = pytest.mark.anyio

LONG = "r" * 900


def used(number: int, output: Any = LONG) -> dict[str, Any]:
    return {
        "type": "tool-read",
        "toolCallId": f"c{number}",
        "state": "output-available",
        "input": {"n": number},
        "output": output,
    }


def outputs(history: list[HistoryMessage]) -> list[int]:
    """How long the tool outputs are."""
    return [len(part["output"]) for entry in history for part in entry.message["parts"] if "output" in part]


async def with_tools(chat: Chat, count: int) -> None:
    for number in range(count):
        chat.append(f"u{number}", chat.transcript.leaf)
        chat.answer(f"a{number}", f"u{number}", used(number))


CUT = len("r" * 500 + "... [truncated 400 chars]")


@requirement("engine:59")
async def test_old_outputs_are_cut_in_what_the_model_sees_and_whole_in_what_is_stored(chat: Chat) -> None:
    await with_tools(chat, 10)
    shown = await chat.transcript.history("a9")
    assert outputs(shown) == [CUT] * 8 + [900] * 2, "of twenty messages the last four are whole"
    assert outputs([HistoryMessage(text) for text in chat.transcript.texts()]) == [900] * 10
    again = await chat.reopened()
    assert again.transcript.texts() == chat.transcript.texts()
    assert outputs(await again.transcript.history("a9")) == outputs(shown)


async def test_the_cut_moves_in_steps_and_what_was_shown_before_is_the_same(chat: Chat) -> None:
    seen: list[list[str]] = []
    for number in range(20):
        chat.append(f"u{number}", chat.transcript.leaf)
        seen.append([entry.text for entry in await chat.transcript.history(f"u{number}")])
        chat.answer(f"a{number}", f"u{number}", used(number))
    changed = [number for number in range(1, 20) if seen[number][: len(seen[number - 1])] != seen[number - 1]]
    assert changed == [6, 10, 14, 18], "a provider's cache of the prompt is lost every eight messages only"


async def test_nothing_is_cut_with_an_infinite_step(chat: Chat) -> None:
    await with_tools(chat, 20)
    assert outputs(await chat.transcript.history("a19", math.inf)) == [900] * 20
    assert outputs(await chat.transcript.history("a19", 1)) == [CUT] * 18 + [900] * 2


async def test_each_form_of_a_message_is_made_once(chat: Chat) -> None:
    await with_tools(chat, 20)
    first = await chat.transcript.history("a19")
    chat.append("u20", "a19")
    second = await chat.transcript.history("u20")
    assert all(one is other for one, other in zip(first, second, strict=False))
    earlier = await chat.transcript.history("u12")
    assert outputs(earlier) == [CUT] * 8 + [900] * 4, "an older place has fewer old messages"
    assert all(one is other for one, other in zip(first[:16], earlier[:16], strict=True))
    assert outputs(await chat.transcript.history("u20")) == outputs(second)


async def test_an_updated_message_is_shown_as_it_is_now(chat: Chat) -> None:
    await with_tools(chat, 10)
    await chat.transcript.history("a9")
    chat.write(chat.transcript.update(answer_of("a0", used(0, "n" * 700))))
    shown = (await chat.transcript.history("a9"))[1]
    assert shown.message["parts"][0]["output"] == "n" * 500 + "... [truncated 200 chars]"


async def test_an_old_message_with_an_attachment_is_shown_whole_but_for_its_results(store: SqliteStore) -> None:
    chat = await Chat.open(store, window=30_000)
    picture = file_of(b"p" * 40_000)
    chat.append("u0", None)
    chat.answer("a0", "u0", picture, used(0))
    for number in range(1, 10):
        chat.append(f"u{number}", chat.transcript.leaf, text="x" * 5_000)
    chat.transcript.shrink()
    assert chat.transcript.known["a0"].message is None
    shown = (await chat.transcript.history("u9", 1))[1]
    assert shown.message["parts"][0] == picture
    assert outputs([shown]) == [CUT]


# ── strict providers ────────────────────────────────────────────────


def complaints(history: list[HistoryMessage]) -> list[str]:
    return strict_provider_errors(ModelRequest("", history, [ToolSpec("read", "", {"type": "object"})]))


@pytest.mark.parametrize("memory", [1, 300, 1200, 5_000, 1_000_000])
async def test_no_window_begins_with_what_a_strict_provider_refuses(store: SqliteStore, memory: int) -> None:
    chat = await Chat.open(store)
    await with_tools(chat, 8)
    windowed = await chat.reopened(memory=memory)
    for upto in ("u7", "a7"):
        await windowed.transcript.reach([upto], upto)
        history = await windowed.transcript.history(upto)
        assert history[0].message["role"] == "user"
        assert complaints([*history, HistoryMessage(text_of("new"))]) == []


async def test_a_model_is_told_that_earlier_messages_are_left_out(store: SqliteStore) -> None:
    await write_line(store, [text_of("u0"), json.dumps(answer_of("a0")), text_of("u1"), json.dumps(answer_of("a1"))])
    chat = await Chat.open(store, memory=1)
    (note, last) = await chat.transcript.history("a1")
    assert note.message["parts"] == [{"type": "text", "text": "[Earlier messages are left out.]"}]
    assert last.message["id"] == "a1"


async def test_a_conversation_that_the_assistant_began_is_introduced(chat: Chat) -> None:
    chat.answer("a0", None)
    chat.append("u0", "a0")
    history = await chat.transcript.history("u0")
    assert [entry.message["role"] for entry in history] == ["user", "assistant", "user"]
    assert chat.path == ["a0", "u0"], "only the model is told"


# ── repair ──────────────────────────────────────────────────────────


@requirement("engine:55", "fault:MQ-02")
async def test_what_is_odd_in_stored_messages_is_put_right_once(store: SqliteStore) -> None:
    odd = [
        {**used(0), "input": '{"a":1}'},
        {**used(1), "input": ["x"]},
        {"type": "tool-read", "toolCallId": "c2", "state": "input-available", "input": {}},
    ]
    await write_line(store, [text_of("u0"), json.dumps(answer_of("a0", *odd)), text_of("u1")])
    chat = await Chat.open(store)
    repairs = chat.transcript.repair()
    assert (repairs.settled, repairs.normalised) == (["c2"], ["c0", "c1"])
    assert [type(operation) for operation in repairs.operations] == [UpdateMessage]
    chat.write(repairs.operations)
    history = await chat.transcript.history("u1")
    assert complaints(history) == []
    assert [part["input"] for part in history[1].message["parts"]] == [{"a": 1}, {}, {}]
    assert chat.transcript.repair().operations == []
    again = await chat.reopened()
    assert again.transcript.texts() == chat.transcript.texts()
    assert again.transcript.repair().operations == []


async def test_messages_of_people_are_never_repaired(store: SqliteStore) -> None:
    forged = json.dumps({"id": "u0", "role": "user", "parts": [{**used(0), "input": 5}]})
    await write_line(store, [forged])
    chat = await Chat.open(store)
    assert chat.transcript.repair().operations == []
    assert chat.transcript.texts() == [forged]


# ── awkward text ────────────────────────────────────────────────────


async def test_halves_of_characters_and_numbers_without_json_form_are_sound_for_the_model_too(chat: Chat) -> None:
    chat.append("u0", None)
    chat.answer(
        "a0",
        "u0",
        {"type": "text", "text": "broken \ud83d half, whole \ud83d\ude00"},
        used(0, {"n": math.nan, "i": math.inf, "s": "\udc00"}),
    )
    (_, shown) = await chat.transcript.history("a0")
    assert shown.message["parts"][0]["text"] == "broken \ufffd half, whole 😀"
    assert shown.message["parts"][1]["output"] == {"n": None, "i": None, "s": "\ufffd"}
    (row,) = (await stored(chat))[1:]
    assert row == shown.text
    row.encode()


async def test_what_a_page_posts_is_kept_byte_for_byte(chat: Chat) -> None:
    text = '{"parts":[{"type":"text","text":"\\ud83d \\u00e9 \\/ 1e400"}],\n "role":"user", "id":"u0" , "n":1E400}'
    chat.write(chat.transcript.append("u0", "user", text, None, 1))
    assert chat.transcript.texts() == [text]
    assert await stored(chat) == [text]
    assert (await chat.reopened()).transcript.texts() == [text]


async def stored(chat: Chat) -> list[str]:
    await chat.settled()
    return [row.body for row in (await chat.store.read(LoadBranch(AGENT))).rows]


# ── messages that no model is shown ─────────────────────────────────


async def test_what_is_left_out_is_shown_to_people_only_also_after_a_restart(chat: Chat) -> None:
    chat.say("u1", "a1", "u2", "u3", "a3", "u4")
    chat.write(chat.transcript.leave_out(["u2", "nobody"]))
    assert await chat.history("u4") == ["u1", "a1", "u3", "a3", "u4"]
    again = await chat.reopened()
    for each in (chat, again):
        assert each.path == ["u1", "a1", "u2", "u3", "a3", "u4"]
        assert [message["id"] for message in await each.transcript.page()] == each.path
        assert await each.history("u4") == ["u1", "a1", "u3", "a3", "u4"]
        assert await each.history("u3") == ["u1", "a1", "u3"]
        assert await each.history("a1") == ["u1", "a1"]


async def test_what_is_left_out_with_a_file_in_it_stays_out_when_the_files_are_not_in_memory(chat: Chat) -> None:
    picture = file_of(b"p" * 9_000)
    for identifier in ("u1", "u2", "u3"):
        text = json.dumps({"id": identifier, "role": "user", "parts": [picture]})
        chat.write(chat.transcript.append(identifier, "user", text, chat.transcript.leaf, 1))
    chat.write(chat.transcript.leave_out(["u2"]))
    again = await chat.reopened(window=100)
    assert again.path == ["u3"]
    assert await again.history("u3") == ["u1", "u3"]


async def test_what_is_left_out_is_left_out_of_another_branch_that_has_to_be_read(chat: Chat) -> None:
    chat.say("u1", "a1", "u2", "u3", "a3")
    chat.write(chat.transcript.leave_out(["u2"]))
    chat.append("e1")
    again = await chat.reopened()
    assert again.path == ["e1"]
    await again.transcript.reach(["u3"], "u3")
    assert await again.history("u3") == ["u1", "a1", "u3"]


async def test_what_is_taken_in_again_is_shown_again_and_stays_so(chat: Chat) -> None:
    chat.say("u1", "a1", "u2", "u3")
    chat.write(chat.transcript.leave_out(["u2", "u3"]))
    chat.write(chat.transcript.take_in("u2"))
    for nothing in (None, "u1", "nobody"):
        assert chat.transcript.take_in(nothing) == []
    again = await chat.reopened()
    for each in (chat, again):
        assert await each.history("u3") == ["u1", "a1", "u2"]


async def test_a_prompt_whose_first_question_is_left_out_begins_with_a_note(chat: Chat) -> None:
    chat.say("u1", "a1", "u2")
    chat.write(chat.transcript.leave_out(["u1"]))
    history = await chat.transcript.history("u2")
    assert [entry.message["role"] for entry in history] == ["user", "assistant", "user"]
    assert strict_provider_errors(ModelRequest(history=history, system="", tools=(), settings={})) == []


async def test_a_clear_forgets_what_was_left_out(chat: Chat) -> None:
    chat.say("u1", "u2")
    chat.write(chat.transcript.leave_out(["u1"]))
    chat.write(chat.transcript.clear())
    chat.say("u1", "u2")
    assert await chat.history("u2") == ["u1", "u2"]
