"""The conversation tree: where messages go, and what the store makes of it."""

import pytest

from perdure.storage.contract import ClearConversation
from tests.session.chats import Chat

pytestmark = pytest.mark.anyio


# ── the path ────────────────────────────────────────────────────────


async def test_a_new_transcript_is_empty(chat: Chat) -> None:
    transcript = chat.transcript
    assert (transcript.leaf, transcript.texts(), transcript.messages()) == (None, [], [])
    assert await transcript.history(None) == []
    assert await transcript.page() == []


async def test_messages_follow_each_other_with_their_texts_kept(chat: Chat) -> None:
    text = '{"role":"user",  "id":"u1","parts":[],"x":1.0}'
    chat.write(chat.transcript.append("u1", "user", text, None, 1))
    chat.answer("a1", "u1")
    assert chat.transcript.texts() == [text, '{"id":"a1","role":"assistant","parts":[{"type":"text","text":"a1"}]}']
    assert chat.transcript.leaf == "a1"
    assert await chat.history("a1") == ["u1", "a1"]
    assert await chat.history("u1") == ["u1"]
    assert await chat.history(None) == []
    assert (await chat.reopened()).transcript.texts() == chat.transcript.texts()


async def test_another_answer_to_a_message_takes_the_place_of_what_followed(chat: Chat) -> None:
    chat.say("u1", "a1", "u2", "a2")
    chat.answer("a3", "u1")
    assert chat.path == ["u1", "a3"]
    assert await chat.history("a2") == ["u1", "a1", "u2", "a2"], "the old branch stays in the tree"
    assert set(chat.transcript.known) == {"u1", "a1", "u2", "a2", "a3"}


async def test_a_message_after_one_of_another_branch_brings_that_branch_back(chat: Chat) -> None:
    chat.say("u1", "a1", "u2")
    chat.answer("a3", "u1")
    chat.append("u4", "u2")
    assert chat.path == ["u1", "a1", "u2", "u4"]


async def test_a_second_root_leaves_the_first_tree(chat: Chat) -> None:
    chat.say("u1", "a1")
    chat.append("u2", None)
    assert chat.path == ["u2"]
    assert await chat.history("a1") == ["u1", "a1"]


# ── messages that wait ──────────────────────────────────────────────


async def test_an_answer_goes_before_the_messages_that_wait(chat: Chat) -> None:
    chat.say("u1")
    chat.append("u2", "u1", waiting=True)
    chat.append("u3", "u2", waiting=True)
    assert chat.path == ["u1", "u2", "u3"], "they are shown at once"
    chat.answer("a1", "u1")
    assert chat.path == ["u1", "a1", "u2", "u3"]
    chat.transcript.begin(["u2"])
    chat.answer("a2", "u2")
    assert chat.path == ["u1", "a1", "u2", "a2", "u3"]
    assert await chat.history("u3") == ["u1", "a1", "u2", "a2", "u3"]
    assert (await chat.reopened()).path == chat.path


async def test_a_message_that_waits_no_longer_is_left_behind_like_any_other(chat: Chat) -> None:
    chat.say("u1")
    chat.append("u2", "u1", waiting=True)
    chat.transcript.begin(["u2"])
    chat.answer("a1", "u1")
    assert chat.path == ["u1", "a1"]


async def test_a_message_can_be_held_again(chat: Chat) -> None:
    chat.say("u1", "u2")
    chat.transcript.hold(["u2", "never there"])
    chat.answer("a1", "u1")
    assert chat.path == ["u1", "a1", "u2"]


async def test_an_answer_to_what_was_edited_meanwhile_stays_off_the_path(chat: Chat) -> None:
    chat.say("u1", "a1", "u2")
    chat.append("e1", None)
    chat.answer("a2", "u2")
    assert chat.path == ["e1"]
    assert await chat.history("a2") == ["u1", "a1", "u2", "a2"]
    chat.answer("a3", "e1")
    assert chat.path == ["e1", "a3"]
    assert (await chat.reopened()).path == ["e1", "a3"]


async def test_another_answer_to_a_message_of_another_branch_is_shown(chat: Chat) -> None:
    chat.say("u1", "a1")
    chat.append("e1", None)
    chat.transcript.aim_at("u1")
    chat.answer("a2", "u1")
    assert chat.path == ["u1", "a2"]


async def test_an_edit_that_waits_leaves_those_behind_that_waited_for_what_it_replaces(chat: Chat) -> None:
    chat.say("u1")
    chat.append("u2", "u1", waiting=True)
    chat.append("e2", "u1", waiting=True)
    assert chat.path == ["u1", "e2"]
    chat.answer("a1", "u1")
    assert chat.path == ["u1", "a1", "e2"]


async def test_the_tip_is_the_last_message_that_does_not_wait(chat: Chat) -> None:
    assert chat.transcript.tip(None) is None
    chat.say("u1")
    chat.append("u2", "u1", waiting=True)
    assert (chat.transcript.leaf, chat.transcript.tip(None), chat.transcript.tip("u2")) == ("u2", "u1", "u1")
    chat.append("e1", None)
    assert chat.transcript.tip("u1") == "u1", "a message of another branch stays what it is"


async def test_clearing_forgets_everything_and_the_ids_may_come_again(chat: Chat) -> None:
    chat.say("u1", "a1")
    assert chat.transcript.clear() == [ClearConversation()]
    assert chat.transcript.known == {}
    assert chat.path == []
    chat.append("u1", None)
    assert chat.path == ["u1"]


async def test_an_update_keeps_the_place(chat: Chat) -> None:
    chat.say("u1", "a1", "u2")
    chat.write(chat.transcript.update({"id": "a1", "role": "assistant", "parts": [{"type": "text", "text": "new"}]}))
    assert chat.path == ["u1", "a1", "u2"]
    assert chat.transcript.messages()[1]["parts"][0]["text"] == "new"
    again = await chat.reopened()
    assert again.transcript.texts() == chat.transcript.texts()


# ── what the store makes of it ──────────────────────────────────────


async def test_a_message_that_was_edited_while_it_waited_is_found_again_where_it_stood(chat: Chat) -> None:
    chat.say("u1")
    chat.append("u2", "u1", waiting=True)
    chat.append("u3", "u2", waiting=True)
    chat.append("e3", "u2", waiting=True)
    chat.answer("a1", "u1")
    assert chat.path == ["u1", "a1", "u2", "e3"]
    again = await chat.reopened()
    assert again.path == chat.path
    await again.transcript.reach(["u3"], "u3")
    assert await again.history("u3") == ["u1", "a1", "u2", "u3"]


async def test_it_is_found_again_also_when_the_server_was_restarted_before_it_moved(chat: Chat) -> None:
    chat.say("u1")
    chat.append("u2", "u1", waiting=True)
    chat.append("u3", "u2", waiting=True)
    chat.append("e3", "u2", waiting=True)
    woken = await chat.reopened()
    await woken.transcript.recall_following(["u2", "e3"])
    woken.transcript.hold(["u2", "e3"])
    woken.answer("a1", "u1")
    again = await woken.reopened()
    assert again.path == ["u1", "a1", "u2", "e3"]
    await again.transcript.reach(["u3"], "u3")
    assert await again.history("u3") == ["u1", "a1", "u2", "u3"]


async def test_what_follows_a_message_that_waits_keeps_its_place_though_it_waits_no_longer(chat: Chat) -> None:
    chat.say("u1")
    chat.append("u2", "u1", waiting=True)
    chat.append("u3", "u2")
    chat.answer("a1", "u1")
    assert chat.path == ["u1", "a1", "u2", "u3"]
    assert (await chat.reopened()).path == chat.path
