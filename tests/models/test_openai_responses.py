"""OpenAI's Responses API, which ``openai:`` means, against a scripted server."""

from __future__ import annotations

from typing import Any

import pytest

from perdure.errors import ModelRejected, ModelUnreachable
from perdure.models.contract import Finish, ModelRequest, ToolSpec, Usage
from perdure.models.registry import close_models, resolve
from tests.models.provider_server import ProviderServer, Reply, named, refused, sse
from tests.models.test_pydantic_ai_model import asking, events_of, said

ADD = ToolSpec("add", "Adds.", {"type": "object", "title": "Odd", "properties": {"a": {"type": "number"}}})


def response(status: str, **fields: Any) -> dict[str, Any]:
    return {
        "id": "resp_1", "object": "response", "created_at": 1, "model": "gpt-5.2", "status": status, "output": [],
        "parallel_tool_calls": True, "tool_choice": "auto", "tools": [], **fields,
    }  # fmt: skip


def typed(kind: str, **fields: Any) -> dict[str, Any]:
    return {"type": f"response.{kind}", "sequence_number": 1, **fields}


def item(kind: str, item_id: str, index: int, *, done: bool = False, **fields: Any) -> dict[str, Any]:
    made = {"type": kind, "id": item_id, **fields}
    return typed("output_item.done" if done else "output_item.added", output_index=index, item=made)


CREATED = typed("created", response=response("in_progress"))
USED = {
    "input_tokens": 20, "output_tokens": 9, "total_tokens": 29,
    "input_tokens_details": {"cached_tokens": 5}, "output_tokens_details": {"reasoning_tokens": 6},
}  # fmt: skip
COMPLETED = typed("completed", response=response("completed", usage=USED))


def thinking(summary: int, text: str) -> list[dict[str, Any]]:
    where = {"item_id": "rs_1", "output_index": 0, "summary_index": summary}
    return [
        typed("reasoning_summary_part.added", **where, part={"type": "summary_text", "text": ""}),
        typed("reasoning_summary_text.delta", **where, delta=text),
    ]


ANSWER = [
    CREATED,
    item("reasoning", "rs_1", 0, summary=[]),
    *thinking(0, "one"),
    *thinking(1, "two"),
    item("reasoning", "rs_1", 0, done=True, summary=[], encrypted_content="secret"),
    item("message", "msg_1", 1, role="assistant", status="in_progress", content=[]),
    typed("output_text.delta", item_id="msg_1", output_index=1, content_index=0, delta="Hello", logprobs=[]),
    item("function_call", "fc_1", 2, call_id="call_1", name="add", arguments="", status="in_progress"),
    typed("function_call_arguments.delta", item_id="fc_1", output_index=2, delta='{"a":1}'),
    item("function_call", "fc_1", 2, done=True, call_id="call_1", name="add", arguments='{"a":1}', status="completed"),
    COMPLETED,
]


@pytest.fixture(params=["quick", "stock"])
async def name(server: ProviderServer, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> str:
    monkeypatch.setenv("OPENAI_BASE_URL", f"{server.url}/v1")
    monkeypatch.setenv("OPENAI_API_KEY", "k")
    monkeypatch.setenv("PERDURE_STOCK_OPENAI", "1" if request.param == "stock" else "0")
    await close_models()
    return "openai:gpt-5.2"


async def test_a_step_with_reasoning_text_and_a_call(server: ProviderServer, name: str) -> None:
    server.script(Reply(sse(*ANSWER)))
    first, second = {"id": "rs_1"}, {"id": "rs_1", "signature": "secret"}
    assert await events_of(resolve(name)) == [
        {"type": "reasoning-start", "id": "0"},
        {"type": "reasoning-delta", "id": "0", "delta": "one"},
        {"type": "reasoning-end", "id": "0", "providerMetadata": {"openai": first}},
        {"type": "reasoning-start", "id": "1"},
        {"type": "reasoning-delta", "id": "1", "delta": "two"},
        {"type": "reasoning-end", "id": "1", "providerMetadata": {"openai": second}},
        {"type": "text-start", "id": "2"},
        {"type": "text-delta", "id": "2", "delta": "Hello"},
        {"type": "text-end", "id": "2", "providerMetadata": {"openai": {"id": "msg_1"}}},
        {"type": "tool-input-start", "toolCallId": "call_1", "toolName": "add"},
        {"type": "tool-input-delta", "toolCallId": "call_1", "inputTextDelta": '{"a":1}'},
        {
            "type": "tool-input-available", "toolCallId": "call_1", "toolName": "add", "input": {"a": 1},
            "providerMetadata": {"openai": {"id": "fc_1"}},
        },
        Finish("tool-calls", Usage(input_tokens=20, output_tokens=9, cached_tokens=5, reasoning_tokens=6)),
    ]  # fmt: skip


WORDS = item("message", "msg_1", 0, role="assistant", status="in_progress", content=[])
WHERE: dict[str, Any] = {"item_id": "msg_1", "output_index": 0, "content_index": 0}
PLAIN = typed("output_text.delta", **WHERE, delta="a")
LIKELY = [{"token": "a", "logprob": -1}]
SORRY = {"type": "error", "code": "server_error", "message": "sorry", "param": None, "sequence_number": 2}
STREAMS: dict[str, list[Any]] = {
    "all kinds": ANSWER,
    "deltas without log probabilities": [CREATED, WORDS, PLAIN, COMPLETED],
    "deltas with some": [CREATED, WORDS, {**PLAIN, "logprobs": LIKELY}, COMPLETED],
    "deltas of odd types": [CREATED, WORDS, {**PLAIN, "logprobs": [], "sequence_number": "1", "x": 1}, COMPLETED],
    "an end that other servers send": [CREATED, WORDS, PLAIN, COMPLETED, "[DONE]"],
    "an error": [CREATED, SORRY],
    "an error of a gateway": [CREATED, {"error": {"message": "gone", "code": 503}}],
    "a failure": [CREATED, typed("failed", response=response("failed", error={"code": "odd", "message": "x"}))],
    "not JSON": [CREATED, "{oops"],
}  # fmt: skip


@pytest.mark.parametrize("case", STREAMS)
@pytest.mark.parametrize("is_named", [True, False])
async def test_answers_are_read_as_the_sdk_reads_them(
    server: ProviderServer, monkeypatch: pytest.MonkeyPatch, case: str, is_named: bool
) -> None:
    monkeypatch.setenv("OPENAI_BASE_URL", f"{server.url}/v1")
    monkeypatch.setenv("OPENAI_API_KEY", "k")
    events = [(one, one.get("type", "") if is_named and isinstance(one, dict) else "") for one in STREAMS[case]]
    server.script(Reply(b"".join(sse(one, name=name) for one, name in events)))
    seen: list[Any] = []
    for stock in ("1", "0"):
        monkeypatch.setenv("PERDURE_STOCK_OPENAI", stock)
        await close_models()
        try:
            seen.append(await events_of(resolve("openai:gpt-5.2")))
        except (ModelRejected, ModelUnreachable) as error:
            seen.append((type(error), str(error)))
    assert seen[0] == seen[1]


def second_step() -> ModelRequest:
    openai: Any = lambda **fields: {"openai": fields}  # noqa: E731
    answered = said(
        "assistant",
        {"type": "step-start"},
        {"type": "reasoning", "text": "one", "providerMetadata": openai(id="rs_1")},
        {"type": "reasoning", "text": "two", "providerMetadata": openai(id="rs_1", signature="secret")},
        {"type": "text", "text": "Hello", "providerMetadata": openai(id="msg_1")},
        {
            "type": "tool-add", "toolCallId": "call_1", "state": "output-available", "input": {"a": 1},
            "output": {"sum": 3}, "callProviderMetadata": openai(id="fc_1"),
        },
    )  # fmt: skip
    return asking(said("user", "hi"), answered, system="Be brief.", tools=[ADD], settings={"temperature": 0.1})


async def test_the_next_step_gives_back_what_openai_wants_back(server: ProviderServer, name: str) -> None:
    server.script(Reply(sse(CREATED, COMPLETED)))
    await events_of(resolve(name), second_step())
    body = server.asked[0].json
    assert server.asked[0].target == "/v1/responses"
    assert body["instructions"] == "Be brief."
    assert body["input"] == [
        {"role": "user", "content": "hi"},
        {
            "type": "reasoning", "id": "rs_1", "encrypted_content": "secret",
            "summary": [{"type": "summary_text", "text": "one"}, {"type": "summary_text", "text": "two"}],
        },
        {
            "type": "message", "role": "assistant", "id": "msg_1", "status": "completed",
            "content": [{"type": "output_text", "text": "Hello", "annotations": []}],
        },
        {"type": "function_call", "id": "fc_1", "call_id": "call_1", "name": "add", "arguments": '{"a":1}'},
        {"type": "function_call_output", "call_id": "call_1", "output": '{"sum":3}'},
    ]  # fmt: skip


async def test_the_request_is_that_of_the_sdk(server: ProviderServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_BASE_URL", f"{server.url}/v1")
    monkeypatch.setenv("OPENAI_API_KEY", "k")
    server.script(Reply(sse(CREATED, COMPLETED)))
    for stock in ("1", "0"):
        monkeypatch.setenv("PERDURE_STOCK_OPENAI", stock)
        await close_models()
        await events_of(resolve("openai:gpt-5.2"), second_step())
    by_sdk, by_us = server.asked
    (tool,) = by_us.json["tools"]
    assert tool["parameters"] == ADD.parameters  # the SDK's side leaves the title out
    assert {**by_us.json, "tools": []} == {**by_sdk.json, "tools": []}
    assert (by_us.method, by_us.target) == (by_sdk.method, by_sdk.target)
    assert named(by_us.headers, lambda n: n != "content-length") == named(
        by_sdk.headers, lambda n: n != "content-length"
    )


async def test_a_refusal_is_told_in_the_providers_words(server: ProviderServer, name: str) -> None:
    server.script(refused(400, {"error": {"message": "nope"}}))
    with pytest.raises(ModelRejected, match=r"^nope$"):
        await events_of(resolve(name))


@pytest.mark.parametrize("events", [[CREATED], [CREATED, ANSWER[5], ANSWER[6]]])
async def test_an_answer_that_ends_early_is_unreachable(server: ProviderServer, name: str, events: list[Any]) -> None:
    server.script(Reply(sse(*events)))
    with pytest.raises(ModelUnreachable, match="broke off"):
        await events_of(resolve(name))


async def test_an_answer_that_hit_its_limit_says_so(server: ProviderServer, name: str) -> None:
    end = typed("incomplete", response=response("incomplete", incomplete_details={"reason": "max_output_tokens"}))
    server.script(Reply(sse(CREATED, ANSWER[5], ANSWER[6], end)))
    assert (await events_of(resolve(name)))[-1].reason == "length"


async def test_closing_the_generator_ends_the_request(server: ProviderServer, name: str) -> None:
    server.script(Reply(sse(CREATED, ANSWER[5], ANSWER[6]), end="silence"))
    stream: Any = resolve(name).stream(asking())
    await anext(stream)
    await stream.aclose()
    await server.client_left.wait()
