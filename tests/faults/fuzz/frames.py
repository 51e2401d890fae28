"""Frames of every kind that a client may send: as they should be, almost, and not at all."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

from tests.faults.fuzz.values import ODD_TEXTS, junk, mutated, render, weighted

__all__ = ["REQUESTS", "texts"]

ASKED = [f"q{number}" for number in range(6)]
"""Ids that the player gives to requests that are as they should be."""
REQUESTS = ["r0", "r1", "r2", "r3"]
"""Ids of all other requests."""

_any_request = st.one_of(st.sampled_from(ASKED + REQUESTS), ODD_TEXTS)
_calls = st.one_of(st.sampled_from(["c0", "c1", "c2", "unknown"]), ODD_TEXTS)
_ids = st.one_of(st.sampled_from(["u0", "u1", "u2", "u3"]), ODD_TEXTS)

_tool_part = st.fixed_dictionaries(
    {
        "type": st.sampled_from(["tool-echo", "tool-", "dynamic-tool", "tool-nosuch"]),
        "toolCallId": _calls,
        "state": st.sampled_from(["input-streaming", "input-available", "output-available", "output-error", "x"]),
        "input": st.one_of(st.none(), st.just({}), st.just("{"), junk),
    },
    optional={"output": junk, "errorText": junk, "approval": junk},
)
_part = st.one_of(
    st.builds(lambda text: {"type": "text", "text": text}, st.one_of(ODD_TEXTS, st.text(max_size=20))),
    st.just({"type": "step-start"}),
    st.just({"type": "file", "mediaType": "image/png", "url": "data:image/png;base64,iVBORw0KGgo="}),
    st.just({"type": "file", "mediaType": "text/plain", "url": "data:text/plain;base64," + "QUFB" * 11_000}),
    st.builds(lambda url: {"type": "file", "mediaType": "image/png", "url": url}, junk),
    st.builds(lambda data: {"type": "data-x", "id": "d", "data": data}, junk),
    _tool_part,
)
message = st.fixed_dictionaries(
    {
        "id": _ids,
        "role": st.sampled_from(["user", "user", "user", "assistant", "system", "tool", ""]),
        "parts": st.lists(_part, max_size=3),
    },
    optional={"metadata": junk, "createdAt": junk},
)
_client_tools = st.lists(
    st.fixed_dictionaries(
        {"name": st.sampled_from(["brought", "echo", "at_page", "", "ä b", "x" * 100])},
        optional={
            "description": st.sampled_from(["", "Brought by the page.", "x" * 5000]),
            "parameters": st.one_of(
                junk,
                st.just({"type": "object"}),
                st.just({"type": "object", "properties": {"value": {"type": "integer"}}, "required": ["value"]}),
                st.just({"$ref": "http://127.0.0.1:1/x"}),
                st.just({"$ref": "#"}),
                st.just({"type": "object", "pattern": "(a+)+$"}),
            ),
        },
    ),
    max_size=3,
)
body = st.fixed_dictionaries(
    {"messages": st.lists(st.one_of(message, message, mutated(message)), max_size=4)},
    optional={
        "trigger": st.one_of(st.sampled_from(["submit-message", "regenerate-message"]), junk),
        "clientTools": st.one_of(junk, _client_tools, mutated(_client_tools)),
        "id": junk,
        "extra": junk,
    },
)


def _chat(request: str, given: Any) -> dict[str, Any]:
    return {"type": "cf_agent_use_chat_request", "id": request, "init": {"method": "POST", "body": render(given)}}


_METHODS = [
    "ping",
    "add",
    "boom",
    "count",
    "values",
    "remember",
    "wait",
    "say",
    "wipe",
    "again",
    "stop_all",
    "hang_up",
    "decide",
]
_FAMILY = ["child_says", "child_stops", "child_goes", "children"]
_HIDDEN = ["__init__", "_bound", "messages", "set_state", "on_start", "get_model", "chat", "name", "constructor", ""]

_request = st.builds(_chat, st.sampled_from(REQUESTS), st.one_of(body, mutated(body)))
_frame = weighted(
    (6, _request),
    (2, st.builds(lambda id: {"type": "cf_agent_chat_request_cancel", "id": id}, _any_request)),
    (1, st.builds(lambda id: {"type": "cf_agent_stream_resume_request", "probeId": id}, ODD_TEXTS)),
    (2, st.just({"type": "cf_agent_stream_resume_request"})),
    (2, st.builds(lambda id: {"type": "cf_agent_stream_resume_ack", "id": id}, _any_request)),
    (1, st.builds(lambda given: {"type": "cf_agent_chat_messages", "messages": given}, st.lists(message, max_size=2))),
    (2, st.builds(lambda state: {"type": "cf_agent_state", "state": state}, junk)),
    (
        4,
        st.builds(
            lambda method, args: {"type": "rpc", "id": "call", "method": method, "args": args},
            weighted((4, st.sampled_from(_METHODS)), (2, st.sampled_from(_FAMILY)), (1, st.sampled_from(_HIDDEN))),
            st.lists(junk, max_size=3),
        ),
    ),
    (
        1,
        st.builds(
            lambda call, output, goes_on: {
                "type": "cf_agent_tool_result",
                "toolCallId": call,
                "toolName": "echo",
                "output": output,
                "autoContinue": goes_on,
            },
            _calls,
            junk,
            st.booleans(),
        ),
    ),
    (
        1,
        st.builds(
            lambda call, approved: {"type": "cf_agent_tool_approval", "toolCallId": call, "approved": approved},
            _calls,
            st.one_of(st.booleans(), junk),
        ),
    ),
    # What only a server says, and what nobody does.
    (
        1,
        st.builds(
            lambda kind, id: {"type": kind, "id": id, "body": "{}", "done": True},
            st.sampled_from(["cf_agent_use_chat_response", "cf_agent_stream_resuming", "cf_agent_identity", "no such"]),
            _any_request,
        ),
    ),
    (1, st.just({"type": "cf_agent_chat_clear"})),
)

_capnweb = st.sampled_from(
    ['["push",["pipeline",0,["__cf_agent_send"],["x"]]]', '["pull",1]', '["abort",["error","Error","x"]]', "[]"]
)
_bytes = st.one_of(st.binary(max_size=20), st.builds(lambda frame: render(frame).encode("utf-8", "replace"), _frame))

texts: st.SearchStrategy[str | bytes] = weighted(
    (4, st.builds(render, _frame)),
    (3, st.builds(render, mutated(_frame))),
    (2, st.builds(render, mutated(_request))),
    (1, st.builds(lambda text, end: text[: end % (len(text) + 1)], st.builds(render, _frame), st.integers(0, 400))),
    (1, st.builds(render, junk).map(lambda text: text.encode("utf-8", "replace").decode())),
    (1, st.one_of(_capnweb, _bytes)),
)
"""One frame, as text or as bytes."""
