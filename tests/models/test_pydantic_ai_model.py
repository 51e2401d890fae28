"""A provider's model, over HTTP."""

from __future__ import annotations

import asyncio
from typing import Any

import anyio
import pytest
from pydantic_ai.models.fallback import FallbackModel
from pydantic_ai.models.function import AgentInfo, DeltaToolCall, FunctionModel
from pydantic_ai.models.test import TestModel as ProviderTestModel

from perdure.errors import ModelError, ModelRejected, ModelUnreachable
from perdure.models.bridge.requests import GO_ON
from perdure.models.contract import ChatModel, Finish, HistoryMessage, ModelRequest, ToolSpec, Usage
from perdure.models.pydantic_ai import PydanticAIModel
from perdure.models.registry import openai_compatible
from tests.models.provider_server import USAGE, ProviderServer, Reply, call, completion, delta, refused, sse

ADD = ToolSpec(
    "add", "Adds.", {"type": "object", "title": "Odd", "properties": {"a": {"type": "number", "default": 1}}}
)


def said(role: Any, *parts: Any) -> HistoryMessage:
    made = [{"type": "text", "text": part} if isinstance(part, str) else part for part in parts]
    return HistoryMessage.of({"id": f"m-{role}", "role": role, "parts": made})


def asking(*history: HistoryMessage, **fields: Any) -> ModelRequest:
    return ModelRequest(**{"system": "", "history": history or (said("user", "hi"),), **fields})


async def events_of(model: ChatModel, request: ModelRequest | None = None) -> list[Any]:
    return [event async for event in model.stream(request or asking())]


@pytest.fixture(params=["quick", "stock"])
def model(server: ProviderServer, request: pytest.FixtureRequest) -> ChatModel:
    return openai_compatible("m", f"{server.url}/v1", stock=request.param == "stock")


@pytest.fixture
def quick(server: ProviderServer) -> ChatModel:
    return openai_compatible("m", f"{server.url}/v1", stock=False)


async def test_a_step_with_reasoning_text_and_a_call(server: ProviderServer, model: ChatModel) -> None:
    server.script(
        Reply(
            sse(
                delta(role="assistant", content=""),
                delta(reasoning_content="hm"),
                delta("Let "),
                delta(""),
                delta("me."),
                delta(tool_calls=[call(0, "c1", "add", "")]),
                delta(tool_calls=[call(0, None, None, '{"a":')]),
                delta(tool_calls=[]),
                delta(tool_calls=[call(0, None, None, "1}")]),
                delta(tool_calls=[call(0, None, None, "")], finish="tool_calls"),
                USAGE,
                "[DONE]",
            )
        )
    )
    assert await events_of(model) == [
        {"type": "reasoning-start", "id": "0"},
        {"type": "reasoning-delta", "id": "0", "delta": "hm"},
        {"type": "reasoning-end", "id": "0", "providerMetadata": {"openai-compatible": {"id": "reasoning_content"}}},
        {"type": "text-start", "id": "1"},
        {"type": "text-delta", "id": "1", "delta": "Let "},
        {"type": "text-delta", "id": "1", "delta": "me."},
        {"type": "text-end", "id": "1"},
        {"type": "tool-input-start", "toolCallId": "c1", "toolName": "add"},
        {"type": "tool-input-delta", "toolCallId": "c1", "inputTextDelta": '{"a":'},
        {"type": "tool-input-delta", "toolCallId": "c1", "inputTextDelta": "1}"},
        {"type": "tool-input-available", "toolCallId": "c1", "toolName": "add", "input": {"a": 1}},
        Finish("tool-calls", Usage(input_tokens=11, output_tokens=7, cached_tokens=4, reasoning_tokens=3)),
    ]


async def test_the_request_holds_system_tools_settings_and_the_whole_conversation(
    server: ProviderServer, model: ChatModel
) -> None:
    server.script(completion("ok"))
    answered = said(
        "assistant",
        {"type": "step-start"},
        {"type": "reasoning", "text": "hm", "providerMetadata": {"openai-compatible": {"id": "reasoning_content"}}},
        {"type": "tool-add", "toolCallId": "c1", "state": "output-available", "input": {"a": 1}, "output": {"sum": 3}},
        {"type": "tool-add", "toolCallId": "c2", "state": "output-error", "input": {}, "errorText": "boom"},
        {"type": "step-start"},
        "Three.",
    )
    await events_of(
        model,
        asking(
            said("user", "add"), answered, said("user", "thanks"),
            system="Be brief.", tools=[ADD],
            settings={"temperature": 0.5, "max_tokens": 9, "top_p": 0.1, "stop_sequences": ["x"], "seed": 7},
        ),
    )  # fmt: skip
    calls = [
        {"id": i, "type": "function", "function": {"name": "add", "arguments": a}}
        for i, a in (("c1", '{"a":1}'), ("c2", "{}"))
    ]
    body = server.asked[0].json
    assert server.asked[0].target == "/v1/chat/completions"
    assert body["messages"] == [
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": "add"},
        {"role": "assistant", "content": None, "reasoning_content": "hm", "tool_calls": calls},
        {"role": "tool", "tool_call_id": "c1", "content": '{"sum":3}'},
        {"role": "tool", "tool_call_id": "c2", "content": "boom"},
        {"role": "assistant", "content": "Three."},
        {"role": "user", "content": "thanks"},
    ]
    function = {"name": "add", "description": "Adds.", "parameters": ADD.parameters}
    assert body["tools"] == [{"type": "function", "function": function}]
    settings = {"temperature": 0.5, "max_completion_tokens": 9, "top_p": 0.1, "stop": ["x"], "seed": 7}
    assert {key: body[key] for key in settings} == settings
    assert body["stream"] is True


async def test_a_conversation_of_two_steps(server: ProviderServer, model: ChatModel) -> None:
    server.script(completion(delta(tool_calls=[call(0, "c1", "add", '{"a":1}')])), completion("Three."))
    question = said("user", "add")
    first = await events_of(model, asking(question, tools=[ADD]))
    assert first[-1].reason == "tool-calls"
    asked = next(event for event in first if isinstance(event, dict) and event["type"] == "tool-input-available")
    growing = said(
        "assistant",
        {"type": "step-start"},
        {
            "type": f"tool-{asked['toolName']}",
            "toolCallId": asked["toolCallId"],
            "state": "output-available",
            "input": asked["input"],
            "output": "3",
        },
    )
    second = await events_of(model, asking(question, growing, tools=[ADD]))
    assert [event["delta"] for event in second if isinstance(event, dict) and "delta" in event] == ["Three."]
    assert [message["role"] for message in server.asked[1].json["messages"]] == ["user", "assistant", "tool"]


async def test_a_conversation_that_ends_with_the_model_is_continued_by_a_passing_wish(
    server: ProviderServer, quick: ChatModel
) -> None:
    server.script(completion("more"))
    history = [said("user", "go"), said("assistant", "Once upon")]
    await events_of(quick, asking(*history))
    await events_of(quick, asking(*history))
    for asked in server.asked:
        assert asked.json["messages"][-2:] == [
            {"role": "assistant", "content": "Once upon"},
            {"role": "user", "content": GO_ON},
        ]
        assert len(asked.json["messages"]) == 3


async def test_an_empty_conversation_is_refused(quick: ChatModel, server: ProviderServer) -> None:
    with pytest.raises(ModelRejected, match="no message"):
        await events_of(quick, asking(said("user")))
    assert server.asked == []


@pytest.mark.parametrize(
    ("raw", "reason"),
    [
        ("stop", "stop"),
        ("length", "length"),
        ("content_filter", "content-filter"),
        ("tool_calls", "tool-calls"),
        ("guardrail_intervened", "other"),
    ],
)
async def test_the_reason_has_the_ai_sdks_name(server: ProviderServer, model: ChatModel, raw: str, reason: str) -> None:
    server.script(completion("a", delta(finish=raw)))
    assert (await events_of(model))[-1].reason == reason


async def test_a_call_with_the_finish_reason_stop_is_a_call(server: ProviderServer, model: ChatModel) -> None:
    server.script(completion(delta(tool_calls=[call(0, "c", "now", "")]), delta(finish="stop")))
    *_, available, finish = await events_of(model)
    assert (available["input"], finish.reason) == ({}, "tool-calls")


async def test_a_refusal_is_shown(server: ProviderServer, model: ChatModel) -> None:
    server.script(completion(delta(refusal="I "), delta(refusal="won't."), delta(finish="stop")))
    events = await events_of(model)
    assert events[1] == {"type": "text-delta", "id": "refusal", "delta": "I won't."}
    assert events[-1].reason == "content-filter"


async def test_an_id_that_an_earlier_step_used_is_replaced(server: ProviderServer, quick: ChatModel) -> None:
    server.script(completion(delta(tool_calls=[call(0, "call_0", "add", "{}"), call(1, "call_0", "add", "{}")])))
    earlier = {"type": "tool-add", "toolCallId": "call_0", "state": "output-available", "input": {}, "output": 1}
    events = await events_of(quick, asking(said("user", "x"), said("assistant", earlier)))
    ids = [event["toolCallId"] for event in events[:-1] if event["type"] == "tool-input-available"]
    assert len({*ids, "call_0"}) == 3


@pytest.mark.parametrize(
    ("reply", "text", "status"),
    [
        (refused(400, {"error": {"message": "nope"}}), "nope", 400),
        (refused(401, {"error": {"message": "bad key", "code": "x"}}), "bad key", 401),
        (refused(404, {"detail": "no such model"}), "no such model", 404),
        (refused(422, {"message": "odd"}), "odd", 422),
        (refused(400, b"plain text"), "plain text", 400),
        (
            Reply(sse(delta("a"), {"error": {"message": "too long", "code": "context_length_exceeded"}})),
            "too long",
            400,
        ),
        (Reply(sse({"error": {"message": "broken inside"}})), "broken inside", None),
    ],
)
async def test_a_refusal_of_the_provider_is_told_in_its_own_words(
    server: ProviderServer, model: ChatModel, reply: Reply, text: str, status: int | None
) -> None:
    server.script(reply)
    with pytest.raises(ModelRejected) as raised:
        await events_of(model)
    assert (str(raised.value), raised.value.status) == (text, status)


@pytest.mark.parametrize(
    "reply",
    [
        Reply(sse(delta("a")), end="reset"),
        Reply(sse(delta("a"), "{broken")),
        Reply(sse(delta("a"))[:-30]),
        Reply(b"", end="reset"),
    ],
)
async def test_a_connection_that_breaks_off_is_unreachable(
    server: ProviderServer, model: ChatModel, reply: Reply
) -> None:
    server.script(reply)
    with pytest.raises(ModelUnreachable):
        await events_of(model)


async def test_an_answer_without_a_finish_is_not_taken_for_whole(server: ProviderServer, quick: ChatModel) -> None:
    server.script(Reply(sse(delta("a"), delta(tool_calls=[call(0, "c", "add", '{"pa')]))))
    seen: list[Any] = []

    async def listen() -> None:
        async for event in quick.stream(asking()):
            seen.append(event)  # noqa: PERF401  # what came before the error counts

    with pytest.raises(ModelUnreachable, match="broke off"):
        await listen()
    assert [event["type"] for event in seen if event["type"].startswith("t")] == [
        "text-start", "text-delta", "text-end", "tool-input-start", "tool-input-delta",
    ]  # fmt: skip


async def test_no_server_is_unreachable() -> None:
    model = openai_compatible("m", "http://127.0.0.1:9/v1")
    with pytest.raises(ModelUnreachable, match="onnect"):
        await events_of(model, asking(settings={"max_retries": 0}))


async def test_what_a_provider_has_no_form_for_is_refused(server: ProviderServer, quick: ChatModel) -> None:
    video = {"type": "file", "mediaType": "video/mp4", "url": "data:video/mp4;base64,AAAA"}
    with pytest.raises(ModelRejected, match="cannot be sent"):
        await events_of(quick, asking(said("user", video)))
    assert server.asked == []


async def test_closing_the_generator_ends_the_request(server: ProviderServer, model: ChatModel) -> None:
    server.script(Reply(sse(delta("a")), end="silence"))
    stream: Any = model.stream(asking())
    assert (await anext(stream))["type"] == "text-start"
    await stream.aclose()
    await server.client_left.wait()


@pytest.mark.parametrize("body", [b"", sse(delta("a"))])
async def test_cancelling_the_task_ends_the_request(server: ProviderServer, model: ChatModel, body: bytes) -> None:
    server.script(Reply(body, end="silence"))
    task = asyncio.create_task(events_of(model))
    await server.answering.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    await server.client_left.wait()


async def test_a_cancelled_scope_ends_the_request(server: ProviderServer, model: ChatModel) -> None:
    server.script(Reply(sse(delta("a")), end="silence"))
    with anyio.CancelScope() as scope:
        async for _ in model.stream(asking()):
            scope.cancel()
    assert scope.cancelled_caught
    await server.client_left.wait()


async def test_the_connection_is_free_after_a_request_was_ended(server: ProviderServer, quick: ChatModel) -> None:
    server.script(Reply(sse(delta("a")), end="silence"), completion("b"))
    stream: Any = quick.stream(asking())
    await anext(stream)
    await stream.aclose()
    assert (await events_of(quick))[-1].reason == "stop"


async def test_a_model_made_up_in_the_process_answers_too() -> None:
    async def answer(messages: list[Any], info: AgentInfo) -> Any:
        assert info.instructions == "Be brief."
        yield "Let me check. "
        yield {1: DeltaToolCall("add", '{"a":', tool_call_id="c")}
        yield {1: DeltaToolCall(json_args="1}")}

    model = PydanticAIModel(FunctionModel(stream_function=answer))
    *_, available, finish = await events_of(model, asking(system="Be brief.", tools=[ADD]))
    assert (available["input"], finish.reason) == ({"a": 1}, "tool-calls")
    assert (await events_of(PydanticAIModel(ProviderTestModel())))[-1].reason == "stop"


async def test_models_that_all_fail_are_unreachable_with_every_reason(server: ProviderServer) -> None:
    server.script(refused(400, {"error": {"message": "nope"}}))
    one: Any = openai_compatible("m", f"{server.url}/v1")
    with pytest.raises(ModelError, match="nope"):
        await events_of(PydanticAIModel(FallbackModel(one.model, one.model)))
