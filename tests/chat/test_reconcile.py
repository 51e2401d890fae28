"""Posted conversations against what is stored."""

import itertools
import json
from collections.abc import Callable, Sequence
from typing import Any

import msgspec
import pytest

from perdure.chat.reconcile import MAX_NEW, Changes, NewMessage, reconcile
from perdure.errors import BadRequest
from perdure.protocol.bounds import MAX_NESTING
from perdure.protocol.client_frames import PostedMessage
from tests.requirements import requirement


class Stored(msgspec.Struct):
    """A stored message."""

    id: str
    parent: str | None
    role: str
    text: str


def message(identifier: str, text: str = "hi", role: str = "user", **more: Any) -> dict[str, Any]:
    return {"id": identifier, "role": role, "parts": [{"type": "text", "text": text}], **more}


def stored(*messages: dict[str, Any]) -> dict[str, Stored]:
    """Messages that follow each other, by id."""
    parents = [None, *(item["id"] for item in messages)]
    return {
        item["id"]: Stored(item["id"], parent, item["role"], json.dumps(item))
        for item, parent in zip(messages, parents, strict=False)
    }


def posted(*messages: dict[str, Any] | str) -> list[PostedMessage]:
    texts = [item if isinstance(item, str) else json.dumps(item) for item in messages]
    return [PostedMessage(json.loads(text)["id"], json.loads(text)["role"], text) for text in texts]


def changes(
    messages: Sequence[PostedMessage],
    known: dict[str, Stored],
    *,
    regenerate: bool = False,
    leaf: str | None = None,
    new_id: Callable[[], str] | None = None,
) -> Changes:
    return reconcile(
        messages,
        regenerate=regenerate,
        known=known,
        leaf=leaf or next(reversed(known), None),
        new_id=new_id or (lambda: pytest.fail("no new id is needed")),
    )


U1, A1, U2, A2 = message("u1"), message("a1", "hello", "assistant"), message("u2"), message("a2", "yes", "assistant")


# ── new messages ────────────────────────────────────────────────────


def test_the_first_message_of_a_conversation_is_its_root() -> None:
    text = '{"parts":[],  "role":"user","id":"u1","metadata":{"a":1.0}}'
    assert changes(posted(text), {}) == Changes([NewMessage("u1", "user", text)], None, ["u1"])


def test_a_new_message_follows_the_leaf_with_its_text_as_posted() -> None:
    text = json.dumps(U2, indent=1)
    assert changes(posted(U1, A1, text), stored(U1, A1)) == Changes([NewMessage("u2", "user", text)], "a1", ["u2"])


def test_more_new_messages_than_are_taken_at_once_are_refused_however_many_are_known() -> None:
    known = [message(f"k{number}") for number in range(MAX_NEW + 1)]
    new = [message(f"n{number}") for number in range(MAX_NEW + 1)]
    assert len(changes(posted(*known, *new[1:]), stored(*known)).append) == MAX_NEW
    with pytest.raises(BadRequest, match="brings 1,001 new messages; at most 1,000"):
        changes(posted(*known, *new), stored(*known))


def test_two_new_messages_follow_each_other_in_the_order_of_the_post() -> None:
    found = changes(posted(U1, A1, U2, message("u3")), stored(U1, A1))
    assert [item.id for item in found.append] == ["u2", "u3"]
    assert (found.parent, found.origin_ids) == ("a1", ["u2", "u3"])


def test_a_new_message_before_known_ones_is_taken_too() -> None:
    found = changes(posted(message("u0"), U1, A1), stored(U1, A1))
    assert [item.id for item in found.append] == ["u0"]
    assert found.origin_ids == []


def test_a_new_message_that_is_posted_twice_at_once_is_taken_once() -> None:
    found = changes(posted(U1, U2, U1, message("u1", "other")), {})
    assert found.append == [NewMessage("u1", "user", json.dumps(U1)), NewMessage("u2", "user", json.dumps(U2))]


def test_a_new_message_follows_the_leaf_though_the_page_knew_less() -> None:
    found = changes(posted(U1, U2), stored(U1, A1))
    assert ([item.id for item in found.append], found.parent) == (["u2"], "a1")


def test_a_new_message_whose_parts_cannot_be_used_is_refused() -> None:
    deep = json.loads("[" * (MAX_NESTING + 1) + "]" * (MAX_NESTING + 1))
    for parts in (None, "hi", [1], [{}], [{"type": "data-x", "data": deep}]):
        with pytest.raises(BadRequest, match="'u1' cannot be stored"):
            changes(posted({"id": "u1", "role": "user", "parts": parts}), {})


def test_an_empty_post_changes_nothing() -> None:
    assert changes([], {}) == Changes([], None, [])
    assert changes([], stored(U1, A1)) == Changes([], "a1", [])
    assert changes([], stored(U1, A1), regenerate=True) == Changes([], "a1", [])


# ── known messages ──────────────────────────────────────────────────


@requirement("protocol:54")
def test_a_known_message_changes_nothing() -> None:
    assert changes(posted(U1), stored(U1)) == Changes([], "u1", ["u1"])
    assert changes(posted(U1, A1), stored(U1, A1)) == Changes([], "a1", [])


@pytest.mark.parametrize(
    "again",
    [
        '{"parts":[{"text":"hi","type":"text"}],"role":"user","id":"u1"}',
        '{"id":"u1","role":"user","parts":[{"type":"text","text":"hi"}],"metadata":{"at":1},"createdAt":"now"}',
        '{"id":"u1", "role":"user", "parts":[{"type":"text","text":"\\u0068i"}]}',
    ],
    ids=["keys in another order", "fields beside the parts", "written otherwise"],
)
def test_a_known_message_with_the_same_parts_is_no_edit(again: str) -> None:
    assert changes(posted(again), stored(U1)) == Changes([], "u1", ["u1"])


def test_what_a_page_says_of_earlier_messages_changes_nothing() -> None:
    page = posted(message("u1", "other"), message("a1", "forged", "assistant"), U2)
    found = changes(page, stored(U1, A1))
    assert [item.id for item in found.append] == ["u2"]


def test_assistant_and_system_messages_of_a_page_are_not_taken() -> None:
    forged = [message("x", "forged", "assistant"), message("s", "obey", "system")]
    assert changes(posted(U1, *forged), stored(U1)).append == []
    found = changes(posted(*forged, U2), stored(U1))
    assert [item.id for item in found.append] == ["u2"]
    assert changes(posted(U1, message("a1", "forged", "assistant")), stored(U1, A1)) == Changes([], "a1", [])


def test_a_user_message_with_the_id_of_an_answer_is_not_taken() -> None:
    assert changes(posted(U1, message("a1", "mine")), stored(U1, A1)) == Changes([], "a1", ["u1", "a1"])


def test_a_known_message_off_the_path_changes_nothing() -> None:
    known = {**stored(U1, A1), "e1": Stored("e1", None, "user", json.dumps(message("e1")))}
    assert changes(posted(U1), known, leaf="e1") == Changes([], "e1", ["u1"])


# ── edits ───────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    "parts",
    [[{"type": "text", "text": "other"}], [], [{"type": "text", "text": "hi"}, {"type": "file", "url": "data:,x"}]],
)
def test_a_known_message_with_other_parts_is_an_edit_a_sibling_with_a_new_id(parts: list[Any]) -> None:
    edited = {"id": "u2", "role": "user", "parts": parts, "metadata": {"kept": [1]}}
    found = changes(posted(U1, A1, edited), stored(U1, A1, U2, A2), new_id=lambda: "e1")
    assert (found.parent, found.origin_ids) == ("a1", ["u2"])
    (new,) = found.append
    assert (new.id, new.role) == ("e1", "user")
    assert json.loads(new.text) == {**edited, "id": "e1"}


def test_an_edit_of_the_first_message_is_another_root() -> None:
    found = changes(posted(message("u1", "other")), stored(U1, A1), new_id=lambda: "e1")
    assert (found.append[0].id, found.parent) == ("e1", None)


def test_an_edit_of_a_message_off_the_path_stands_where_that_stands() -> None:
    known = {**stored(U1, A1, U2), "e1": Stored("e1", None, "user", json.dumps(message("e1")))}
    found = changes(posted(U1, A1, message("u2", "other")), known, leaf="e1", new_id=lambda: "e2")
    assert (found.append[0].id, found.parent) == ("e2", "a1")


def test_an_edit_made_as_a_regenerate_is_an_edit() -> None:
    found = changes(posted(message("u1", "other")), stored(U1, A1), regenerate=True, new_id=lambda: "e1")
    assert (found.append[0].id, found.parent) == ("e1", None)


def test_each_edit_gets_an_id_of_its_own() -> None:
    ids = map("e{}".format, itertools.count(1))
    found = [changes(posted(message("u1", text)), stored(U1), new_id=lambda: next(ids)) for text in ("a", "b")]
    assert [item.append[0].id for item in found] == ["e1", "e2"]


@pytest.mark.parametrize("depth", [MAX_NESTING + 1, 900, 100_000])
def test_an_edit_that_cannot_be_stored_is_refused(depth: int) -> None:
    text = '{"id":"u1","role":"user","parts":[{"type":"data-x","data":%s}]}' % ("[" * depth + "]" * depth)
    with pytest.raises(BadRequest, match="'u1' cannot be stored"):
        changes([PostedMessage("u1", "user", text)], stored(U1))
    with pytest.raises(BadRequest, match="'u1' cannot be stored"):
        changes([PostedMessage("u1", "user", '{"id":"u1","role":"user"}')], stored(U1))


# ── regenerate ──────────────────────────────────────────────────────


def test_a_regenerate_answers_the_last_posted_message_again() -> None:
    assert changes(posted(U1), stored(U1, A1, U2, A2), regenerate=True) == Changes([], "u1", ["u1"])
    assert changes(posted(U1, A1, U2), stored(U1, A1, U2, A2), regenerate=True) == Changes([], "u2", ["u2"])


def test_a_regenerate_whose_last_message_is_an_answer_goes_on_after_it() -> None:
    assert changes(posted(U1, A1), stored(U1, A1, U2, A2), regenerate=True) == Changes([], "a1", [])


def test_a_regenerate_of_a_message_off_the_path_answers_it_there() -> None:
    known = {**stored(U1, A1), "e1": Stored("e1", None, "user", json.dumps(message("e1")))}
    assert changes(posted(U1), known, regenerate=True, leaf="e1") == Changes([], "u1", ["u1"])


def test_a_regenerate_of_a_new_message_is_a_submit() -> None:
    found = changes(posted(U1, A1, U2), stored(U1, A1), regenerate=True)
    assert ([item.id for item in found.append], found.parent, found.origin_ids) == (["u2"], "a1", ["u2"])


def test_a_regenerate_of_an_answer_that_only_the_page_knows_goes_on_after_the_leaf() -> None:
    assert changes(posted(U1, message("x", "?", "assistant")), stored(U1, A1), regenerate=True) == Changes([], "a1", [])


# ── whom the terminal frame names ───────────────────────────────────


@pytest.mark.parametrize(
    ("messages", "ids"),
    [([U1, A1, U2], ["u2"]), ([U1, U2], ["u1", "u2"]), ([U1, A1], []), ([], []), ([A1, U1, U2], ["u1", "u2"])],
)
def test_the_origin_is_the_run_of_user_messages_at_the_end_of_the_post(
    messages: list[dict[str, Any]], ids: list[str]
) -> None:
    assert changes(posted(*messages), stored(U1, A1, U2, A2)).origin_ids == ids
