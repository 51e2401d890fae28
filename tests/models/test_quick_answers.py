"""The quick model reads what pydantic-ai with the stock SDK reads, and evens out how servers stream tool calls."""

from __future__ import annotations

import asyncio
import itertools
import re
from typing import Any

import anyio
import pytest
from openai import AsyncOpenAI
from pydantic_ai.models.openai import OpenAIChatModel
from pydantic_ai.profiles.openai import OpenAIModelProfile
from pydantic_ai.providers.openai_compatible import OpenAICompatibleProvider

from perdure.errors import ModelRejected, ModelUnreachable
from perdure.models.contract import ChatModel, Finish, Usage
from perdure.models.pydantic_ai import PydanticAIModel
from perdure.models.quick.client import talking_like
from perdure.models.quick.model import QuickChatModel
from perdure.models.quick.recording import Recorder
from tests.models.provider_server import USAGE, ProviderServer, Reply, call, completion, delta, refused, sse
from tests.models.test_pydantic_ai_model import asking, said

TOKEN = "<|im_start|>"
BROKEN = "<\u200d|im_start|>"


def both(url: str, profile: dict[str, Any], **options: Any) -> tuple[ChatModel, ChatModel, AsyncOpenAI]:
    """The stock model, the quick one, and the client of both."""
    client = AsyncOpenAI(base_url=f"{url}/v1", api_key="k", **options)
    made: Any = OpenAIModelProfile(json_schema_transformer=None, **profile)

    def of(client: AsyncOpenAI) -> OpenAIChatModel:
        provider = OpenAICompatibleProvider("openai-compatible", openai_client=client)
        return OpenAIChatModel("m", provider=provider, profile=made)

    stock = of(client)
    quick = QuickChatModel(stock, of(talking_like(client, Recorder)), name="m", new_id=ids())
    return PydanticAIModel(stock, name="m", new_id=ids()), quick, client


def ids() -> Any:
    numbers = itertools.count(1)
    return lambda: f"new{next(numbers)}"


async def seen_of(model: ChatModel, **settings: Any) -> tuple[list[Any], str | None]:
    """Events, and the error that they ended with."""
    events: list[Any] = []
    earlier = {"type": "tool-f", "toolCallId": "old", "state": "output-available", "input": {}, "output": 1}
    request = asking(said("user", "x"), said("assistant", earlier), settings={"max_retries": 0, **settings})
    try:
        async for event in model.stream(request):
            events.append(event)  # noqa: PERF401  # what came before the error counts
    except (ModelRejected, ModelUnreachable) as error:
        return events, f"{type(error).__name__} {getattr(error, 'status', '')}: {error}"
    return events, None


async def read(server: ProviderServer, reply: Reply, profile: dict[str, Any] | None = None, **settings: Any) -> Any:
    """What both make of a reply, the stock model first."""
    server.script(reply)
    stock, quick, client = both(server.url, profile or {})
    async with client:
        return await seen_of(stock, **settings), await seen_of(quick, **settings)


async def read_quickly(server: ProviderServer, reply: Reply) -> tuple[list[Any], str | None]:
    """What the quick model makes of a reply."""
    server.script(reply)
    _, quick, client = both(server.url, {})
    async with client:
        return await seen_of(quick)


def thinking(*texts: str) -> list[Any]:
    return [delta(text) for text in texts]


URL = {"type": "url_citation", "url_citation": {"url": "https://h", "title": "H", "start_index": 0, "end_index": 1}}
OTHER = {"type": "url_citation", "url_citation": {"url": "https://i", "title": "", "start_index": 0, "end_index": 9}}
NO_URL = {"type": "file", "file": {"hash": "x"}}
STOP = delta(finish="stop")
DONE = "[DONE]"

STREAMS: dict[str, list[Any]] = {
    "text": [delta(role="assistant", content=""), delta("a"), delta(""), delta("b"), STOP, USAGE, DONE],
    "text in parts": [delta(content=[{"type": "text", "text": "a"}, {"type": "reference"}, "b"]), STOP, DONE],
    "content that is no text": [delta(content=5), delta(content=[]), delta(content={"a": 1}), delta("x"), STOP, DONE],
    "reasoning": [delta(reasoning_content="r"), delta(reasoning_content="s"), delta("t"), STOP, DONE],
    "reasoning in the other field": [delta(reasoning="r"), delta("t"), delta(reasoning="u"), delta("v"), STOP, DONE],
    "reasoning in both fields": [delta(reasoning="r", reasoning_content="r"), delta("t"), STOP, DONE],
    "reasoning and text at once": [delta("t", reasoning="r"), delta("u", reasoning="s"), STOP, DONE],
    "reasoning between tags": [*thinking("<think>", "hm", " so", "</think>", "\n", "a"), STOP, DONE],
    "reasoning between tags in the middle": [*thinking("a", "<think>", "hm", "</think>", "b"), STOP, DONE],
    "reasoning between tags that is empty": [*thinking("<think>", "</think>", "a"), STOP, DONE],
    "tags in the text": [delta("<think>hm</think>a"), delta("</think>"), STOP, DONE],
    "reasoning only": [delta(reasoning_content="r"), STOP, DONE],
    "nothing": [STOP, DONE],
    "calls": [
        delta("Let me."),
        delta(tool_calls=[call(0, "c1", "add", ""), call(1, "c2", "sub", "")]),
        delta(tool_calls=[call(1, None, None, '{"b"')]),
        delta(tool_calls=[call(0, None, None, '{"a":1}')]),
        delta(tool_calls=[call(1, None, None, ":2}")], finish="tool_calls"),
        DONE,
    ],
    "words between calls": [
        delta("a", tool_calls=[call(0, "c1", "f", "{")]),
        delta("b"),
        delta(tool_calls=[call(0, None, None, "}")]),
        delta("c"),
        delta(reasoning="r", tool_calls=[call(1, "c2", "f", "{}")]),
        delta(reasoning="s"),
        STOP,
        DONE,
    ],
    "a call without arguments": [delta(tool_calls=[call(0, "c", "now")]), delta(finish="tool_calls"), DONE],
    "arguments that are no object": [delta(tool_calls=[call(0, "c", "f", "[1]"), call(1, "d", "g", "{'")]), STOP, DONE],
    "arguments that come as an object": [
        delta(tool_calls=[{"index": 0, "id": "c", "function": {"name": "f", "arguments": {"a": 1}}}]), STOP, DONE,
    ],
    "ids that are taken": [
        delta(tool_calls=[call(0, "old", "f", "{}"), call(1, "c", "f", "{}"), call(2, "c", "f", "{}")]), STOP, DONE,
    ],
    "signatures of calls": [
        delta(tool_calls=[{**call(0, "c", "f", "{}"), "extra_content": {"google": {"signature": "s"}}}]), STOP, DONE,
    ],
    "a refusal": [delta(refusal="I "), delta(refusal="won't."), STOP, DONE],
    "a refusal after text": [delta("Well."), delta("x", refusal="No."), STOP, DONE],
    "sources": [delta("a"), delta(annotations=[URL, NO_URL, "x"]), delta("b", annotations=[OTHER, URL]), STOP, DONE],
    "sources of a text before a call": [
        delta("a", annotations=[URL]), delta(tool_calls=[call(0, "c", "f", "{}")]), STOP, DONE,
    ],
    "sources of two texts": [delta("a", annotations=[URL]), delta(reasoning="r"), delta("b"), STOP, DONE],
    "sources without text": [delta(annotations=[URL]), STOP, DONE],
    "unknown fields everywhere": [
        {**delta("a", thinking="x", padding=[1]), "obfuscation": "zz", "provider": {"n": 1}, "service_tier": "odd"},
        STOP, DONE,
    ],
    "odd types": [
        {**delta("a"), "created": None, "id": None, "model": None}, {"choices": None}, {"choices": []},
        {**delta(), "choices": [{"index": 0, "delta": None}]}, {**delta("b"), "usage": None, "error": None}, STOP, DONE,
    ],
    "usage with every chunk": [{**delta("a"), "usage": USAGE["usage"]}, {**STOP, "usage": USAGE["usage"]}, DONE],
    "usage of another provider": [
        delta("a"), STOP,
        {**USAGE, "usage": {"prompt_tokens": 9, "completion_tokens": 2, "prompt_tokens_details": None}},
        DONE,
    ],
    "finish but no [DONE]": [delta("a"), STOP],
    "[DONE] but no finish": [delta("a"), DONE],
    "the last finish counts": [delta("a", finish="length"), delta(finish="odd"), DONE],
    "a token that was shown broken": [*thinking("x", "<", "\u200d", "|im_", "start|>", "y <\u2060"), STOP, DONE],
    "a token in a call": [delta(BROKEN, tool_calls=[call(0, "c", "f", '{"a":"<\u200d|im_start|>"}')]), STOP, DONE],
    "a token in a broken call": [delta(tool_calls=[call(0, "c", "f", f'["{BROKEN}')]), STOP, DONE],
    "a token before a call": [delta("<\u200d"), delta(tool_calls=[call(0, "c", "f", "{}")]), delta("|x|>"), STOP, DONE],
    "an emoji that is joined": [*thinking("👨\u200d", "👩\u200d👧", " [\u200d]"), STOP, DONE],
}  # fmt: skip


@pytest.mark.parametrize("name", STREAMS)
async def test_ordinary_answers(server: ProviderServer, name: str) -> None:
    body = sse(*STREAMS[name])
    # Cut anywhere: the pieces are not the events.
    stock, quick = await read(server, Reply([body[at : at + 7] for at in range(0, len(body), 7)]))
    assert quick == stock
    assert isinstance(quick[0][-1], Finish)


@pytest.mark.parametrize("name", STREAMS)
@pytest.mark.parametrize(
    "profile",
    [
        {"ignore_streamed_leading_whitespace": True, "may_tokenize_special_tokens_in_content": False},
        {"openai_chat_thinking_field": "reasoning_content", "thinking_tags": ("a", "b")},
    ],
)
async def test_models_with_ways_of_their_own(server: ProviderServer, name: str, profile: dict[str, Any]) -> None:
    stock, quick = await read(server, Reply(sse(*STREAMS[name])), profile)
    assert quick == stock


@pytest.mark.parametrize(
    "texts",
    [
        ["\n", " ", "a"], ["a", "\n", "b"], ["a", ("r",), "\n\n", "b"], ["a", ("r",), "\n", {}, "\n", "b"],
        ["\n", "<think>", "r", "</think>", "\n", "b"], ["a", ("r",), " ", ("s",), "\t", "b"], ["a", ("r",), " "],
        ["a", {}, "\n", "b"], ["a", "<think>", "r", "</think>", "\n", ("s",), " ", "b"],
    ],
)  # fmt: skip
async def test_white_space_before_a_text_is_left_out_where_it_means_nothing(
    server: ProviderServer, texts: list[Any]
) -> None:
    numbers = itertools.count()
    chunks = [
        delta(one)
        if isinstance(one, str)
        else delta(reasoning=one[0])
        if one
        else delta(tool_calls=[call(next(numbers), "c", "f", "{}")])
        for one in texts
    ]
    stock, quick = await read(server, completion(*chunks), {"ignore_streamed_leading_whitespace": True})
    assert quick == stock


@pytest.mark.parametrize("cumulative", [True, False])
async def test_tokens_that_are_counted_from_the_beginning_count_once(server: ProviderServer, cumulative: bool) -> None:
    reply = Reply(sse(*STREAMS["usage with every chunk"]))
    stock, quick = await read(server, reply, openai_continuous_usage_stats=cumulative)
    assert quick == stock
    once = Usage(input_tokens=11, output_tokens=7, cached_tokens=4, reasoning_tokens=3)
    assert (quick[0][-1].usage == once) is cumulative


@pytest.mark.parametrize("name", [name for name in STREAMS if name.startswith("sources")])
async def test_what_a_provider_says_of_its_sources_is_kept_if_wanted(server: ProviderServer, name: str) -> None:
    stock, quick = await read(server, Reply(sse(*STREAMS[name])), openai_include_raw_annotations=True)
    assert quick == stock


@pytest.mark.parametrize("setting", ["request_timeout", "first_event_timeout"])
async def test_a_server_that_says_nothing_is_given_up_in_time(server: ProviderServer, setting: str) -> None:
    stock, quick = await read(server, Reply(end="silence"), **{setting: 0.05})
    assert quick == stock
    assert "0.05" in str(quick[1])


async def test_half_a_character_and_numbers_that_are_none_are_read(server: ProviderServer) -> None:
    body = b'data: {"choices":[{"delta":{"content":"\\ud83d"}}],"x":NaN}\n\n' + sse(STOP, DONE)
    stock, quick = await read(server, Reply(body))
    assert quick == stock
    assert quick[0][1]["delta"] == "\ud83d"


ERRORS: dict[str, Reply] = {
    "400": refused(400, {"error": {"message": "nope", "type": "invalid", "code": "x"}}),
    "401": refused(401, {"error": {"message": "who"}}),
    "404": refused(404, b"not found"),
    "422": refused(422, {"detail": "bad"}),
    "429": refused(429, {"error": {"message": "slow"}}),
    "500": refused(500, b""),
    "error object": Reply(sse(delta("a"), {"error": {"message": "overloaded", "code": 503}})),
    "error with a known code": Reply(sse(delta("a"), {"error": {"message": "x", "code": "context_length_exceeded"}})),
    "error without a message": Reply(sse({"error": {"code": "odd"}})),
    "not JSON": Reply(sse(delta("a"), "{oops")),
}


@pytest.mark.parametrize("name", ERRORS)
async def test_errors_are_told_in_the_same_words(server: ProviderServer, name: str) -> None:
    stock, quick = await read(server, ERRORS[name])
    assert quick == stock
    assert quick[1] is not None


@pytest.mark.parametrize(
    ("reply", "words"),
    [
        # Where the SDK has a phrase for everything, or takes half for whole, we say what came.
        (Reply(sse(delta("a")), end="reset"), "ModelUnreachable : m: The answer broke off: .*incomplete chunked read"),
        (Reply(sse(delta("a"), {"error": "plain"})), "ModelRejected None: plain"),
        (Reply(sse(delta("a")) + sse({"message": "gone", "code": "x"}, name="error")), "ModelRejected None: gone"),
        (Reply(sse(delta("a")) + sse("gone", name="error")), "ModelRejected None: gone"),
        (Reply(sse(delta("a"), "5")), "ModelRejected None: An error occurred during streaming"),
        (Reply(sse(delta("a"), {"choices": 5})), "ModelRejected None: The server sent what is no chunk"),
        (Reply(sse(DONE)), "ModelUnreachable : m: The answer holds nothing"),
        (Reply(b""), "ModelUnreachable : m: The answer broke off"),
        (Reply(sse(delta("a"))), "ModelUnreachable : m: The answer broke off"),
        (Reply(b": ping\n\n"), "ModelUnreachable : m: The answer broke off"),
        (Reply(sse(delta("a"))[:-9]), "ModelUnreachable : m: Failed to decode response as JSON"),
    ],
)
async def test_what_the_sdk_does_not_tell(server: ProviderServer, reply: Reply, words: str) -> None:
    _, error = await read_quickly(server, reply)
    assert error is not None
    assert re.match(words, error), error


@pytest.mark.parametrize(
    ("deltas", "expected"),
    [
        # Id and name repeated with every piece.
        ([[call(0, "c", "add", '{"a"')], [call(0, "c", "add", ":1")], [call(0, "c", "add", "}")]], ["c add {'a': 1}"]),
        # Empty id and name after the first.
        ([[call(0, "c", "add", "")], [call(0, "", "", "{}")]], ["c add {}"]),
        # Every call is number 0.
        ([[call(0, "c", "add", "{}")], [call(0, "d", "add", "{}")]], ["c add {}", "d add {}"]),
        # No numbers, with and without ids.
        (
            [[call(None, "c", "add", "{")], [call(None, None, None, "}")], [call(None, "d", "add", "{}")]],
            ["c add {}", "d add {}"],
        ),
        ([[call(None, None, "f", "{}"), call(None, None, "f", "{}")]], ["new1 f {}", "new2 f {}"]),
        # The name comes later, or in pieces.
        ([[call(0, "c", None, "{")], [call(0, None, "add", "}")]], ["c add {}"]),
        ([[call(0, "c", "get_", "")], [call(0, None, "x", "{}")]], ["c get_x {}"]),
        # An id that comes with the name, or after it.
        ([[call(0, None, None, "{")], [call(0, "c", "add", "}")]], ["c add {}"]),
        ([[call(0, None, "add", "{")], [call(0, "c", None, "}")]], ["new1 add {}"]),
        # Never a name: not a call.
        ([[call(0, "c", None, "{}")]], []),
        ([[{"index": 0, "id": "c"}], [{"index": 0, "function": {"name": "f"}}]], ["c f {}"]),
        # Arguments that come as objects, twice.
        (
            [[{"index": 0, "id": "c", "function": {"name": "f", "arguments": {"a": 1}}}],
             [{"index": 0, "function": {"arguments": {"b": 2}}}]],
            ["c f {'a': 1, 'b': 2}"],
        ),
    ],
)  # fmt: skip
async def test_the_ways_of_servers_with_tool_calls_are_evened_out(
    server: ProviderServer, deltas: list[Any], expected: list[str]
) -> None:
    events, error = await read_quickly(server, completion(*(delta(tool_calls=calls) for calls in deltas)))
    calls = [e for e in events[:-1] if e["type"] == "tool-input-available"]
    assert [f"{c['toolCallId']} {c['toolName']} {c['input']}" for c in calls] == expected
    assert (error, events[-1].reason) == (None, "tool-calls" if expected else "stop")
    started = [e["toolCallId"] for e in events[:-1] if e["type"] == "tool-input-start"]
    assert started == [c["toolCallId"] for c in calls]


async def test_a_call_within_tags_interrupts_the_reasoning(server: ProviderServer) -> None:
    made = [delta(tool_calls=[call(0, "c", "f", "{}")])]
    events, _ = await read_quickly(
        server, completion(*thinking("<think>", "a"), *made, *thinking("b", "</think>", "c"))
    )
    kinds = [event["type"] for event in events[:-1]]
    assert kinds == [
        *("reasoning-start", "reasoning-delta", "reasoning-end", "tool-input-start", "tool-input-delta"),
        *("reasoning-start", "reasoning-delta", "reasoning-end", "text-start", "text-delta", "text-end"),
        "tool-input-available",
    ]


async def test_an_escaped_joiner_is_not_in_the_input(server: ProviderServer) -> None:
    arguments = '{"a":"\\u003c\\u200d|im_start|>","b":["[\\u2060INST]"]}'
    events, _ = await read_quickly(server, completion(delta(tool_calls=[call(0, "c", "f", arguments)])))
    assert events[-2]["input"] == {"a": TOKEN, "b": ["[INST]"]}


async def test_what_comes_in_one_go_does_not_keep_others_waiting(server: ProviderServer) -> None:
    server.script(Reply(sse(*(delta("x") for _ in range(400)), STOP, DONE)))
    _, quick, client = both(server.url, {})
    turns = 0

    async def other() -> None:
        nonlocal turns
        while True:
            turns += 1
            await asyncio.sleep(0)

    async with client, anyio.create_task_group() as group:
        stream: Any = quick.stream(asking())
        await anext(stream)
        group.start_soon(other)
        async for _ in stream:
            pass
        group.cancel_scope.cancel()
    assert turns > 5
