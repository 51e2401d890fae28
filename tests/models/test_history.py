"""UI messages to model messages."""

from __future__ import annotations

import base64
from typing import Any

import pytest
from pydantic_ai.messages import (
    AudioUrl,
    BinaryContent,
    DocumentUrl,
    FilePart,
    ImageUrl,
    ModelMessage,
    ModelRequest,
    ModelResponse,
    SystemPromptPart,
    TextPart,
    ThinkingPart,
    ToolCallPart,
    ToolReturnPart,
    UserPromptPart,
    VideoUrl,
)

from perdure.models.bridge.history import DENIED, MessageConverter
from perdure.models.contract import HistoryMessage
from perdure.protocol.messages import Part, UIMessage

CONVERT = MessageConverter(accepted=frozenset({"anthropic", "bedrock"}), native_errors=True)
PNG = b"\x89PNG\r\n"


def shown(message: UIMessage, convert: MessageConverter = CONVERT) -> list[Any]:
    """The model messages of ``message`` without the times in them."""
    return [plain(made) for made in convert(message)]


def plain(message: ModelMessage) -> Any:
    out: list[Any] = ["request" if isinstance(message, ModelRequest) else "response"]
    for part in message.parts:
        match part:
            case UserPromptPart() | SystemPromptPart() | FilePart():
                out.append((part.part_kind, part.content))
            case ToolReturnPart():
                out.append(("result", part.tool_name, part.tool_call_id, part.content, part.outcome))
            case _:
                out.append(part)
    return out


def user(*parts: Part) -> UIMessage:
    return {"id": "u", "role": "user", "parts": list(parts)}


def assistant(*parts: Part) -> UIMessage:
    return {"id": "a", "role": "assistant", "parts": list(parts)}


def text(words: str) -> Part:
    return {"type": "text", "text": words}


def tool(state: str, call_id: str = "c", **fields: Any) -> Part:
    return {"type": "tool-add", "toolCallId": call_id, "state": state, "input": {"a": 1}, **fields}


def data_url(data: bytes, media_type: str = "image/png") -> str:
    return f"data:{media_type};base64,{base64.b64encode(data).decode()}"


def file(url: str, media_type: str | None = "image/png", **fields: Any) -> Part:
    return {"type": "file", "url": url, "mediaType": media_type, **fields}


def binary(data: bytes, media_type: str = "image/png") -> BinaryContent:
    return BinaryContent(data=data, media_type=media_type)


@pytest.mark.parametrize(
    ("parts", "content"),
    [
        ([text("hi")], "hi"),
        ([text("a"), text("b")], ["a", "b"]),
        ([text("look"), file(data_url(PNG))], ["look", binary(PNG)]),
        ([file(data_url(PNG), None)], [binary(PNG)]),
        ([file("data:text/plain,a%20b", "text/plain")], [binary(b"a b", "text/plain")]),
        ([file("data:,x", None)], [binary(b"x", "text/plain")]),
        ([file(data_url(b"\xff!", "text/csv"), "text/csv")], [binary("\ufffd!".encode(), "text/csv")]),
        ([file("https://h/a.png")], [ImageUrl("https://h/a.png", media_type="image/png")]),
        ([file("http://h/a", "audio/mpeg")], [AudioUrl("http://h/a", media_type="audio/mpeg")]),
        ([file("https://h/a", "video/mp4")], [VideoUrl("https://h/a", media_type="video/mp4")]),
        ([file("https://h/a", "application/pdf")], [DocumentUrl("https://h/a", media_type="application/pdf")]),
        ([file("blob:x", filename="a.png")], "[The file a.png (image/png) could not be attached.]"),
        ([file(data_url(b"{}", "application/json"), "application/json")], [binary(b"{}", "application/json")]),
        ([file(data_url(PNG, "x/y"), "x/y")], "[The file unnamed (x/y) could not be attached.]"),
        ([file("data:image/png;base64,!!")], "[The file unnamed (image/png) could not be attached.]"),
        ([text("a"), {"type": "data-note", "data": 1}, {"type": "novel"}, text("")], "a"),
    ],
)
def test_what_a_user_said_and_attached_is_one_prompt(parts: list[Part], content: Any) -> None:
    assert shown(user(*parts)) == [["request", ("user-prompt", content)]]


def test_a_message_with_nothing_to_show_is_no_message() -> None:
    assert shown(user()) == []
    assert shown(user({"type": "data-x", "data": 1})) == []
    assert shown(assistant({"type": "step-start"}, text(""))) == []
    assert shown({"id": "x", "role": "assistant"}) == []
    assert shown({"id": "x", "role": "system", "parts": []}) == []


def test_a_system_message_is_a_system_prompt() -> None:
    message: UIMessage = {"id": "s", "role": "system", "parts": [text("a"), text("b")]}
    assert shown(message) == [["request", ("system-prompt", "a\n\nb")]]


NOT_NOW = "Tool call execution denied. The reason: not now"

RESULTS: list[tuple[Part, tuple[Any, ...]]] = [
    (tool("output-available", output={"sum": 3, "of": [1, 2]}), ('{"sum":3,"of":[1,2]}', "success")),
    (tool("output-available", output="as it is"), ("as it is", "success")),
    (tool("output-available", output=""), ("", "success")),
    (tool("output-available", output=None), ("null", "success")),
    (tool("output-available"), ("null", "success")),
    (tool("output-available", output=[1]), ("[1]", "success")),
    (tool("output-error", errorText="boom"), ("boom", "failed")),
    (tool("output-denied", approval={"id": "p", "approved": False, "reason": "not now"}), (NOT_NOW, "denied")),
    (tool("output-denied", approval={"id": "p", "approved": False}), (DENIED, "denied")),
    (tool("output-denied"), (DENIED, "denied")),
    (tool("approval-responded", approval={"id": "p", "approved": False, "reason": "not now"}), (NOT_NOW, "denied")),
]


@pytest.mark.parametrize(("part", "result"), RESULTS)
def test_a_settled_call_is_a_call_and_its_result(part: Part, result: tuple[Any, ...]) -> None:
    assert shown(assistant({"type": "step-start"}, part)) == [
        ["response", ToolCallPart("add", {"a": 1}, "c")],
        ["request", ("result", "add", "c", *result)],
    ]


def test_an_error_is_shown_as_its_text_where_the_provider_has_no_mark_for_it() -> None:
    convert = MessageConverter(accepted=frozenset(), native_errors=False)
    assert shown(assistant(tool("output-error", errorText="boom")), convert)[1] == [
        "request",
        ("result", "add", "c", "boom", "success"),
    ]


@pytest.mark.parametrize(
    "part",
    [
        tool("input-streaming"),
        tool("input-available"),
        tool("approval-requested", approval={"id": "p"}),
        tool("approval-responded", approval={"id": "p", "approved": True}),
        tool("output-available", output=1, providerExecuted=True),
        {"type": "tool-add", "toolCallId": "c"},
    ],
)
def test_a_call_without_an_outcome_is_left_out(part: Part) -> None:
    assert shown(assistant(text("a"), part)) == [["response", TextPart("a")]]


@pytest.mark.parametrize("stored", ["", None, [], "text", 5, "[1]", "{broken"])
def test_a_stored_input_of_a_wrong_kind_is_an_empty_object(stored: Any) -> None:
    call: Any = CONVERT(assistant(tool("output-error", errorText="x", input=stored)))[0].parts[0]
    assert call.args == {}


def test_a_stored_input_that_is_the_text_of_an_object_is_that_object() -> None:
    call: Any = CONVERT(assistant(tool("output-available", output=1, input='{"a": 2}')))[0].parts[0]
    assert call.args == {"a": 2}


def test_steps_are_responses_with_the_results_between_them() -> None:
    message = assistant(
        {"type": "step-start"},
        text("Let me look."),
        tool("output-available", "c1", output="x"),
        {"type": "dynamic-tool", "toolName": "sub", "toolCallId": "c2", "state": "output-error", "errorText": "e"},
        {"type": "step-start"},
        {"type": "source-url", "sourceId": "s", "url": "https://h"},
        text("Found it."),
        {"type": "step-start"},
    )
    assert shown(message) == [
        ["response", TextPart("Let me look."), ToolCallPart("add", {"a": 1}, "c1"), ToolCallPart("sub", {}, "c2")],
        ["request", ("result", "add", "c1", "x", "success"), ("result", "sub", "c2", "e", "failed")],
        ["response", TextPart("Found it.")],
    ]


def test_calls_without_an_id_get_one_that_stays_the_same() -> None:
    message = assistant(tool("output-available", "", output=1), tool("output-available", "", output=2))
    ids = [part.tool_call_id for part in CONVERT(message)[0].parts if isinstance(part, ToolCallPart)]
    assert ids == ["a_0", "a_1"]
    assert [part.tool_call_id for part in CONVERT(message)[1].parts if isinstance(part, ToolReturnPart)] == ids


def reasoning(words: str, **metadata: Any) -> Part:
    return {"type": "reasoning", "text": words, "providerMetadata": metadata}


def test_reasoning_goes_back_with_its_signature_to_its_own_provider_only() -> None:
    message = assistant(
        reasoning("mine", anthropic={"signature": "s", "details": {"x": 1}}),
        reasoning("kin", bedrock={"id": "r"}),
        reasoning("foreign", openai={"id": "rs", "signature": "t"}),
        reasoning("unmarked"),
        text("done"),
    )
    assert shown(message) == [
        [
            "response",
            ThinkingPart("mine", signature="s", provider_name="anthropic", provider_details={"x": 1}),
            ThinkingPart("kin", id="r", provider_name="bedrock"),
            TextPart("done"),
        ]
    ]


def test_a_signature_that_came_late_is_put_on_the_first_part_of_its_item() -> None:
    message = assistant(
        reasoning("one", anthropic={"id": "rs"}),
        reasoning("two", anthropic={"id": "rs", "signature": "sig"}),
        text("x"),
        reasoning("", anthropic={"id": "rt", "signature": "alone"}),
    )
    assert shown(message)[0][1:] == [
        ThinkingPart("one", id="rs", signature="sig", provider_name="anthropic"),
        ThinkingPart("two", id="rs", provider_name="anthropic"),
        TextPart("x"),
        ThinkingPart("", id="rt", signature="alone", provider_name="anthropic"),
    ]


def test_hidden_reasoning_blocks_that_share_an_id_keep_their_own_data() -> None:
    blocks = [reasoning("", anthropic={"id": "redacted_thinking", "signature": s}) for s in ("d1", "d2")]
    assert [part.signature for part in CONVERT(assistant(*blocks))[0].parts if isinstance(part, ThinkingPart)] == [
        "d1",
        "d2",
    ]


def test_ids_and_details_of_text_and_calls_go_back() -> None:
    message = assistant(
        {"type": "text", "text": "a", "providerMetadata": {"anthropic": {"id": "msg", "details": {"phase": "p"}}}},
        tool("output-available", output=1, callProviderMetadata={"anthropic": {"details": {"sig": "s"}}}),
    )
    assert shown(message)[0][1:] == [
        TextPart("a", id="msg", provider_name="anthropic", provider_details={"phase": "p"}),
        ToolCallPart("add", {"a": 1}, "c", provider_name="anthropic", provider_details={"sig": "s"}),
    ]


def test_a_file_the_model_made_goes_back() -> None:
    assert shown(assistant(file(data_url(PNG)), file("https://h/a.png"))) == [["response", ("file", binary(PNG))]]


@pytest.mark.parametrize(
    "metadata", [None, "x", [], {"anthropic": "x"}, {"anthropic": {"id": 1, "signature": 2, "details": 3}}]
)
def test_damaged_metadata_does_no_harm(metadata: Any) -> None:
    parts: list[Part] = [
        {"type": "text", "text": "a", "providerMetadata": metadata},
        {"type": "reasoning", "text": "b", "providerMetadata": metadata},
        tool("output-available", output=1, callProviderMetadata=metadata),
    ]
    response = CONVERT(assistant(*parts))[0]
    assert isinstance(response, ModelResponse)
    assert [getattr(part, "signature", None) for part in response.parts] == [None] * len(response.parts)


def test_a_settled_message_is_converted_once() -> None:
    item = HistoryMessage.of(user(text("a")))
    first = item.derive(CONVERT, CONVERT)
    again = MessageConverter(accepted=frozenset({"bedrock", "anthropic"}), native_errors=True)
    assert item.derive(again, again) is first
    other = MessageConverter(accepted=frozenset(), native_errors=True)
    assert item.derive(other, other) is not first
