"""Model events to chunks."""

from __future__ import annotations

from itertools import count
from typing import Any

from pydantic_ai.messages import (
    BinaryContent,
    Citation,
    DocumentCitationSource,
    FilePart,
    ModelResponseStreamEvent,
    NativeToolCallPart,
    PartDeltaEvent,
    PartEndEvent,
    PartStartEvent,
    TextPart,
    TextPartDelta,
    ThinkingPart,
    ThinkingPartDelta,
    ToolCallPart,
    ToolCallPartDelta,
    WebCitationSource,
)

from perdure.models.bridge.events import ChunkMapper


def chunks_of(*events: ModelResponseStreamEvent, taken: str = "") -> list[Any]:
    numbers = count(1)
    mapper = ChunkMapper(lambda call_id: call_id == taken, lambda: f"new{next(numbers)}")
    mapped = [chunk for event in events for chunk in mapper.map(event)]
    return mapped + mapper.finish()


def start(index: int, part: Any) -> PartStartEvent:
    return PartStartEvent(index=index, part=part)


def end(index: int, part: Any) -> PartEndEvent:
    return PartEndEvent(index=index, part=part)


def more(index: int, words: str) -> PartDeltaEvent:
    return PartDeltaEvent(index=index, delta=TextPartDelta(words))


def thought(index: int, words: str | None = None, signature: str | None = None) -> PartDeltaEvent:
    return PartDeltaEvent(index=index, delta=ThinkingPartDelta(content_delta=words, signature_delta=signature))


def args(index: int, value: Any, name: str | None = None) -> PartDeltaEvent:
    return PartDeltaEvent(index=index, delta=ToolCallPartDelta(args_delta=value, tool_name_delta=name))


def kinds(chunks: list[Any]) -> list[str]:
    return [f"{c['type']} {c.get('id', c.get('toolCallId', ''))}".strip() for c in chunks]


def test_text_without_words_leaves_no_part() -> None:
    part = TextPart("")
    assert chunks_of(start(0, part), more(0, ""), end(0, part)) == []


def test_a_part_starts_with_its_first_words() -> None:
    assert chunks_of(start(0, TextPart("")), more(0, ""), more(0, "a"), end(0, TextPart("a"))) == [
        {"type": "text-start", "id": "0"},
        {"type": "text-delta", "id": "0", "delta": "a"},
        {"type": "text-end", "id": "0"},
    ]


def test_ids_do_not_repeat_and_every_part_is_ended() -> None:
    chunks = chunks_of(
        start(0, ThinkingPart("r")), end(0, ThinkingPart("r")), start(1, TextPart("a")), end(1, TextPart("a")),
        start(2, TextPart("b")),
    )  # fmt: skip
    assert kinds(chunks) == [
        "reasoning-start 0", "reasoning-delta 0", "reasoning-end 0",
        "text-start 1", "text-delta 1", "text-end 1",
        "text-start 2", "text-delta 2", "text-end 2",
    ]  # fmt: skip


def test_words_for_a_part_that_has_ended_open_a_new_one() -> None:
    chunks = chunks_of(start(0, TextPart("a")), end(0, TextPart("a")), more(0, "b"))
    assert kinds(chunks)[3:] == ["text-start 1", "text-delta 1", "text-end 1"]


def test_a_signature_comes_with_the_end_of_the_reasoning() -> None:
    whole = ThinkingPart("r", id="i", signature="s", provider_name="anthropic", provider_details={"d": 1})
    chunks = chunks_of(start(0, ThinkingPart("r")), thought(0, None, "s"), end(0, whole))
    assert chunks[-1] == {
        "type": "reasoning-end",
        "id": "0",
        "providerMetadata": {"anthropic": {"id": "i", "signature": "s", "details": {"d": 1}}},
    }


def test_hidden_reasoning_is_an_empty_part_with_its_signature() -> None:
    part = ThinkingPart("", id="redacted_thinking", signature="data", provider_name="anthropic")
    assert chunks_of(start(0, part), end(0, part)) == [
        {"type": "reasoning-start", "id": "0"},
        {
            "type": "reasoning-end",
            "id": "0",
            "providerMetadata": {"anthropic": {"id": "redacted_thinking", "signature": "data"}},
        },
    ]


def test_a_late_signature_goes_with_the_open_part_of_the_same_item() -> None:
    one, two = (ThinkingPart(t, id="rs", provider_name="openai") for t in "ab")
    chunks = chunks_of(start(0, one), end(0, one), start(1, two), thought(0, None, "sig"), end(1, two))
    ends = [c for c in chunks if c["type"] == "reasoning-end"]
    assert [c["providerMetadata"]["openai"].get("signature") for c in ends] == [None, "sig"]


def test_a_late_signature_without_an_open_part_gets_an_empty_one() -> None:
    part = ThinkingPart("a", id="rs", provider_name="openai")
    text = TextPart("t")
    chunks = chunks_of(start(0, part), end(0, part), start(1, text), thought(0, None, "sig"), end(1, text))
    assert chunks[-2:] == [
        {"type": "reasoning-start", "id": "2"},
        {"type": "reasoning-end", "id": "2", "providerMetadata": {"openai": {"id": "rs", "signature": "sig"}}},
    ]


def test_interleaved_calls_keep_their_own_arguments() -> None:
    chunks = chunks_of(
        start(0, ToolCallPart("f", '{"a"', "c1")), end(0, ToolCallPart("f", '{"a"', "c1")),
        start(1, ToolCallPart("g", "{", "c2")), args(0, ":1"), args(1, "}"), args(0, "}"),
    )  # fmt: skip
    assert [c for c in chunks if c["type"] == "tool-input-available"] == [
        {"type": "tool-input-available", "toolCallId": "c1", "toolName": "f", "input": {"a": 1}},
        {"type": "tool-input-available", "toolCallId": "c2", "toolName": "g", "input": {}},
    ]
    deltas = [(c["toolCallId"], c["inputTextDelta"]) for c in chunks if c["type"] == "tool-input-delta"]
    assert deltas == [("c1", '{"a"'), ("c2", "{"), ("c1", ":1"), ("c2", "}"), ("c1", "}")]


def test_empty_arguments_are_an_empty_object() -> None:
    for given in (None, "", " \n", {}):
        chunks = chunks_of(start(0, ToolCallPart("now", given, "c")), args(0, ""))
        assert chunks[-1]["input"] == {}
        assert chunks[-1]["type"] == "tool-input-available"


def test_arguments_that_are_not_an_object_are_an_error_with_the_raw_text() -> None:
    for given in ('{"a":', "[1]", "5", '"x"', "null", "{'a': 1}", "[" * 100_000):
        last = chunks_of(start(0, ToolCallPart("add", given, "c")))[-1]
        assert (last["type"], last["input"]) == ("tool-input-error", given)
        assert last["errorText"] == "The arguments for the tool 'add' are not a JSON object."


def test_arguments_that_come_as_an_object_are_shown_as_text_too() -> None:
    part = ToolCallPart("f", {"a": 1}, "c", id="fc", provider_name="google", provider_details={"sig": "s"})
    assert chunks_of(start(0, part), args(0, {"b": 2})) == [
        {"type": "tool-input-start", "toolCallId": "c", "toolName": "f"},
        {"type": "tool-input-delta", "toolCallId": "c", "inputTextDelta": '{"a":1}'},
        {
            "type": "tool-input-available",
            "toolCallId": "c",
            "toolName": "f",
            "input": {"a": 1, "b": 2},
            "providerMetadata": {"google": {"id": "fc", "details": {"sig": "s"}}},
        },
    ]


def test_call_ids_are_never_empty_and_never_repeat() -> None:
    chunks = chunks_of(
        start(0, ToolCallPart("f", "{}", "")), start(1, ToolCallPart("f", "{}", "x")),
        start(2, ToolCallPart("f", "{}", "x")), start(3, ToolCallPart("f", "{}", "old")), taken="old",
    )  # fmt: skip
    ids = [c["toolCallId"] for c in chunks if c["type"] == "tool-input-available"]
    assert ids == ["new1", "x", "new2", "new3"]


def test_a_call_that_is_announced_again_stays_one_call() -> None:
    chunks = chunks_of(start(0, ToolCallPart("f", None, "c")), start(0, ToolCallPart("f", '{"a":1}', "c")))
    assert kinds(chunks) == ["tool-input-start c", "tool-input-delta c", "tool-input-available c"]
    assert chunks[-1]["input"] == {"a": 1}


def test_a_name_that_comes_in_pieces_is_whole_in_the_end() -> None:
    chunks = chunks_of(start(0, ToolCallPart("", None, "c")), args(0, None, "get_"), args(0, "{}", "x"))
    assert [c["toolName"] for c in chunks if "toolName" in c] == ["get_x", "get_x"]


def test_tools_that_the_provider_runs_are_not_ours() -> None:
    part = NativeToolCallPart("web_search", "{}", "n")
    assert chunks_of(start(0, part), args(0, "x"), end(0, part)) == []


def test_files_and_sources_follow_the_text() -> None:
    web, again = (WebCitationSource(url="https://h", title="H") for _ in range(2))
    document = DocumentCitationSource(document_id="d1")
    cited = TextPartDelta("", citations_delta=[Citation([web]), Citation([again, document])])
    chunks = chunks_of(
        start(0, FilePart(BinaryContent(data=b"x", media_type="image/png"))),
        start(1, TextPart("t")),
        PartDeltaEvent(index=1, delta=cited),
        end(1, TextPart("t")),
    )
    assert chunks[3:] == [
        {"type": "file", "url": "data:image/png;base64,eA==", "mediaType": "image/png"},
        {"type": "source-url", "sourceId": "new1", "url": "https://h", "title": "H"},
        {"type": "source-document", "sourceId": "new3", "mediaType": "text/plain", "title": "d1"},
    ]
