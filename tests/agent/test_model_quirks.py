"""Odd ways of models and of the servers they run on: the conversation stays whole, and the agent goes on."""

from collections.abc import AsyncIterator
from typing import Any

import pytest

from perdure import (
    ChatModel,
    ChatResponse,
    Event,
    ModelUnreachable,
    StepConfig,
    Think,
    TurnConfig,
    callable,
    openai_compatible,
    tool,
)
from perdure.models.registry import close_models
from perdure.testing import ScriptedModel, call, chunk, fail, finish, say, strict_provider_errors, think
from tests.agent.calls import parts_of, result_of, said, tool_parts
from tests.models.provider_server import ProviderServer, Reply, completion, delta, provider_server, sse
from tests.models.provider_server import call as piece
from tests.requirements import requirement
from tests.support import Serve, Tab, agent, chunks_of, user_message

pytestmark = pytest.mark.anyio


@pytest.fixture
async def provider() -> AsyncIterator[ProviderServer]:
    async with provider_server() as running:
        yield running
        await close_models()


@pytest.fixture(params=[False, True], ids=["quick", "stock"])
def model(provider: ProviderServer, request: pytest.FixtureRequest) -> ChatModel:
    """A model behind an OpenAI-compatible server, read by either decoder."""
    return openai_compatible("m", f"{provider.url}/v1", stock=request.param)


@pytest.fixture
def quick(provider: ProviderServer) -> ChatModel:
    """The same behind the decoder that is the default. The other glues names together that come twice."""
    return openai_compatible("m", f"{provider.url}/v1", stock=False)


class Ran:
    """Tools that write down what they were called with."""

    def __init__(self) -> None:
        self.inputs: list[Any] = []

        @tool
        def now() -> str:
            """The time."""
            self.inputs.append({})
            return "noon"

        @tool
        def cols(table: str) -> str:
            """Columns."""
            self.inputs.append(table)
            return f"columns of {table}"

        self.tools = [now, cols]


def tool_calls(*deltas: Any, end: str = "tool_calls") -> Reply:
    """An answer whose chunks are these pieces of tool calls."""
    return completion(*(delta(tool_calls=[one] if isinstance(one, dict) else one) for one in deltas), delta(finish=end))


def shown(provider: ProviderServer) -> list[dict[str, Any]]:
    """The messages of the last request."""
    return provider.asked[-1].json["messages"]


async def ended(tab: Tab, server: Any, request: str, text: str = "Go") -> dict[str, Any]:
    """The answer to another question, as stored."""
    await tab.ask(request, *(await server.stored()), user_message(text))
    assert (await tab.done(request))["outcome"] == "completed"
    return (await server.stored())[-1]


@requirement("fault:MQ-01")
@pytest.mark.parametrize("arguments", ["", " ", None])
async def test_a_call_without_arguments_runs_with_none(
    serve: Serve, provider: ProviderServer, model: ChatModel, arguments: str | None
) -> None:
    ran = Ran()
    provider.script(tool_calls(piece(0, "c1", "now", arguments)), completion("It is noon."))
    server = await serve(agent(model, *ran.tools))
    answer = await ended(await server.tab(), server, "r1")
    assert ran.inputs == [{}]
    assert [(part["input"], part["output"]) for part in tool_parts(answer)] == [({}, "noon")]
    assert said([answer]) == ["It is noon."]
    assert shown(provider)[-2]["tool_calls"][0]["function"]["arguments"] == "{}"


@requirement("fault:MQ-03")
@pytest.mark.parametrize("name", ["cols", ""])
async def test_an_id_and_a_name_in_every_piece_are_one_call(
    serve: Serve, provider: ProviderServer, quick: ChatModel, name: str
) -> None:
    ran = Ran()
    pieces = ['{"ta', 'ble"', ":", '"us', 'ers"}']
    deltas = [piece(0, "c1", "cols" if number == 0 else name, text) for number, text in enumerate(pieces)]
    provider.script(tool_calls(*deltas), completion("Done."))
    server = await serve(agent(quick, *ran.tools))
    answer = await ended(await server.tab(), server, "r1")
    assert ran.inputs == ["users"]
    assert [(part["toolCallId"], part["output"]) for part in tool_parts(answer)] == [("c1", "columns of users")]


@requirement("fault:MQ-04")
async def test_two_calls_whose_pieces_alternate_keep_their_own_arguments(
    serve: Serve, provider: ProviderServer, model: ChatModel
) -> None:
    ran = Ran()
    deltas = [
        piece(0, "c1", "cols", ""),
        piece(1, "c2", "cols", ""),
        *(piece(n % 2, "", None, text) for n, text in enumerate(['{"table"', '{"tab', ':"a"}', 'le":"b"}'])),
    ]
    provider.script(tool_calls(*deltas), completion("Done."))
    server = await serve(agent(model, *ran.tools))
    answer = await ended(await server.tab(), server, "r1")
    assert sorted(ran.inputs) == ["a", "b"]
    assert [(part["toolCallId"], part["output"]) for part in tool_parts(answer)] == [
        ("c1", "columns of a"),
        ("c2", "columns of b"),
    ]


@requirement("fault:MQ-05")
async def test_calls_without_ids_get_some_that_are_unique_over_turns(
    serve: Serve, provider: ProviderServer, model: ChatModel
) -> None:
    ran = Ran()
    arguments = ['{"table":"a"}', '{"table":"b"}']
    provider.script(
        *(reply for text in arguments for reply in (tool_calls(piece(0, None, "cols", text)), completion("Done.")))
    )
    server = await serve(agent(model, *ran.tools))
    tab = await server.tab()
    answers = [await ended(tab, server, request) for request in ("r1", "r2")]
    ids = [part["toolCallId"] for answer in answers for part in tool_parts(answer)]
    assert ran.inputs == ["a", "b"]
    assert len(set(ids)) == 2
    assert all(ids)
    results = {m["tool_call_id"]: m["content"] for m in shown(provider) if m["role"] == "tool"}
    assert results == {ids[0]: "columns of a", ids[1]: "columns of b"}


@requirement("fault:MQ-08")
@pytest.mark.parametrize("calls", [False, True], ids=["after text", "inside arguments"])
async def test_an_answer_that_breaks_off_is_kept_and_half_a_call_does_not_run(
    serve: Serve, provider: ProviderServer, quick: ChatModel, calls: bool
) -> None:
    ran = Ran()
    half = [delta("Let me"), *([delta(tool_calls=[piece(0, "c1", "cols", '{"ta')])] if calls else [])]
    provider.script(Reply(sse(*half)), completion("Sorry."))
    server = await serve(agent(quick, *ran.tools))
    tab = await server.tab()
    await tab.ask("r1", "Go")
    await tab.done("r1")
    stored = (await server.stored())[1]
    assert said([stored]) == ["Let me"]
    assert ran.inputs == []
    assert [part["state"] for part in tool_parts(stored)] == ["output-error"] * calls
    assert said([await ended(tab, server, "r2", "And?")]) == ["Sorry."]


@requirement("fault:MQ-09")
@pytest.mark.parametrize("last", [piece(0, "c1", "now", ""), piece(0, None, None, ""), piece(0, "c1", None, "")])
async def test_a_piece_that_follows_a_complete_call_is_not_another(
    serve: Serve, provider: ProviderServer, quick: ChatModel, last: Any
) -> None:
    ran = Ran()
    provider.script(tool_calls(piece(0, "c1", "now", "{}"), last), completion("Noon."))
    server = await serve(agent(quick, *ran.tools))
    answer = await ended(await server.tab(), server, "r1")
    assert ran.inputs == [{}]
    assert [part["toolCallId"] for part in tool_parts(answer)] == ["c1"]


@requirement("fault:MQ-11")
@pytest.mark.parametrize(
    ("deltas", "parts"),
    [
        ([delta("Hi", tool_calls=[])], ["text"]),
        ([delta(""), delta(""), delta("Hi"), delta("")], ["text"]),
        ([delta(""), delta("")], []),
        ([delta(reasoning_content="Hm.")], ["reasoning"]),
        ([], []),
    ],
    ids=["an empty list of calls", "empty deltas", "only empty deltas", "only reasoning", "nothing"],
)
async def test_an_answer_that_says_little_is_one_request_and_leaves_no_empty_text(
    serve: Serve, provider: ProviderServer, model: ChatModel, deltas: Any, parts: list[str]
) -> None:
    provider.script(completion(*deltas))
    server = await serve(agent(model))
    tab = await server.tab()
    await tab.ask("r1", "Go")
    assert (await tab.done("r1"))["outcome"] == "completed"
    assert len(provider.asked) == 1
    answers = [m for m in await server.stored() if m["role"] == "assistant"]
    assert [part["type"] for answer in answers for part in parts_of(answer)] == parts
    assert "text-start" not in [c["type"] for c in chunks_of(tab.frames, "r1")] or "text" in parts


async def test_a_picture_of_a_tool_is_shown_to_the_model_as_a_picture(
    serve: Serve, provider: ProviderServer, model: ChatModel
) -> None:
    @tool
    def shoot() -> bytes:
        """Take a picture."""
        return b"\x89PNG\r\n\x1a\n0"

    provider.script(tool_calls(piece(0, "c1", "shoot", "{}")), completion("Nice."))
    server = await serve(agent(model, shoot))
    await ended(await server.tab(), server, "r1")
    *_, result, picture = shown(provider)
    assert (result["role"], result["tool_call_id"], "base64" in result["content"]) == ("tool", "c1", False)
    urls = [part["image_url"]["url"] for part in picture["content"] if part["type"] == "image_url"]
    assert (picture["role"], urls) == ("user", ["data:image/png;base64,iVBORw0KGgow"])


async def test_the_provider_sees_safe_names_only(serve: Serve, provider: ProviderServer, model: ChatModel) -> None:
    @tool(name="fs.read")
    def read() -> str:
        """Read."""
        return "text"

    provider.script(tool_calls(piece(0, "c1", "fs_read", "{}")), completion("Read."))
    server = await serve(agent(model, read))
    answer = await ended(await server.tab(), server, "r1")
    assert [(part["type"], part["output"]) for part in tool_parts(answer)] == [("tool-fs.read", "text")]
    assert provider.asked[-1].json["tools"][0]["function"]["name"] == "fs_read"
    assert shown(provider)[-2]["tool_calls"][0]["function"]["name"] == "fs_read"


# ── models of one's own ─────────────────────────────────────────────


@requirement("fault:RS-16")
async def test_words_without_a_start_are_kept_and_clients_get_a_start(serve: Serve) -> None:
    loose = [
        chunk({"type": "reasoning-delta", "id": "r1", "delta": "abc"}),
        chunk({"type": "text-delta", "id": "t1", "delta": "hi"}),
    ]
    server = await serve(agent(ScriptedModel([loose])))
    tab = await server.tab()
    await tab.ask("r1", "Go")
    await tab.done("r1")
    assert [c["type"] for c in chunks_of(tab.frames, "r1")][2:-2] == [
        *("reasoning-start", "reasoning-delta"),
        *("text-start", "text-delta"),
        *("text-end", "reasoning-end"),
    ]
    assert [(part["type"], part["text"], part["state"]) for part in parts_of((await server.stored())[1])] == [
        ("reasoning", "abc", "done"),
        ("text", "hi", "done"),
    ]


@requirement("fault:MQ-05", "fault:MQ-06")
async def test_ids_that_repeat_within_a_step_a_turn_and_a_conversation_are_told_apart(serve: Serve) -> None:
    ran = Ran()
    twice = [call("cols", {"table": "a"}, id="x"), call("cols", {"table": "b"}, id="x")]
    model = ScriptedModel([twice, [call("cols", {"table": "c"}, id="x")], say("1."), twice[:1], say("2.")])
    server = await serve(agent(model, *ran.tools))
    tab = await server.tab()
    answers = [await ended(tab, server, request) for request in ("r1", "r2")]
    parts = [part for answer in answers for part in tool_parts(answer)]
    assert sorted(ran.inputs) == ["a", "a", "b", "c"]
    assert [(part["input"]["table"], part["output"]) for part in parts] == [
        (table, f"columns of {table}") for table in "abca"
    ]
    ids = [part["toolCallId"] for part in parts]
    assert (ids[0], len(set(ids))) == ("x", 4)
    chunks = chunks_of(tab.frames, "r1")
    assert [c["toolCallId"] for c in chunks if c["type"] == "tool-input-available"] == ids[:3]
    assert sorted(c["toolCallId"] for c in chunks if c["type"] == "tool-output-available") == sorted(ids[:3])
    for request in model.requests:
        assert strict_provider_errors(request) == []


class Repeats(Think):
    """Calls with the same id again and again, also when it goes on with an answer."""

    ran = Ran()
    model = ScriptedModel([])

    def get_tools(self):
        return self.ran.tools

    @callable
    async def go_on(self) -> str:
        return (await self.continue_last_turn()).status


same = call("cols", {"table": "a"}, id="x")


@requirement("fault:MQ-05")
@pytest.mark.parametrize("reasons", [False, True])
async def test_an_id_that_comes_again_in_a_continuation_or_after_a_restart_is_another_call(
    serve: Serve, reasons: bool
) -> None:
    class Agent(Repeats):
        model = ScriptedModel([same, [think("Hm."), same], say("1."), same, say("2.")])
        send_reasoning = reasons

    server = await serve(Agent)
    tab = await server.tab()
    await ended(tab, server, "r1")
    assert await result_of(tab, "go_on") == "completed"
    await server.stop()

    class Again(Repeats):
        model = ScriptedModel([same, say("3."), same, say("4.")])
        send_reasoning = reasons

    Again.__name__ = "Agent"
    server = await serve(Again)
    tab = await server.tab()
    await ended(tab, server, "r2")
    assert await result_of(tab, "go_on") == "completed"
    ids = [part["toolCallId"] for message in await server.stored() for part in tool_parts(message)]
    assert (len(ids), len(set(ids))) == (5, 5)
    for request in (*Agent.model.requests, *Again.model.requests):
        # A continuation may end in the assistant's words: that is what it goes on with.
        assert not [error for error in strict_provider_errors(request) if "is used" in error]


@pytest.mark.parametrize("hook", ["before_turn", "before_step"])
async def test_an_id_of_what_the_model_is_shown_instead_of_the_conversation_is_taken_as_well(
    serve: Serve, hook: str
) -> None:
    part = {"type": "tool-cols", "toolCallId": "x", "state": "output-available", "input": {}, "output": "old"}
    shown = [user_message("Hi"), {"id": "a", "role": "assistant", "parts": [part]}, user_message("And now?")]

    class Agent(Repeats):
        model = ScriptedModel([same, say("Done.")])

    def replace(self: Any, context: Any) -> Any:
        return TurnConfig(messages=shown) if hook == "before_turn" else StepConfig(messages=shown)

    setattr(Agent, hook, replace)
    server = await serve(Agent)
    (part,) = tool_parts(await ended(await server.tab(), server, "r1"))
    assert part["toolCallId"] != "x"
    assert part["output"] == "columns of a"
    for request in Agent.model.requests:
        assert strict_provider_errors(request) == []


@requirement("fault:MQ-07")
async def test_calls_that_cannot_run_are_answered_and_the_model_goes_on(serve: Serve) -> None:
    ran = Ran()
    broken = [call("nope", id="c1"), call("cols", raw='{"a":', id="c2"), call("cols", {"table": 5}, id="c3")]
    unfinished = chunk({"type": "tool-input-start", "toolCallId": "c4", "toolName": "cols"})
    model = ScriptedModel([[*broken, unfinished], say("sorry")])
    server = await serve(agent(model, *ran.tools))
    answer = await ended(await server.tab(), server, "r1")
    assert ran.inputs == []
    assert [(part["toolCallId"], part["state"]) for part in tool_parts(answer)] == [
        (f"c{n}", "output-error") for n in range(1, 5)
    ]
    assert said([answer]) == ["sorry"]
    model.assert_done()
    stored = await server.stored()
    assert len(stored) == 2


@requirement("fault:MQ-09")
async def test_an_input_that_is_said_again_runs_once(serve: Serve) -> None:
    ran = Ran()
    again = {"type": "tool-input-available", "toolCallId": "c1", "toolName": "cols", "input": {}}
    model = ScriptedModel([[call("cols", {"table": "a"}, id="c1"), chunk(again)], say("Done.")])
    server = await serve(agent(model, *ran.tools))
    answer = await ended(await server.tab(), server, "r1")
    assert ran.inputs == ["a"]
    assert len(tool_parts(answer)) == 1


@requirement("fault:MQ-11")
@pytest.mark.parametrize(
    ("moves", "parts"),
    [([say("")], []), ([say(), say("")], []), ([think("")], []), ([think("Hm.")], ["reasoning"]), ([finish()], [])],
)
async def test_a_model_that_says_nothing_is_asked_once(serve: Serve, moves: Any, parts: list[str]) -> None:
    model = ScriptedModel([moves])
    server = await serve(agent(model))
    tab = await server.tab()
    await tab.ask("r1", "Go")
    assert (await tab.done("r1"))["outcome"] == "completed"
    assert len(model.requests) == 1
    answers = [m for m in await server.stored() if m["role"] == "assistant"]
    assert [part["type"] for answer in answers for part in parts_of(answer)] == parts


@pytest.mark.parametrize(
    ("broken", "text"),
    [
        (chunk({"type": "error", "errorText": "quota"}), "quota"),
        (chunk({"type": "abort"}), "The model broke off its answer."),
        (chunk("text"), "The model scripted streamed a str, which is no chunk."),  # type: ignore[arg-type]
        (chunk({"type": "data-x", "data": object()}), "Something went wrong on the server."),
    ],
)
async def test_an_error_that_a_model_streams_ends_the_turn_and_keeps_what_was_said(
    serve: Serve, log: Any, broken: Any, text: str
) -> None:
    server = await serve(agent(ScriptedModel([[say("Half"), broken], say("Better.")])))
    tab = await server.tab()
    await tab.ask("r1", "Go")
    assert (await tab.done("r1"))["outcome"] == "error"
    assert text in "".join(frame["body"] for frame in tab.of("r1") if frame.get("error"))
    assert said(await server.stored()) == ["Go", "Half"]
    if text.startswith("Something"):
        log.expect("Turn r1 failed")
    assert said([await ended(tab, server, "r2")]) == ["Better."]


@requirement("fault:MQ-13")
async def test_an_output_for_a_call_that_nobody_made_is_ignored(serve: Serve) -> None:
    stray = chunk({"type": "tool-output-available", "toolCallId": "zzz", "output": 1})
    server = await serve(agent(ScriptedModel([[say("Hi"), stray]])))
    tab = await server.tab()
    await tab.ask("r1", "Go")
    assert (await tab.done("r1"))["outcome"] == "completed"
    assert "tool-output-available" not in [c["type"] for c in chunks_of(tab.frames, "r1")]
    assert [part["type"] for part in parts_of((await server.stored())[1])] == ["text"]


@requirement("fault:MQ-16")
async def test_the_text_of_a_turn_is_set_apart_around_a_call(serve: Serve) -> None:
    class Agent(Think):
        model = ScriptedModel([[say("Let me", " look"), call("now")], say("Found", " it")])

        def get_tools(self):
            return Ran().tools

        @callable
        async def talk(self) -> str:
            return (await self.chat("Go")).text

    server = await serve(Agent)
    assert await result_of(await server.tab(), "talk") == "Let me look\n\nFound it"


@requirement("fault:PS-13")
async def test_data_under_one_id_is_kept_once_and_transient_data_not_at_all(serve: Serve) -> None:
    sent: list[dict[str, Any]] = [
        {"type": "data-progress", "id": "p", "data": {"v": 10}},
        {"type": "data-note", "data": "looking", "transient": True},
        {"type": "data-progress", "id": "p", "data": {"v": 90}},
    ]
    server = await serve(agent(ScriptedModel([[*map(chunk, sent), say("Done.")]])))
    tab, other = await server.tab(), await server.tab()
    await tab.ask("r1", "Go")
    for seen in (tab, other):
        await seen.done("r1")
        assert [c for c in chunks_of(seen.frames, "r1") if c["type"].startswith("data-")] == sent
    parts = parts_of((await server.stored())[1])
    assert parts[0] == {"type": "data-progress", "id": "p", "data": {"v": 90}}
    assert [part["type"] for part in parts] == ["data-progress", "text"]


async def test_an_answer_of_nothing_but_transient_data_is_not_kept(serve: Serve) -> None:
    note = chunk({"type": "data-note", "data": "looking", "transient": True})
    server = await serve(agent(ScriptedModel([[note, fail(ModelUnreachable("gone"))], say("Next.")])))
    tab = await server.tab()
    await tab.ask("r1", user_message("Go", "u1"))
    await tab.done("r1")
    assert [message["id"] for message in await server.stored()] == ["u1"]


@requirement("fault:PS-16")
async def test_a_stream_that_breaks_is_never_called_complete(serve: Serve) -> None:
    responses: list[Any] = []
    turns: list[Event] = []

    class Agent(Think):
        model = ScriptedModel([[say("a", "b"), fail(ModelUnreachable("The line broke."))]] * 2)

        def on_chat_response(self, response: ChatResponse) -> None:
            responses.append(response)

        @callable
        async def go(self) -> list[Any]:
            result = await self.save_messages("again")
            return [result.status, result.error, result.message, result.text]

    server = await serve(
        Agent, on_event=lambda event: turns.append(event) if event.type == "chat:turn:finish" else None
    )
    tab = await server.tab()
    await tab.ask("r1", "Go")
    assert (await tab.done("r1"))["outcome"] == "error"
    assert [frame["body"] for frame in tab.of("r1") if frame.get("error")] == ["The line broke."]
    kinds = [c["type"] for c in chunks_of(tab.frames, "r1")]
    assert "finish" not in kinds
    assert "finish-step" not in kinds
    assert await result_of(tab, "go") == ["error", "The line broke.", None, ""]
    assert said(await server.stored()) == ["Go", "ab", "again", "ab"], "what was said is kept"
    assert [response.status for response in responses] == ["error", "error"]
    assert [event.payload["status"] for event in turns] == ["error", "error"]
