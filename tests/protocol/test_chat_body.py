"""The body of a chat request, and the messages in it."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from perdure.errors import BadRequest
from perdure.protocol.bounds import MAX_NESTING
from perdure.protocol.client_frames import (
    ChatBody,
    ChatInit,
    PostedMessage,
    check_user_message,
    parse_chat_body,
)
from tests.protocol.samples import json_objects, json_values

USER = {"id": "u1", "role": "user", "parts": [{"type": "text", "text": "hi"}]}


def body(fields: Any, method: str = "POST") -> ChatBody:
    return parse_chat_body(ChatInit(method, fields if isinstance(fields, str) else json.dumps(fields)))


def nested(depth: int) -> str:
    return "[" * depth + '"leaf"' + "]" * depth


def test_messages_come_as_they_were_posted() -> None:
    first, second = '{"parts":[],  "id":"u1",\n"role":"user","x":{"y":[1]}}', '{"role":"assistant","id":"a1"}'
    parsed = body(f'{{"messages":[{first} , {second}],"trigger":"submit-message"}}')
    assert parsed.messages == [PostedMessage("u1", "user", first), PostedMessage("a1", "assistant", second)]
    assert parsed.trigger == "submit-message"
    assert parsed.custom == {}


def test_there_may_be_no_messages() -> None:
    assert body({"messages": []}).messages == []


@pytest.mark.parametrize(
    "trigger", [None, "", "submit-message", "resume", "REGENERATE-MESSAGE", 5, ["regenerate-message"]]
)
def test_every_trigger_but_regenerate_is_a_submit(trigger: Any) -> None:
    assert body({"messages": [USER], "trigger": trigger}).trigger == "submit-message"
    assert body({"messages": [USER]}).trigger == "submit-message"
    assert body({"messages": [USER], "trigger": "regenerate-message"}).trigger == "regenerate-message"


def test_every_field_that_is_not_the_chats_own_is_custom() -> None:
    tools = [{"name": "getLocation"}]
    custom = {"userId": 5, "deep": {"a": [None, True, 1.5]}, "": "empty", "message": "x", "Trigger": "y"}
    parsed = body({"messages": [USER], "trigger": "submit-message", "clientTools": tools, **custom})
    assert parsed.custom == custom
    assert body({"messages": [USER], "clientTools": tools}).custom == {}


@pytest.mark.parametrize("method", ["", "GET", "post", "POST "])
def test_only_post_is_a_chat_request(method: str) -> None:
    with pytest.raises(BadRequest, match="must be POST"):
        body({"messages": [USER]}, method)


@pytest.mark.parametrize("text", ["", " ", "\n\t"])
def test_a_blank_body_is_refused(text: str) -> None:
    with pytest.raises(BadRequest, match="no body"):
        body(text)


@pytest.mark.parametrize(
    "text",
    [
        "{",
        "[]",
        "null",
        "7",
        '"messages"',
        "{}",
        '{"messages":null}',
        '{"messages":{}}',
        '{"messages":"[]"}',
        '{"messages":[null]}',
        '{"messages":["u1"]}',
        '{"messages":[[]]}',
        '{"messages":[{"id":"u1"}]}',
        '{"messages":[{"role":"user"}]}',
        '{"messages":[{"id":"","role":"user"}]}',
        '{"messages":[{"id":1,"role":"user"}]}',
        '{"messages":[{"id":"u1","role":"tool"}]}',
        '{"messages":[{"id":"u1","role":null}]}',
        '{"messages":[],"custom":NaN}',
        '{"messages":[],"custom":}',
        '{"messages":[{"id":"u1","role":"user","parts":[{"type":"text","text":"\\q"}]}]}',
        '{"messages":[{"id":"u1","role":"user","parts":[{"type":"text","text":"a\nb"}]}]}',
        '{"messages":[{"id":"u1","role":"user","parts":[{"type":"text","n":01}]}]}',
    ],
)
def test_a_body_that_is_no_conversation_is_refused(text: str) -> None:
    with pytest.raises(BadRequest, match="cannot be read"):
        body(text)


def test_a_broken_emoji_does_not_keep_a_conversation_out() -> None:
    text = '{"id":"u1","role":"user","parts":[{"type":"text","text":"\\ud83d"}]}'
    parsed = body(f'{{"messages":[{text}],"note":"\\udc00","\\ud800":1}}')
    assert json.loads(parsed.messages[0].text)["parts"] == [{"type": "text", "text": "\ufffd"}]
    assert parsed.custom == {"note": "\ufffd", "\ufffd": 1}


def test_a_custom_field_may_nest_so_deep_and_no_deeper() -> None:
    deepest = nested(MAX_NESTING)
    assert body(f'{{"messages":[],"deep":{deepest}}}').custom == {"deep": json.loads(deepest)}
    for depth in (MAX_NESTING + 1, 900, 100_000):
        with pytest.raises(BadRequest):
            body(f'{{"messages":[],"deep":{nested(depth)}}}')


@given(
    st.fixed_dictionaries({}, optional={"messages": st.lists(json_values(4), max_size=3), "trigger": json_values(2)}),
    json_objects(),
)
def test_no_body_raises_anything_but_a_bad_request(own: dict[str, Any], custom: dict[str, Any]) -> None:
    try:
        parsed = body({**custom, **own})
    except BadRequest:
        return
    assert parsed.custom == {
        key: value for key, value in custom.items() if key not in {"messages", "trigger", "clientTools"}
    }


# ── a message that is to be stored ──────────────────────────────────


def posted(text: str) -> PostedMessage:
    return PostedMessage("u1", "user", text)


def test_a_message_whose_parts_have_types_can_be_stored() -> None:
    check_user_message(posted(json.dumps(USER)))
    check_user_message(posted('{"id":"u1","parts":[]}'))
    check_user_message(posted('{"id":"u1","parts":[{"type":"file","url":"data:,"},{"type":"","x":null}],"metadata":5}'))


@pytest.mark.parametrize(
    "text",
    [
        '{"id":"u1"}',
        '{"id":"u1","parts":null}',
        '{"id":"u1","parts":{}}',
        '{"id":"u1","parts":"hi"}',
        '{"id":"u1","parts":["hi"]}',
        '{"id":"u1","parts":[null]}',
        '{"id":"u1","parts":[{}]}',
        '{"id":"u1","parts":[{"type":null}]}',
        '{"id":"u1","parts":[{"type":"text"},{"text":"hi"}]}',
    ],
)
def test_a_message_without_usable_parts_cannot_be_stored(text: str) -> None:
    with pytest.raises(BadRequest, match="'u1' cannot be stored"):
        check_user_message(posted(text))


def test_a_message_may_nest_so_deep_and_no_deeper() -> None:
    # The message, its parts and the part itself are three levels.
    check_user_message(posted(f'{{"id":"u1","parts":[{{"type":"data-x","data":{nested(MAX_NESTING - 3)}}}]}}'))
    for depth in (MAX_NESTING - 2, 900, 100_000):
        for text in (
            '{"id":"u1","parts":[{"type":"data-x","data":%s}]}',
            '{"id":"u1","parts":[],"metadata":{"a":[%s]}}',
        ):
            with pytest.raises(BadRequest, match="'u1' cannot be stored"):
                check_user_message(posted(text % nested(depth)))


def test_the_reason_does_not_grow_with_the_id() -> None:
    with pytest.raises(BadRequest) as caught:
        check_user_message(PostedMessage("u" * 100_000, "user", "{}"))
    assert len(str(caught.value)) < 300
