"""The quick client against the stock SDK: same requests, same chunks, same errors."""

from __future__ import annotations

import email.utils
from collections.abc import Callable
from typing import Any

import openai
import pytest
from openai import AsyncOpenAI, omit

from perdure.models.quick.client import QuickAsyncOpenAI
from tests.models.provider_server import USAGE, ProviderServer, Reply, call, completion, delta, named, refused, sse

MESSAGES: list[Any] = [
    {"role": "system", "content": "Be brief."},
    {
        "role": "user",
        "content": [{"type": "text", "text": "ä€😀 <b>\u2028"}, {"type": "image_url", "image_url": {"url": "u"}}],
    },
    {
        "role": "assistant",
        "content": None,
        "reasoning_content": "hm",
        "tool_calls": [{"id": "c1", "type": "function", "function": {"name": "add", "arguments": '{"a":1}'}}],
    },
    {"role": "tool", "tool_call_id": "c1", "content": '{"sum":3}'},
]
TOOLS: list[Any] = [
    {"type": "function", "function": {"name": "add", "description": "", "parameters": {"type": "object", "title": "T"}}}
]
CALLS: list[dict[str, Any]] = [
    {
        "model": "m",
        "messages": MESSAGES,
        "tools": TOOLS,
        "tool_choice": "auto",
        "stream_options": {"include_usage": True},
    },
    {"model": "m", "messages": MESSAGES[:1], "temperature": 0.5, "stop": ["x"], "seed": 7, "user": omit, "top_p": None},
    {"model": "m", "messages": [], "extra_headers": {"X-A": "1", "User-Agent": "me"}, "extra_query": {"q": "a b"}},
    {
        "model": "m",
        "messages": [],
        "extra_body": {"top_k": 3, "seed": omit, "model": "other"},
        "seed": 1,
        "timeout": 7.5,
    },
    {"model": "m", "messages": ({"role": "user", "content": t} for t in ("a", "b"))},
]


def both(url: str, **options: Any) -> list[AsyncOpenAI]:
    return [kind(base_url=f"{url}/v1", api_key="k", **options) for kind in (AsyncOpenAI, QuickAsyncOpenAI)]


async def chunks_of(client: AsyncOpenAI, **params: Any) -> list[Any]:
    async with client:
        stream: Any = await client.chat.completions.create(**{"model": "m", "messages": [], "stream": True, **params})
        return [chunk async for chunk in stream]


@pytest.mark.parametrize("number", range(len(CALLS)))
@pytest.mark.parametrize("stream", [True, False, None])
async def test_requests_are_those_of_the_sdk(server: ProviderServer, number: int, stream: bool | None) -> None:
    whole = {"id": "x", "object": "chat.completion", "created": 1, "model": "m", "choices": []}
    server.script(completion("hi") if stream else refused(200, whole))
    options: dict[str, Any] = {
        "organization": "org",
        "project": "proj",
        "default_headers": {"X-Mine": "yes"},
        "default_query": {"api-version": "7"},
    }
    for client in both(server.url, **options):
        params = CALLS[number] | ({} if stream is None else {"stream": stream})
        if not isinstance(params["messages"], list):
            params["messages"] = ({"role": "user", "content": text} for text in ("a", "b"))
        async with client:
            answer: Any = await client.chat.completions.create(**params)
            if stream:
                assert "hi" in [c.choices[0].delta.content async for c in answer]
    stock, quick = server.asked
    assert (quick.method, quick.target, quick.json) == (stock.method, stock.target, stock.json)
    length = {"content-length"}  # key order and number formats may differ, the values may not
    assert named(quick.headers, lambda n: n not in length) == named(stock.headers, lambda n: n not in length)


async def test_a_copy_with_other_options_is_quick_too() -> None:
    client = QuickAsyncOpenAI(base_url="http://127.0.0.1:9/v1", api_key="k")
    copy = client.with_options(max_retries=0)
    assert type(copy) is QuickAsyncOpenAI
    like = QuickAsyncOpenAI.like(
        AsyncOpenAI(base_url="http://h/v1", api_key="k", organization="o", default_headers={"a": "b"}, max_retries=9)
    )
    assert (str(like.base_url), like.organization, like.max_retries) == ("http://h/v1/", "o", 9)
    assert like.default_headers["a"] == "b"
    for one in (client, like):
        await one.close()


def seen(chunk: Any) -> Any:
    """What pydantic-ai reads of a chunk."""
    choices = [
        (
            c.finish_reason,
            c.delta
            and [getattr(c.delta, name, None) for name in ("content", "reasoning", "reasoning_content", "refusal")],
            [
                (t.index, t.id, t.function.name, t.function.arguments, t.model_extra or None)
                for t in c.delta.tool_calls or ()
            ]
            if c.delta
            else None,
            c.logprobs and c.logprobs.content[0].token,
        )
        for c in chunk.choices or ()
    ]
    usage = chunk.usage and chunk.usage.model_dump(exclude_none=True)
    return chunk.id, chunk.model, chunk.created, chunk.service_tier, choices, usage


LIKELY = {"token": "a", "logprob": -1, "top_logprobs": []}
STREAMS: dict[str, bytes] = {
    "text": sse(delta(role="assistant", content=""), delta("a"), delta("b"), delta(finish="stop"), USAGE, "[DONE]"),
    "reasoning": sse(delta(reasoning_content="r"), delta(reasoning="s"), delta("t"), delta(finish="stop"), "[DONE]"),
    "calls": sse(
        delta(tool_calls=[call(0, "c1", "add", ""), call(1, "c2", "sub", "")]),
        delta(tool_calls=[call(1, None, None, '{"b"')]),
        delta(tool_calls=[call(0, None, None, '{"a":1}')]),
        delta(tool_calls=[call(1, None, None, ":2}")], finish="tool_calls"),
        "[DONE]",
    ),
    "unknown fields everywhere": sse(
        {**delta("a", thinking="x", padding=[1]), "obfuscation": "zz", "provider": {"n": 1}, "service_tier": "odd"},
        delta(tool_calls=[{**call(0, "c", "f", "{}"), "extra_content": {"google": {"thought_signature": "s"}}}]),
        delta(finish="stop"),
        "[DONE]",
    ),
    "log probabilities": sse(
        {**delta(), "choices": [{"index": 0, "delta": {"content": "a"}, "logprobs": {"content": [LIKELY]}}]},
        delta(finish="length"),
        "[DONE]",
    ),
    "odd types": sse(
        {**delta("a"), "created": None, "id": None, "model": None},
        {"choices": None},
        {"choices": []},
        {**delta(), "choices": [{"index": 0, "delta": None, "finish_reason": "guardrail"}]},
        "[DONE]",
    ),
    "usage with every chunk": sse({**delta("a"), "usage": USAGE["usage"]}, delta(finish="stop"), "[DONE]"),
    "line ends and comments": sse(delta("ä€😀"), delta(finish="stop"), "[DONE]").replace(b"\n", b"\r\n") + b": bye\r\n",
    "finish but no [DONE]": sse(delta("a"), delta(finish="stop")),
    "[DONE] but no finish": sse(delta("a"), "[DONE]"),
    "escapes": b'data: {"choices":[{"delta":{"content":"\\ud83d\\ude00 \\u00e4"}}]}\n\ndata: [DONE]\n\n',
}  # fmt: skip


@pytest.mark.parametrize("name", STREAMS)
async def test_chunks_show_what_the_sdk_shows(server: ProviderServer, name: str) -> None:
    body = STREAMS[name]
    server.script(Reply([body[at : at + 7] for at in range(0, len(body), 7)]))
    stock, quick = [[seen(c) for c in await chunks_of(client)] for client in both(server.url)]
    assert quick == stock
    assert len(quick) > 1 or name in {"escapes", "[DONE] but no finish"}


@pytest.mark.parametrize(
    ("deltas", "expected"),
    [
        # Id and name repeated with every delta.
        (
            [[call(0, "c", "add", '{"a"')], [call(0, "c", "add", ":1")], [call(0, "c", "add", "}")]],
            [(0, "c", "add", '{"a"'), (0, None, None, ":1"), (0, None, None, "}")],
        ),
        # Empty id and name after the first.
        ([[call(0, "c", "add", "")], [call(0, "", "", "{}")]], [(0, "c", "add", ""), (0, None, None, "{}")]),
        # Every call is number 0.
        ([[call(0, "c", "add", "{}")], [call(0, "d", "add", "{}")]], [(0, "c", "add", "{}"), (1, "d", "add", "{}")]),
        # No numbers, with and without ids.
        (
            [[call(None, "c", "add", "{")], [call(None, None, None, "}")], [call(None, "d", "add", "{}")]],
            [(0, "c", "add", "{"), (0, None, None, "}"), (1, "d", "add", "{}")],
        ),
        ([[call(None, None, "f", "{}"), call(None, None, "f", "{}")]], [(0, None, "f", "{}"), (1, None, "f", "{}")]),
        # The name comes later, or in pieces.
        ([[call(0, "c", None, "{")], [call(0, None, "add", "}")]], [(0, "c", "add", "{}")]),
        ([[call(0, "c", "get_", "")], [call(0, None, "x", "{}")]], [(0, "c", "get_", ""), (0, None, "x", "{}")]),
        # Never a name: not a call.
        ([[call(0, "c", None, "{}")]], []),
    ],
)  # fmt: skip
async def test_the_ways_of_servers_with_tool_calls_are_evened_out(
    server: ProviderServer, deltas: list[Any], expected: list[Any]
) -> None:
    server.script(completion(*(delta(tool_calls=calls) for calls in deltas)))
    chunks = await chunks_of(both(server.url)[1])
    calls = [t for chunk in chunks for choice in chunk.choices for t in choice.delta.tool_calls or ()]
    assert [(t.index, t.id, t.function.name, t.function.arguments) for t in calls] == expected


ERRORS: dict[str, Reply] = {
    "400": refused(400, {"error": {"message": "nope", "type": "invalid", "code": "x"}}),
    "401": refused(401, {"error": {"message": "who"}}),
    "404": refused(404, b"not found"),
    "422": refused(422, {"detail": "bad"}),
    "429": refused(429, {"error": {"message": "slow"}}),
    "500": refused(500, b""),
    "error object": Reply(sse(delta("a"), {"error": {"message": "overloaded", "code": 503}})),
    "error text": Reply(sse(delta("a"), {"error": "plain"})),
    "not JSON": Reply(sse(delta("a"), "{oops")),
    "reset": Reply(sse(delta("a")), end="reset"),
}


@pytest.mark.parametrize("name", ERRORS)
async def test_errors_are_those_of_the_sdk(server: ProviderServer, name: str) -> None:
    server.script(ERRORS[name])
    raised: list[Any] = []
    for client in both(server.url, max_retries=0):
        with pytest.raises((openai.OpenAIError, ValueError)) as error:
            await chunks_of(client)
        raised.append(error.value)
    stock, quick = raised
    assert type(quick) is type(stock)
    assert getattr(quick, "body", None) == getattr(stock, "body", None)
    # Where the SDK has a phrase for everything, we say what came.
    said = {"reset": "incomplete chunked read", "error text": "plain"}
    assert said[name] in str(quick) if name in said else str(quick) == str(stock)


async def test_an_event_named_error_is_an_error(server: ProviderServer) -> None:
    server.script(Reply(sse(delta("a")) + sse({"message": "gone", "code": "x"}, name="error")))
    with pytest.raises(openai.APIError, match="gone"):
        await chunks_of(both(server.url)[1])


@pytest.mark.parametrize("body", [b"", sse(delta("a")), sse(delta("a"))[:-9], b": ping\n\n"])
async def test_a_body_that_ends_before_the_answer_is_a_broken_connection(server: ProviderServer, body: bytes) -> None:
    server.script(Reply(body))
    with pytest.raises((openai.APIConnectionError, ValueError)):
        await chunks_of(both(server.url)[1])


async def test_a_server_that_falls_silent_is_a_timeout(server: ProviderServer) -> None:
    server.script(Reply(sse(delta("a")), end="silence"))
    with pytest.raises(openai.APITimeoutError):
        await chunks_of(both(server.url, timeout=0.05)[1])
    await server.client_left.wait()


async def test_connections_are_used_again(server: ProviderServer) -> None:
    server.script(completion("a"))
    async with both(server.url)[1] as client:
        for _ in range(3):
            stream: Any = await client.chat.completions.create(model="m", messages=[], stream=True)
            assert [c async for c in stream]
    assert (len(server.asked), server.connections) == (3, 1)


NOW = 1_800_000_000


class Waits:
    """Takes the place of the SDK's clock: waits are written down instead of waited for."""

    def __init__(self) -> None:
        self.seconds: list[float] = []

    async def sleep(self, seconds: float) -> None:
        self.seconds.append(seconds)

    def time(self) -> float:
        return NOW


@pytest.fixture
def waits(monkeypatch: pytest.MonkeyPatch) -> Waits:
    made = Waits()
    monkeypatch.setattr("openai._base_client.anyio", made)
    monkeypatch.setattr("openai._base_client.time", made)
    return made


OK: Callable[[], Reply] = lambda: completion("a")  # noqa: E731


@pytest.mark.parametrize("status", [408, 409, 429, 500, 503, 529])
async def test_passing_trouble_is_tried_again_with_growing_waits(
    server: ProviderServer, waits: Waits, status: int
) -> None:
    server.script(refused(status, {}), refused(status, {}), OK())
    assert await chunks_of(both(server.url)[1])
    assert [dict(asked.headers)["x-stainless-retry-count"] for asked in server.asked] == ["0", "1", "2"]
    first, second = waits.seconds
    assert 0.375 <= first <= 0.5
    assert 0.75 <= second <= 1.0


@pytest.mark.parametrize(
    "reply", [Reply(end="reset"), Reply(b"x", headers={"content-type": "text/plain"}, end="reset")]
)
async def test_a_connection_that_breaks_after_the_answer_began_is_not_tried_again(
    server: ProviderServer, reply: Reply
) -> None:
    server.script(reply, OK())
    with pytest.raises(openai.APIConnectionError):
        await chunks_of(both(server.url)[1])
    assert len(server.asked) == 1


async def test_a_connection_that_breaks_before_the_answer_is_tried_again(server: ProviderServer, waits: Waits) -> None:
    server.script(Reply(status=0), OK())
    assert await chunks_of(both(server.url)[1])
    assert (len(server.asked), len(waits.seconds)) == (2, 1)


async def test_a_server_that_is_not_there_is_tried_again(waits: Waits) -> None:
    with pytest.raises(openai.APIConnectionError):
        await chunks_of(both("http://127.0.0.1:9")[1])
    assert len(waits.seconds) == 2


@pytest.mark.parametrize("status", [400, 401, 403, 404, 422])
async def test_a_refusal_is_final(server: ProviderServer, waits: Waits, status: int) -> None:
    server.script(refused(status, {}), OK())
    with pytest.raises(openai.APIStatusError):
        await chunks_of(both(server.url)[1])
    assert waits.seconds == []


@pytest.mark.parametrize(
    ("headers", "low", "high"),
    [
        ({"retry-after": "7"}, 7, 7),
        ({"retry-after-ms": "1500"}, 1.5, 1.5),
        ({"retry-after-ms": "250", "retry-after": "7"}, 0.25, 0.25),
        ({"retry-after": email.utils.formatdate(NOW + 60, usegmt=True)}, 60, 60),
        ({"retry-after": "soon"}, 0.375, 0.5),
    ],
)
async def test_the_server_says_how_long_to_wait(
    server: ProviderServer, waits: Waits, headers: dict[str, str], low: float, high: float
) -> None:
    server.script(refused(429, {}, **headers), OK())
    assert await chunks_of(both(server.url)[1])
    assert len(waits.seconds) == 1
    assert low <= waits.seconds[0] <= high
