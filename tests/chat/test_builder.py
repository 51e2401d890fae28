"""Chunks into messages: the golden sequences, and what does not fit."""

import copy
from typing import Any

import pytest
from hypothesis import given, settings

from perdure.chat.builder import MessageBuilder
from perdure.protocol.messages import is_settled, is_tool_part
from tests.chat.chunks import Chunk, any_chunks, build, called, said

STEP = {"type": "step-start"}
START_STEP, FINISH_STEP, RESET_STEP = ({"type": kind} for kind in ("start-step", "finish-step", "reset-step"))


def tool(state: str, call: str = "c1", name: str = "add", **more: Any) -> dict[str, Any]:
    return {"type": f"tool-{name}", "toolCallId": call, "state": state, **more}


# ── golden sequences (reference: protocol §7.5) ─────────────────────


def test_plain_text() -> None:
    builder = build(
        {"type": "start", "messageId": "a1"},
        START_STEP,
        *said("Hel", "lo"),
        FINISH_STEP,
        {"type": "finish", "finishReason": "stop"},
    )
    assert builder.message() == {
        "id": "a1",
        "role": "assistant",
        "parts": [STEP, {"type": "text", "text": "Hello", "state": "done"}],
    }


def test_reasoning_then_text() -> None:
    signed = {"type": "reasoning-end", "id": "0", "providerMetadata": {"anthropic": {"signature": "s"}}}
    builder = build(START_STEP, *said("Hm", "m", kind="reasoning")[:-1], signed, *said("So."), FINISH_STEP)
    assert builder.parts == [
        STEP,
        {"type": "reasoning", "text": "Hmm", "state": "done", "providerMetadata": {"anthropic": {"signature": "s"}}},
        {"type": "text", "text": "So.", "state": "done"},
    ]


def test_a_server_tool_in_two_steps() -> None:
    builder = build(
        START_STEP,
        *called("add", "c1", {"a": 1}),
        {"type": "tool-output-available", "toolCallId": "c1", "output": {"sum": 3}},
        FINISH_STEP,
        START_STEP,
        *said("Three."),
        FINISH_STEP,
    )
    assert builder.parts == [
        STEP,
        tool("output-available", input={"a": 1}, output={"sum": 3}),
        STEP,
        {"type": "text", "text": "Three.", "state": "done"},
    ]


def test_a_tool_that_fails() -> None:
    failed = {"type": "tool-output-error", "toolCallId": "c1", "errorText": "no"}
    assert build(*called("add", "c1", {}), failed).parts == [tool("output-error", input={}, errorText="no")]


def test_a_tool_that_is_not_there() -> None:
    start, delta, available = called("zzz", "c1", {"a": 1})
    error = {**available, "type": "tool-input-error", "errorText": "unavailable", "dynamic": True}
    builder = build(start, delta, error)
    assert builder.parts == [tool("output-error", name="zzz", input={"a": 1}, errorText="unavailable")]
    assert build(error).parts == builder.parts, "also when nothing came before"


def test_results_that_are_preliminary_are_replaced_by_those_that_follow() -> None:
    def yielded(output: Any, **more: Any) -> Chunk:
        return {"type": "tool-output-available", "toolCallId": "c1", "output": output, **more}

    builder = build(*called("count", "c1", {}), yielded(1, preliminary=True))
    assert builder.parts == [tool("output-available", name="count", input={}, output=1, preliminary=True)]
    builder.apply(yielded(2, preliminary=True))
    builder.apply(yielded(3))
    assert builder.parts == [tool("output-available", name="count", input={}, output=3)]


def test_a_tool_that_fails_after_preliminary_results_has_an_error_and_no_result() -> None:
    builder = build(
        *called("count", "c1", {}),
        {"type": "tool-output-available", "toolCallId": "c1", "output": 1, "preliminary": True},
        {"type": "tool-output-error", "toolCallId": "c1", "errorText": "no"},
    )
    assert builder.parts == [tool("output-error", name="count", input={}, errorText="no")]
    builder.apply({"type": "tool-output-available", "toolCallId": "c1", "output": None})
    assert builder.parts == [tool("output-available", name="count", input={}, output=None)]


def test_a_call_that_waits_for_its_result_is_open() -> None:
    builder = build(*called("add", "c1", {}), *called("ask", "c2", {"q": 1})[:1])
    assert builder.open_calls() == ["c1", "c2"]
    builder.apply({"type": "tool-output-available", "toolCallId": "c1", "output": 1})
    assert builder.open_calls() == ["c2"]
    assert builder.tool_part("c2") == tool("input-streaming", "c2", "ask")
    assert builder.tool_part("c3") is None


def test_a_tool_that_the_provider_ran() -> None:
    marks = {"providerExecuted": True, "dynamic": True, "title": "Search", "providerMetadata": {"p": {"id": "x"}}}
    builder = build(
        {"type": "tool-input-available", "toolCallId": "c1", "toolName": "search", "input": {"q": "x"}, **marks},
        {"type": "tool-output-available", "toolCallId": "c1", "output": [], **marks},
    )
    extras = {"providerExecuted": True, "title": "Search", "callProviderMetadata": {"p": {"id": "x"}}}
    assert builder.parts == [tool("output-available", name="search", input={"q": "x"}, output=[], **extras)]


# ── text and reasoning that do not fit (§7.4) ───────────────────────


@pytest.mark.parametrize("kind", ["text", "reasoning"])
def test_a_delta_without_a_start_begins_a_part(kind: str) -> None:
    builder = build(
        {"type": f"{kind}-delta", "id": "0", "delta": "a"}, {"type": f"{kind}-delta", "id": "0", "delta": "b"}
    )
    assert builder.parts == [{"type": kind, "text": "ab", "state": "streaming"}]


def test_an_end_without_a_start_is_left_out() -> None:
    assert build({"type": "text-end", "id": "0"}, {"type": "reasoning-end", "id": "0"}).parts == []


def test_a_repeated_start_ends_the_part_before_and_loses_nothing_of_it() -> None:
    builder = build(*said("first")[:-1], *said("second"))
    assert builder.parts == [
        {"type": "text", "text": "first", "state": "done"},
        {"type": "text", "text": "second", "state": "done"},
    ]


def test_parts_that_are_open_at_the_same_time_get_their_own_pieces() -> None:
    first, second, thought = said("a", "b", id="1"), said("c", "d", id="2"), said("e", id="1", kind="reasoning")
    builder = build(first[0], second[0], thought[0], second[1], first[1], thought[1], first[2], second[2], second[3])
    assert builder.parts == [
        {"type": "text", "text": "ab", "state": "streaming"},
        {"type": "text", "text": "cd", "state": "done"},
        {"type": "reasoning", "text": "e", "state": "streaming"},
    ]


def test_an_id_may_be_used_again_in_a_later_step() -> None:
    texts = [part["text"] for part in build(*said("a"), START_STEP, *said("b")).parts if part["type"] == "text"]
    assert texts == ["a", "b"]


def test_what_is_open_at_the_end_is_done() -> None:
    builder = build(*said("a")[:-1], *said("b", kind="reasoning")[:-1])
    builder.close()
    assert [(part["text"], part["state"]) for part in builder.parts] == [("a", "done"), ("b", "done")]


def test_an_end_may_bring_citations_and_marks() -> None:
    end = {"type": "text-end", "id": "0", "citations": [1], "providerMetadata": {"p": {"b": 2}}}
    start = {"type": "text-start", "id": "0", "providerMetadata": {"p": {"a": 1}}}
    assert build(start).parts[0]["providerMetadata"] == {"p": {"a": 1}}
    assert build(start, end).parts == [
        {"type": "text", "text": "", "state": "done", "citations": [1], "providerMetadata": {"p": {"b": 2}}}
    ]


# ── tools that do not fit ───────────────────────────────────────────


def test_a_repeated_start_of_a_call_changes_nothing() -> None:
    start, delta, available = called("add", "c1", {"a": 1})
    output = {"type": "tool-output-available", "toolCallId": "c1", "output": 3}
    builder = build(start, delta, available, start, output, start, delta, {**available, "input": {"a": 9}})
    assert builder.parts == [tool("output-available", input={"a": 1}, output=3)]


def test_chunks_of_calls_that_are_unknown_are_left_out() -> None:
    builder = build(
        {"type": "tool-input-delta", "toolCallId": "x", "inputTextDelta": "{"},
        {"type": "tool-output-available", "toolCallId": "x", "output": 1},
        {"type": "tool-output-error", "toolCallId": "x", "errorText": "no"},
    )
    assert builder.parts == []


@pytest.mark.parametrize(
    ("posted", "kept"),
    [({"a": 1}, {"a": 1}), ('{"a":1}', {"a": 1}), ("[1]", {}), ("{", {}), ("", {}), ([1], {}), (None, {}), (5, {})],
)
def test_the_input_of_a_call_is_an_object(posted: Any, kept: dict[str, Any]) -> None:
    assert build(*called("add", "c1", posted)).parts == [tool("input-available", input=kept)]


def test_an_input_error_does_not_reach_a_settled_call() -> None:
    error = {"type": "tool-input-error", "toolCallId": "c1", "toolName": "add", "input": "{", "errorText": "no"}
    output = {"type": "tool-output-available", "toolCallId": "c1", "output": 3}
    assert build(*called("add", "c1", {}), output, error).parts == [tool("output-available", input={}, output=3)]
    assert build(*called("add", "c1", {})[:2], error).parts == [
        tool("output-error", input={}, rawInput="{", errorText="no")
    ]


@pytest.mark.parametrize("raw", ["{", "", None, [], 5, '{"a":1}'])
def test_the_input_of_a_call_that_failed_is_an_object(raw: Any) -> None:
    """In the message that is shown to the model in the same turn as in the one that is stored."""
    error = {"type": "tool-input-error", "toolCallId": "c1", "toolName": "add", "input": raw, "errorText": "no"}
    (part,) = build(error).parts
    assert part["input"] == ({"a": 1} if raw == '{"a":1}' else {})
    assert part.get("rawInput") == ("{" if raw == "{" else None)


# ── questions, denials, and changes from outside ────────────────────


def asks(call: str = "c1", approval: str = "ap") -> Chunk:
    return {"type": "tool-approval-request", "toolCallId": call, "approvalId": approval}


DENIED = {"type": "tool-output-denied", "toolCallId": "c1"}


@pytest.mark.parametrize("count", [1, 3], ids=["of which only the name is known", "that is complete"])
def test_a_call_on_which_somebody_is_asked_says_so(count: int) -> None:
    builder = build(*called("add", "c1", {"a": 1})[:count], asks())
    (part,) = builder.parts
    assert (part["state"], part["approval"]) == ("approval-requested", {"id": "ap"})
    assert builder.open_calls() == ["c1"]
    assert builder.changed
    assert not builder.amended, "whoever reads the chunks knows"


@pytest.mark.parametrize("after", [asks(approval="other"), *called("add", "c1", {"a": 9})])
def test_a_question_stands_whatever_is_repeated_after_it(after: Chunk) -> None:
    builder = build(*called("add", "c1", {"a": 1}), asks(), after)
    assert builder.parts == [tool("approval-requested", input={"a": 1}, approval={"id": "ap"})]


@pytest.mark.parametrize(
    "settled",
    [
        {"type": "tool-output-available", "toolCallId": "c1", "output": 3},
        {"type": "tool-output-error", "toolCallId": "c1", "errorText": "no"},
        DENIED,
    ],
)
def test_nobody_is_asked_on_a_call_that_is_settled_or_unknown(settled: Chunk) -> None:
    builder = build(*called("add", "c1", {}), settled, asks(), asks("x"))
    (part,) = builder.parts
    assert "approval" not in part
    assert is_settled(part)


def test_a_denial_settles_an_open_call_and_no_other() -> None:
    builder = build(*called("add", "c1", {}), asks(), DENIED, {**DENIED, "toolCallId": "x"})
    assert builder.parts == [tool("output-denied", input={}, approval={"id": "ap"})]
    assert builder.open_calls() == []
    output = {"type": "tool-output-available", "toolCallId": "c1", "output": 3}
    assert build(*called("add", "c1", {}), output, DENIED).parts == [tool("output-available", input={}, output=3)]


def test_the_result_of_a_call_keeps_what_was_asked() -> None:
    output = {"type": "tool-output-available", "toolCallId": "c1", "output": 3}
    (part,) = build(*called("add", "c1", {}), asks(), output).parts
    assert (part["state"], part["output"], part["approval"]) == ("output-available", 3, {"id": "ap"})


def test_a_change_from_outside_is_in_the_message_and_remembered_as_none_of_the_stream() -> None:
    builder = build(*called("add", "c1", {"a": 1}), *called("add", "c2", {}))
    first, second = builder.parts
    builder.changed = False
    builder.change("c1", lambda part: {**part, "state": "output-error", "errorText": "no"})
    assert builder.parts == [tool("output-error", input={"a": 1}, errorText="no"), second]
    assert builder.tool_part("c1") is first, "whoever holds the part sees it"
    assert (builder.changed, builder.amended) == (True, True)
    assert builder.open_calls() == ["c2"]


@pytest.mark.parametrize("call", ["c1", "x"])
def test_a_call_that_is_settled_or_unknown_is_not_changed_from_outside(call: str) -> None:
    builder = build(*called("add", "c1", {}), DENIED)
    builder.changed = False
    builder.change(call, lambda part: {**part, "state": "output-available", "output": 3})
    assert builder.parts == [tool("output-denied", input={})]
    assert (builder.changed, builder.amended) == (False, False)


def test_the_open_calls_of_some_tools_can_be_told_apart() -> None:
    builder = build(*called("add", "c1", {}), *called("sub", "c2", {}), *called("add", "c3", {}), DENIED)
    assert builder.open_calls_of({"add", "mul"}) == {"c3"}
    assert builder.open_calls_of(set()) == set()


# ── other parts ─────────────────────────────────────────────────────


@pytest.mark.parametrize(
    "chunk",
    [
        {"type": "file", "url": "data:,x", "mediaType": "text/plain"},
        {"type": "reasoning-file", "url": "data:,x", "mediaType": "text/plain"},
        {"type": "source-url", "sourceId": "s", "url": "https://a.example", "title": "A"},
        {"type": "source-document", "sourceId": "s", "mediaType": "text/plain", "title": "A"},
        {"type": "custom", "kind": "p.k", "providerMetadata": {"p": {}}},
    ],
)
def test_files_sources_and_the_like_are_parts_as_they_come(chunk: Chunk) -> None:
    before = copy.deepcopy(chunk)
    builder = build(chunk, chunk)
    assert builder.parts == [before, before]
    builder.parts[0]["more"] = 1
    assert chunk == before, "the part is a copy"


def test_a_data_part_with_a_known_id_takes_the_new_data_in_its_place() -> None:
    def data(value: Any, name: str = "x", **more: Any) -> Chunk:
        return {"type": f"data-{name}", "data": value, **more}

    builder = build(data(1, id="d"), data(2), data(3, "y", id="d"), data(4, id="d"), data(5), data(6, transient=True))
    assert builder.parts == [
        {"type": "data-x", "id": "d", "data": 4},
        {"type": "data-x", "data": 2},
        {"type": "data-y", "id": "d", "data": 3},
        {"type": "data-x", "data": 5},
    ]


def test_metadata_of_start_message_and_finish_is_merged() -> None:
    builder = build(
        {"type": "start", "messageMetadata": {"a": 1, "deep": {"x": 1}}},
        {"type": "message-metadata", "messageMetadata": {"b": 2, "deep": {"y": 2}}},
        {"type": "message-metadata", "messageMetadata": None},
        {"type": "finish", "finishReason": "stop", "messageMetadata": {"a": 3}},
    )
    assert builder.message() == {
        "id": "m",
        "role": "assistant",
        "parts": [],
        "metadata": {"a": 3, "b": 2, "deep": {"y": 2}},
    }


@pytest.mark.parametrize("start", [{}, {"messageId": ""}, {"messageId": None}, {"messageId": 5}])
def test_a_start_without_id_keeps_the_one_that_is_there(start: Chunk) -> None:
    assert build({"type": "start", **start}).message()["id"] == "m"


@pytest.mark.parametrize("kind", ["finish-step", "abort", "error", "unknown", "", "tool-approval-request"])
def test_other_chunks_leave_no_part(kind: str) -> None:
    assert build({"type": kind, "errorText": "no", "toolCallId": "x"}).parts == []


def test_a_mark_of_a_step_alone_is_no_content() -> None:
    builder = build(START_STEP, FINISH_STEP, START_STEP)
    assert builder.parts == [STEP, STEP]
    assert not builder.has_content
    builder.apply({"type": "text-start", "id": "0"})
    assert builder.has_content


# ── steps that are begun anew ───────────────────────────────────────


def test_a_reset_drops_the_parts_of_the_step_and_nothing_before_it() -> None:
    first = [START_STEP, *said("one"), *called("add", "c0", {}), FINISH_STEP]
    second = [START_STEP, *said("two", id="1")[:-1], *called("add", "c1", {}), {"type": "file", "url": "data:,"}]
    builder = build(*first, *second, RESET_STEP)
    assert builder.parts == [STEP, *build(*first).parts[1:], STEP]
    assert builder.open_calls() == ["c0"]
    again = build(*first, *second, RESET_STEP, *said("three", id="1"), *called("add", "c1", {"a": 1}))
    assert again.parts == build(*first, START_STEP, *said("three"), *called("add", "c1", {"a": 1})).parts


def test_a_reset_loses_nothing_of_what_was_open_before_the_step() -> None:
    builder = build(*said("before")[:-1], START_STEP, *said("gone", id="1"), RESET_STEP)
    assert builder.parts == [{"type": "text", "text": "before", "state": "done"}, STEP]


# ── going on with a message ─────────────────────────────────────────


def test_a_builder_goes_on_with_a_message_and_leaves_the_message_itself_alone() -> None:
    message: Any = build(START_STEP, *called("add", "c1", {}), *said("Hel")[:-1]).message()
    message["metadata"] = {"a": 1}
    before = copy.deepcopy(message)
    builder = MessageBuilder.going_on(message)
    assert not builder.changed
    assert builder.open_calls() == ["c1"]
    builder.apply({"type": "start", "messageMetadata": {"b": 2}})
    builder.apply({"type": "tool-output-available", "toolCallId": "c1", "output": 3})
    for chunk in (START_STEP, *said("lo")):
        builder.apply(chunk)
    assert message == before
    assert builder.message() == {
        "id": "m",
        "role": "assistant",
        "parts": [
            STEP,
            tool("output-available", input={}, output=3),
            {"type": "text", "text": "Hel", "state": "done"},
            STEP,
            {"type": "text", "text": "lo", "state": "done"},
        ],
        "metadata": {"a": 1, "b": 2},
    }


@pytest.mark.parametrize("kind", ["start", "start-step", "finish-step", "finish", "message-metadata"])
def test_marks_alone_change_nothing_that_is_worth_storing(kind: str) -> None:
    builder = MessageBuilder.going_on({"id": "m", "role": "assistant", "parts": [{"type": "text", "text": "Hi"}]})
    builder.apply({"type": kind})
    assert not builder.changed
    builder.apply(said("x")[0])
    assert builder.changed


def test_a_reset_after_a_message_was_taken_up_drops_nothing_of_it() -> None:
    message: Any = build(START_STEP, *said("Hi")).message()
    builder = MessageBuilder.going_on(message)
    for chunk in (START_STEP, *said("gone"), RESET_STEP):
        builder.apply(chunk)
    assert builder.parts == [*message["parts"], STEP]
    early = MessageBuilder.going_on(message)
    early.apply(RESET_STEP)
    assert early.parts == message["parts"], "also when no step has begun"


# ── any sequence ────────────────────────────────────────────────────


@given(any_chunks(whole=True))
@settings(max_examples=60, deadline=None)
def test_looking_at_the_parts_in_between_changes_nothing(chunks: list[Chunk]) -> None:
    looked = build()
    for chunk in chunks:
        looked.apply(chunk)
        assert looked.parts == looked.message()["parts"]
    assert looked.message() == build(*chunks).message()


@given(any_chunks(whole=False))
@settings(max_examples=60, deadline=None)
def test_no_sequence_of_chunks_raises_or_leaves_a_broken_message(chunks: list[Chunk]) -> None:
    before = copy.deepcopy(chunks)
    builder = build(*chunks)
    builder.close()
    assert chunks == before, "chunks are not changed"
    for part in builder.parts:
        assert isinstance(part["type"], str)
        if part["type"] in {"text", "reasoning"}:
            assert isinstance(part["text"], str)
            assert part["state"] == "done"
        if is_tool_part(part):
            assert is_settled(part) != (part["toolCallId"] in builder.open_calls())
            assert ("errorText" in part) == (part["state"] == "output-error")
            assert ("output" in part) == (part["state"] == "output-available")
