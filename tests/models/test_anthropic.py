"""Anthropic through its own SDK, against a scripted server."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import pytest
from anthropic import AsyncAnthropic
from pydantic_ai.models.anthropic import AnthropicModel
from pydantic_ai.providers.anthropic import AnthropicProvider

from perdure.errors import ModelRejected, ModelUnreachable
from perdure.models.contract import ChatModel, Finish, ToolSpec, Usage
from perdure.models.pydantic_ai import PydanticAIModel
from tests.models.provider_server import ProviderServer, Reply, refused, sse
from tests.models.test_pydantic_ai_model import asking, events_of, said

ADD = ToolSpec("add", "Adds.", {"type": "object", "title": "Odd", "properties": {"a": {"type": "number"}}})


@pytest.fixture
async def model(server: ProviderServer) -> AsyncIterator[ChatModel]:
    async with AsyncAnthropic(api_key="k", base_url=server.url, max_retries=0) as client:
        yield PydanticAIModel(AnthropicModel("claude-sonnet-5-5", provider=AnthropicProvider(anthropic_client=client)))


def stream(*events: dict[str, Any]) -> Reply:
    return Reply(b"".join(sse(event, name=event["type"]) for event in events))


def block(index: int, content: dict[str, Any], *deltas: dict[str, Any]) -> list[dict[str, Any]]:
    return [
        {"type": "content_block_start", "index": index, "content_block": content},
        *({"type": "content_block_delta", "index": index, "delta": delta} for delta in deltas),
        {"type": "content_block_stop", "index": index},
    ]


START = {
    "type": "message_start",
    "message": {
        "id": "msg_1", "type": "message", "role": "assistant", "model": "claude", "content": [], "stop_reason": None,
        "usage": {"input_tokens": 10, "cache_read_input_tokens": 5, "output_tokens": 1},
    },
}  # fmt: skip
THINKING = block(
    0,
    {"type": "thinking", "thinking": "", "signature": ""},
    {"type": "thinking_delta", "thinking": "Let me "},
    {"type": "thinking_delta", "thinking": "think."},
    {"type": "signature_delta", "signature": "sig=="},
)
HIDDEN = block(1, {"type": "redacted_thinking", "data": "opaque"})
TEXT = block(2, {"type": "text", "text": ""}, {"type": "text_delta", "text": "I add."})
CALL = block(
    3,
    {"type": "tool_use", "id": "toolu_1", "name": "add", "input": {}},
    {"type": "input_json_delta", "partial_json": ""},
    {"type": "input_json_delta", "partial_json": '{"a"'},
    {"type": "input_json_delta", "partial_json": ": 1}"},
)


def stop(reason: str) -> list[dict[str, Any]]:
    return [
        {"type": "message_delta", "delta": {"stop_reason": reason}, "usage": {"output_tokens": 7}},
        {"type": "message_stop"},
    ]


async def test_a_step_with_thinking_text_and_a_call(server: ProviderServer, model: ChatModel) -> None:
    server.script(stream(START, *THINKING, *HIDDEN, *TEXT, *CALL, *stop("tool_use")))
    assert await events_of(model, asking(tools=[ADD])) == [
        {"type": "reasoning-start", "id": "0"},
        {"type": "reasoning-delta", "id": "0", "delta": "Let me "},
        {"type": "reasoning-delta", "id": "0", "delta": "think."},
        {"type": "reasoning-end", "id": "0", "providerMetadata": {"anthropic": {"signature": "sig=="}}},
        {"type": "reasoning-start", "id": "1"},
        {
            "type": "reasoning-end", "id": "1",
            "providerMetadata": {"anthropic": {"id": "redacted_thinking", "signature": "opaque"}},
        },
        {"type": "text-start", "id": "2"},
        {"type": "text-delta", "id": "2", "delta": "I add."},
        {"type": "text-end", "id": "2"},
        {"type": "tool-input-start", "toolCallId": "toolu_1", "toolName": "add"},
        {"type": "tool-input-delta", "toolCallId": "toolu_1", "inputTextDelta": '{"a"'},
        {"type": "tool-input-delta", "toolCallId": "toolu_1", "inputTextDelta": ": 1}"},
        {"type": "tool-input-available", "toolCallId": "toolu_1", "toolName": "add", "input": {"a": 1}},
        Finish("tool-calls", Usage(input_tokens=15, output_tokens=7, cached_tokens=5)),
    ]  # fmt: skip


async def test_thinking_goes_back_with_its_signature(server: ProviderServer, model: ChatModel) -> None:
    server.script(
        stream(START, *THINKING, *HIDDEN, *TEXT, *CALL, *stop("tool_use")), stream(START, *TEXT, *stop("end_turn"))
    )
    kept: dict[str, Any] = {
        event["id"]: event["providerMetadata"]
        for event in await events_of(model, asking(tools=[ADD]))
        if isinstance(event, dict) and "providerMetadata" in event
    }
    answered = said(
        "assistant",
        {"type": "step-start"},
        {"type": "reasoning", "text": "Let me think.", "providerMetadata": kept["0"]},
        {"type": "reasoning", "text": "", "providerMetadata": kept["1"]},
        "I add.",
        {"type": "tool-add", "toolCallId": "toolu_1", "state": "output-error", "input": {"a": 1}, "errorText": "boom"},
    )
    events = await events_of(model, asking(said("user", "hi"), answered, system="Be brief.", tools=[ADD]))
    assert events[-1] == Finish("stop", Usage(input_tokens=15, output_tokens=7, cached_tokens=5))
    body = server.asked[1].json
    assert body["messages"] == [
        {"role": "user", "content": [{"type": "text", "text": "hi"}]},
        {
            "role": "assistant",
            "content": [
                {"type": "thinking", "thinking": "Let me think.", "signature": "sig=="},
                {"type": "redacted_thinking", "data": "opaque"},
                {"type": "text", "text": "I add."},
                {"type": "tool_use", "id": "toolu_1", "name": "add", "input": {"a": 1}},
            ],
        },
        {
            "role": "user",
            "content": [
                {
                    "type": "tool_result", "tool_use_id": "toolu_1", "is_error": True,
                    "content": [{"type": "text", "text": "boom"}],
                }
            ],
        },
    ]  # fmt: skip
    assert body["tools"][0]["input_schema"]["properties"] == ADD.parameters["properties"]
    assert "Be brief." in str(body["system"])


@pytest.mark.parametrize(
    ("raw", "reason"),
    [("end_turn", "stop"), ("max_tokens", "length"), ("stop_sequence", "stop"), ("refusal", "content-filter")],
)
async def test_the_reason_has_the_ai_sdks_name(server: ProviderServer, model: ChatModel, raw: str, reason: str) -> None:
    server.script(stream(START, *TEXT, *stop(raw)))
    assert (await events_of(model))[-1].reason == reason


@pytest.mark.parametrize(
    ("reply", "text", "status"),
    [
        (refused(400, {"type": "error", "error": {"type": "invalid_request_error", "message": "nope"}}), "nope", 400),
        (
            stream(START, *TEXT, {"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}}),
            "Overloaded",
            529,
        ),
    ],
)
async def test_a_refusal_is_told_in_the_providers_words(
    server: ProviderServer, model: ChatModel, reply: Reply, text: str, status: int
) -> None:
    server.script(reply)
    with pytest.raises(ModelRejected) as raised:
        await events_of(model)
    assert (str(raised.value), raised.value.status) == (text, status)


@pytest.mark.parametrize("end", ["regular", "reset"])
async def test_an_answer_that_ends_early_is_unreachable(server: ProviderServer, model: ChatModel, end: Any) -> None:
    reply = stream(START, *TEXT, *CALL[:-2])
    server.script(Reply(reply.body, end=end))
    with pytest.raises(ModelUnreachable):
        await events_of(model, asking(tools=[ADD]))


async def test_closing_the_generator_ends_the_request(server: ProviderServer, model: ChatModel) -> None:
    server.script(Reply(stream(START, *TEXT).body, end="silence"))
    events: Any = model.stream(asking())
    await anext(events)
    await events.aclose()
    await server.client_left.wait()
