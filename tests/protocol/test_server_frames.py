"""Frames of the server, against the schemas that clients read them by."""

import json
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from perdure.protocol import server_frames as frames
from perdure.protocol.server_frames import ChunkFrames, body_of
from tests.protocol.samples import AWKWARD_TEXTS, json_objects

RESPONSE = "cf_agent_use_chat_response"
DELTA = {"type": "text-delta", "id": "0", "delta": "Hel"}
BODY = '{"type":"text-delta","id":"0","delta":"Hel"}'


def stream(*, continuation: bool = False) -> ChunkFrames:
    return ChunkFrames("R1", continuation=continuation)


@pytest.mark.parametrize(
    ("text", "frame"),
    [
        (
            frames.identity("alice%20b", "my-agent"),
            {"type": "cf_agent_identity", "name": "alice%20b", "agent": "my-agent"},
        ),
        (
            frames.identity("room", "a", state_follows=True),
            {"type": "cf_agent_identity", "name": "room", "agent": "a", "stateFollows": True},
        ),
        (frames.state('{"a":[1,null]}'), {"type": "cf_agent_state", "state": {"a": [1, None]}}),
        (frames.state("null"), {"type": "cf_agent_state", "state": None}),
        (frames.state_error("no"), {"type": "cf_agent_state_error", "error": "no"}),
        (frames.rpc_result("C1", "3"), {"type": "rpc", "id": "C1", "success": True, "done": True, "result": 3}),
        (frames.rpc_result("C1", "null"), {"type": "rpc", "id": "C1", "success": True, "done": True, "result": None}),
        (frames.rpc_result("C1", None), {"type": "rpc", "id": "C1", "success": True, "done": True}),
        (
            frames.rpc_result("C1", "3", done=False),
            {"type": "rpc", "id": "C1", "success": True, "done": False, "result": 3},
        ),
        (frames.rpc_error("C1", "no"), {"type": "rpc", "id": "C1", "success": False, "error": "no"}),
        (
            frames.mcp_servers(),
            {"type": "cf_agent_mcp_servers", "mcp": {"servers": {}, "tools": [], "prompts": [], "resources": []}},
        ),
        (frames.transcript([]), {"type": "cf_agent_chat_messages", "messages": []}),
        (frames.transcript([], connect=True), {"type": "cf_agent_chat_messages", "connect": True, "messages": []}),
        (frames.cleared(), {"type": "cf_agent_chat_clear"}),
        (frames.resuming("R1"), {"type": "cf_agent_stream_resuming", "id": "R1"}),
        (frames.resuming("R1", "P1"), {"type": "cf_agent_stream_resuming", "id": "R1", "probeId": "P1"}),
        (frames.pending("R1"), {"type": "cf_agent_stream_pending", "id": "R1"}),
        (frames.pending("R1", "P1"), {"type": "cf_agent_stream_pending", "id": "R1", "probeId": "P1"}),
        (frames.nothing_to_resume(), {"type": "cf_agent_stream_resume_none"}),
        (frames.nothing_to_resume("idle"), {"type": "cf_agent_stream_resume_none", "reason": "idle"}),
        (
            frames.nothing_to_resume("idle", "P1"),
            {"type": "cf_agent_stream_resume_none", "reason": "idle", "probeId": "P1"},
        ),
        (stream().live(body_of(DELTA), 3), {"type": RESPONSE, "id": "R1", "body": BODY, "done": False, "seq": 3}),
        (
            stream().replayed(body_of(DELTA), 3),
            {"type": RESPONSE, "id": "R1", "body": BODY, "done": False, "replay": True, "seq": 3},
        ),
        (
            stream().replay_complete(),
            {"type": RESPONSE, "id": "R1", "body": "", "done": False, "replay": True, "replayComplete": True},
        ),
        (stream().replay_done(), {"type": RESPONSE, "id": "R1", "body": "", "done": True, "replay": True}),
        (
            stream().error("model overloaded", ["u1"]),
            {
                "type": RESPONSE,
                "id": "R1",
                "body": "model overloaded",
                "done": False,
                "error": True,
                "messageIds": ["u1"],
            },
        ),
        (
            stream().terminal("completed", ["u1", "u2"]),
            {
                "type": RESPONSE,
                "id": "R1",
                "body": "",
                "done": True,
                "outcome": "completed",
                "messageIds": ["u1", "u2"],
            },
        ),
        (
            stream().terminal("aborted", []),
            {"type": RESPONSE, "id": "R1", "body": "", "done": True, "outcome": "aborted"},
        ),
        (
            stream().terminal_error("model overloaded", ["u1"]),
            {
                "type": RESPONSE,
                "id": "R1",
                "body": "model overloaded",
                "done": True,
                "error": True,
                "outcome": "error",
                "messageIds": ["u1"],
            },
        ),
        (
            frames.terminal("R1", "skipped", ["u2"]),
            {"type": RESPONSE, "id": "R1", "body": "", "done": True, "outcome": "skipped", "messageIds": ["u2"]},
        ),
        (
            frames.terminal_error("R1", "no"),
            {"type": RESPONSE, "id": "R1", "body": "no", "done": True, "error": True, "outcome": "error"},
        ),
    ],
)
def test_each_frame_has_its_fields_and_no_others(text: str, frame: dict[str, Any]) -> None:
    assert json.loads(text) == frame


@pytest.mark.parametrize(
    "make",
    [
        lambda s: s.live(body_of(DELTA), 0),
        lambda s: s.replayed(body_of(DELTA), 0),
        lambda s: s.replay_complete(),
        lambda s: s.replay_done(),
        lambda s: s.error("no", ["u1"]),
        lambda s: s.error("no", []),
        lambda s: s.terminal("completed", ["u1"]),
        lambda s: s.terminal_error("no", ["u1"]),
    ],
    ids=["live", "replayed", "complete", "done", "error", "error without ids", "terminal", "terminal error"],
)
def test_every_frame_of_a_continuation_says_so_and_no_other_does(make: Callable[[ChunkFrames], str]) -> None:
    ordinary, continuation = json.loads(make(stream())), json.loads(make(stream(continuation=True)))
    assert "continuation" not in ordinary
    assert continuation == {**ordinary, "continuation": True}


# ── chunks ──────────────────────────────────────────────────────────


@given(json_objects(), st.integers(0, 2**53), st.booleans(), st.text(max_size=8))
def test_a_chunk_has_the_same_body_and_number_live_and_replayed(
    chunk: dict[str, Any], seq: int, continuation: bool, request: str
) -> None:
    body = body_of({"type": "data-x", "data": chunk})
    made = ChunkFrames(request, continuation=continuation)
    live, replayed = json.loads(made.live(body, seq)), json.loads(made.replayed(body, seq))
    assert replayed.pop("replay") is True
    assert live == replayed
    assert live["seq"] == seq
    assert isinstance(live["body"], str)
    assert json.loads(live["body"]) == {"type": "data-x", "data": chunk}


@pytest.mark.parametrize("text", AWKWARD_TEXTS)
def test_text_survives_the_two_layers_of_json(text: str) -> None:
    frame = json.loads(stream().live(body_of({"type": "text-delta", "id": text, "delta": text}), 0))
    assert json.loads(frame["body"]) == {"type": "text-delta", "id": text, "delta": text}


@pytest.mark.parametrize("text", AWKWARD_TEXTS)
def test_ids_names_and_error_texts_survive(text: str) -> None:
    made = ChunkFrames(text)
    for frame in (made.live('""', 0), made.replay_done(), made.terminal("completed", [])):
        assert json.loads(frame)["id"] == text
    assert json.loads(made.error(text, [text]))["body"] == text
    assert json.loads(made.terminal_error(text, [text]))["messageIds"] == [text]
    assert json.loads(frames.identity(text, "a"))["name"] == text
    assert json.loads(frames.resuming("R1", text))["probeId"] == text
    assert json.loads(frames.rpc_result(text, None))["id"] == text
    assert json.loads(frames.rpc_error("C1", text))["error"] == text


def test_a_broken_emoji_makes_no_broken_frame() -> None:
    frame = json.loads(stream().live(body_of({"type": "text-delta", "id": "0", "delta": "\ud83d"}), 0))
    assert json.loads(frame["body"])["delta"] == "\ufffd"
    assert json.loads(stream().error("\ud83d", ["\udc00"]))["body"] == "\ufffd"


def test_a_chunk_that_holds_null_keeps_it() -> None:
    frame = json.loads(stream().live(body_of({"type": "tool-output-available", "toolCallId": "c", "output": None}), 0))
    assert json.loads(frame["body"]) == {"type": "tool-output-available", "toolCallId": "c", "output": None}


def test_only_chunks_are_numbered() -> None:
    made = stream()
    unnumbered = [
        made.replay_complete(),
        made.replay_done(),
        made.error("no", ["u1"]),
        made.terminal("completed", ["u1"]),
        made.terminal_error("no", ["u1"]),
        frames.terminal("R1", "skipped", []),
    ]
    assert all("seq" not in json.loads(frame) for frame in unnumbered)
    assert json.loads(made.live(body_of(DELTA), 0))["seq"] == 0


# ── transcript ──────────────────────────────────────────────────────


def test_messages_travel_as_they_are_kept() -> None:
    kept = [
        '{"id":"u1",  "role":"user","parts":[],"x":1.0}',
        '{"role":"assistant","id":"a1","parts":[{"type":"\u2028"}]}',
    ]
    text = frames.transcript(kept, connect=True)
    assert kept[0] in text
    assert kept[1] in text
    assert json.loads(text)["messages"] == [json.loads(message) for message in kept]


@given(st.lists(json_objects(), max_size=2), st.booleans())
def test_a_transcript_holds_its_messages_in_order(messages: list[dict[str, Any]], connect: bool) -> None:
    frame = json.loads(frames.transcript((json.dumps(message) for message in messages), connect=connect))
    assert frame["messages"] == messages
    assert frame.get("connect") is (True if connect else None)
