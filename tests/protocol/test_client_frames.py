"""Frames of clients: each kind, and everything that is none."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from perdure.protocol.bounds import MAX_NESTING
from perdure.protocol.client_frames import (
    Ack,
    Cancel,
    ChatInit,
    ChatRequest,
    Clear,
    ClientFrame,
    Probe,
    RpcRequest,
    StateUpdate,
    Unusable,
    Upload,
    parse,
)
from tests.protocol.samples import json_objects, json_values

CHAT = "cf_agent_use_chat_request"
CANCEL = "cf_agent_chat_request_cancel"
CLEAR = "cf_agent_chat_clear"
PROBE = "cf_agent_stream_resume_request"
ACK = "cf_agent_stream_resume_ack"
UPLOAD = "cf_agent_chat_messages"
STATE = "cf_agent_state"
KINDS = [CHAT, CANCEL, CLEAR, PROBE, ACK, UPLOAD]


@pytest.mark.parametrize(
    ("frame", "parsed"),
    [
        (
            {"type": CHAT, "id": "R1", "init": {"method": "POST", "body": "{}"}},
            ChatRequest("R1", ChatInit("POST", "{}")),
        ),
        ({"type": CANCEL, "id": "R1"}, Cancel("R1")),
        ({"type": CLEAR}, Clear()),
        ({"type": PROBE, "probeId": "P1"}, Probe("P1")),
        ({"type": PROBE}, Probe(None)),
        ({"type": PROBE, "probeId": None}, Probe(None)),
        ({"type": ACK, "id": "R1"}, Ack("R1")),
        ({"type": UPLOAD, "messages": [{"id": "u1"}]}, Upload()),
        ({"type": STATE, "state": {"a": [1, None]}}, StateUpdate({"a": [1, None]})),
        ({"type": STATE, "state": None}, StateUpdate(None)),
        ({"type": "rpc", "id": "C1", "method": "add", "args": [1, {}]}, RpcRequest("C1", "add", [1, {}])),
    ],
)
def test_each_kind_of_frame_is_read(frame: dict[str, Any], parsed: ClientFrame) -> None:
    assert parse(json.dumps(frame)) == parsed


@pytest.mark.parametrize("kind", KINDS)
def test_fields_that_are_unknown_are_passed_over(kind: str) -> None:
    known = {"type": kind, "id": "R1", "init": {"method": "POST", "body": "{}", "headers": {"a": "b"}}}
    more = {"probe": 1, "nested": {"type": CLEAR, "id": [1, {"x": None}]}, "": True}
    assert parse(json.dumps({**more, **known})) == parse(json.dumps(known))
    assert not isinstance(parse(json.dumps(known)), Unusable)


@pytest.mark.parametrize("text", ["", " ", "hello", "{", "[]", "[1]", "7", "null", "true", '"text"', "NaN", "\x00"])
def test_what_is_no_json_object_is_unusable_and_belongs_to_no_request(text: str) -> None:
    frame = parse(text)
    assert isinstance(frame, Unusable)
    assert frame.reason.startswith("not a JSON object")
    assert frame.request_id is None


@pytest.mark.parametrize("kind", ["cf_agent_chat_clear ", "CF_AGENT_CHAT_CLEAR", "", None, 5, ["a"], {"a": 1}])
def test_a_frame_of_unknown_type_is_unusable_whatever_id_it_has(kind: Any) -> None:
    frame = parse(json.dumps({"type": kind, "id": "R1"}))
    assert isinstance(frame, Unusable)
    assert frame.reason.startswith("unknown type")
    assert frame.request_id is None


def test_a_frame_without_type_is_unusable() -> None:
    assert isinstance(parse('{"id":"R1"}'), Unusable)


def test_the_reason_does_not_grow_with_what_a_client_sends() -> None:
    frame = parse(json.dumps({"type": "x" * 100_000}))
    assert isinstance(frame, Unusable)
    assert len(frame.reason) < 200


@pytest.mark.parametrize(
    "rest",
    [
        {},
        {"init": None},
        {"init": "POST"},
        {"init": []},
        {"init": {"method": "POST", "body": None}},
        {"init": {"method": "POST", "body": {"messages": []}}},
        {"init": {"method": None, "body": "{}"}},
        {"init": {"method": ["POST"], "body": "{}"}},
    ],
)
def test_a_malformed_chat_request_says_which_request_it_was(rest: dict[str, Any]) -> None:
    frame = parse(json.dumps({"type": CHAT, "id": "R1", **rest}))
    assert isinstance(frame, Unusable)
    assert frame.request_id == "R1"


@pytest.mark.parametrize("kind", [CHAT, CANCEL, ACK])
@pytest.mark.parametrize("identifier", [{}, {"id": None}, {"id": 5}, {"id": ["R1"]}, {"id": ""}])
def test_a_frame_that_needs_an_id_and_has_none_is_unusable(kind: str, identifier: dict[str, Any]) -> None:
    frame = parse(json.dumps({"type": kind, "init": {"method": "POST", "body": "{}"}, **identifier}))
    assert isinstance(frame, Unusable)
    assert frame.request_id is None


@pytest.mark.parametrize("kind", [CANCEL, ACK, PROBE])
def test_only_chat_requests_are_answered_when_they_are_malformed(kind: str) -> None:
    frame = parse(json.dumps({"type": kind, "id": "R1" if kind == PROBE else 1, "probeId": 7}))
    assert isinstance(frame, Unusable)
    assert frame.request_id is None


def test_an_init_without_its_fields_is_left_to_the_check_of_the_body() -> None:
    assert parse(json.dumps({"type": CHAT, "id": "R1", "init": {}})) == ChatRequest("R1", ChatInit("", ""))


def test_lone_surrogates_do_not_make_a_frame_unusable() -> None:
    assert parse('{"type":"cf_agent_chat_request_cancel","id":"\\ud800","more":"\\udc00"}') == Cancel("\ufffd")


@pytest.mark.parametrize("kind", [*KINDS, "other"])
def test_a_depth_bomb_is_unusable(kind: str) -> None:
    for bomb in ("[" * 100_000, '{"a":' * 100_000 + "1" + "}" * 100_000):
        assert isinstance(
            parse(f'{{"type":"{kind}","id":"R1","init":{{"method":"POST","body":""}},"x":{bomb}}}'), Unusable
        )


@pytest.mark.parametrize(
    "frame",
    [
        {"type": STATE},
        {"type": STATE, "State": 1},
        {"type": "rpc", "id": "C1", "method": "add"},
        {"type": "rpc", "id": "C1", "method": "add", "args": None},
        {"type": "rpc", "id": "C1", "method": "add", "args": {}},
        {"type": "rpc", "method": "add", "args": []},
        {"type": "rpc", "id": 5, "method": "add", "args": []},
        {"type": "rpc", "id": "C1", "args": []},
    ],
)
def test_what_is_no_state_and_no_call_is_left_to_the_application(frame: dict[str, Any]) -> None:
    parsed = parse(json.dumps(frame))
    assert isinstance(parsed, Unusable)
    assert (parsed.foreign, parsed.request_id) == (True, None)


def test_frames_of_other_types_are_left_to_the_application_and_malformed_chat_frames_are_not() -> None:
    foreign = [parse(text) for text in ("hello", "[1]", "{}", '{"type":"mine"}')]
    own = [parse(json.dumps({"type": kind})) for kind in (CHAT, CANCEL, ACK)]
    assert all(isinstance(frame, Unusable) and frame.foreign for frame in foreign)
    assert all(isinstance(frame, Unusable) and not frame.foreign for frame in own)


def test_a_state_and_the_arguments_of_a_call_may_nest_so_deep_and_no_deeper() -> None:
    for text in ('{"type":"cf_agent_state","state":%s}', '{"type":"rpc","id":"C1","method":"add","args":[%s]}'):
        assert not isinstance(parse(text % ("[" * MAX_NESTING + "]" * MAX_NESTING)), Unusable)
        for depth in (MAX_NESTING + 1, 900):
            assert isinstance(parse(text % ("[" * depth + "]" * depth)), Unusable)


_fields = {"id": json_values(3), "init": json_values(3) | json_objects(), "probeId": json_values(2)}


@given(st.fixed_dictionaries({"type": st.sampled_from(KINDS) | json_values(3)}, optional=_fields))
def test_no_object_makes_parsing_raise(frame: dict[str, Any]) -> None:
    parsed = parse(json.dumps(frame))
    assert isinstance(parsed, Unusable) or frame["type"] in KINDS


@given(st.text() | st.text('{}[]":,\\u0d8cftypeid_agn ', max_size=60))
def test_no_text_makes_parsing_raise(text: str) -> None:
    parse(text)


@given(st.sampled_from(KINDS), st.integers(0, 200), st.text(max_size=3))
def test_no_damage_to_a_frame_makes_parsing_raise(kind: str, place: int, inserted: str) -> None:
    text = json.dumps(
        {"type": kind, "id": "R1", "probeId": "P1", "init": {"method": "POST", "body": '{"messages":[]}'}}
    )
    parse(text[:place] + inserted + text[place + 1 :])
