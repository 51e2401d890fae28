"""The hooks of a turn, through a real server: what they are told, and what they change."""

import asyncio
from typing import Any

import pytest

from perdure import (
    ChatResponse,
    ModelRejected,
    StepConfig,
    StepContext,
    StepResult,
    Think,
    ToolCallContext,
    ToolCallResult,
    TurnConfig,
    TurnContext,
    allow,
    block,
    callable,
    substitute,
    tool,
)
from perdure.testing import Gate, ScriptedModel, call, fail, finish, pause, say, think
from tests.agent.calls import parts_of, result_of, said, tool_parts
from tests.requirements import requirement
from tests.support import ErrorLog, Serve, agent, chunks_of, user_message

pytestmark = pytest.mark.anyio


@tool
def add(a: int, b: int) -> int:
    """Add."""
    return a + b


@tool
def sub(a: int, b: int) -> int:
    """Subtract."""
    return a - b


ADD = call("add", {"a": 1, "b": 2})


# ── before a turn ───────────────────────────────────────────────────


class Watched(Think):
    """Says what ``before_turn`` is told."""

    system_prompt = "You are watched."
    turns: list[TurnContext]

    def get_tools(self):
        return [add, sub]

    def before_turn(self, ctx: TurnContext):
        self.turns.append(ctx)
        return TurnConfig(system="Something else.")

    @callable
    async def save(self) -> None:
        await self.save_messages("saved")

    @callable
    async def run(self) -> None:
        await self.run_turn("run")

    @callable
    async def talk(self) -> None:
        await self.chat("talk")

    @callable
    async def go_on(self) -> None:
        await self.continue_last_turn()


@requirement("engine:29", "engine:31")
async def test_every_way_into_a_turn_asks_before_it_with_the_class_prompt_and_tools(serve: Serve) -> None:
    model = ScriptedModel([say(str(number)) for number in range(6)])
    turns: list[TurnContext] = []
    server = await serve(type("Agent", (Watched,), {"model": model, "turns": turns}))
    tab = await server.tab()
    question = user_message("Hi")
    await tab.ask("r1", question)
    await tab.done("r1")
    await tab.ask("r2", question, trigger="regenerate-message")
    await tab.done("r2")
    for method in ("save", "run", "talk", "goOn"):
        await result_of(tab, method)

    assert [(turn.trigger, turn.continuation) for turn in turns] == [
        ("ws-chat", False),
        ("ws-chat", False),
        ("programmatic", False),
        ("programmatic", False),
        ("rpc", False),
        ("programmatic", True),
    ]
    assert {turn.system for turn in turns} == {"You are watched."}
    assert all(list(turn.tools) == ["add", "sub"] for turn in turns)
    assert {request.system for request in model.requests} == {"Something else."}
    assert [message["role"] for message in turns[0].messages] == ["user"]
    assert turns[0].request_id == "r1"
    model.assert_done()


@requirement("engine:30")
async def test_what_a_turn_is_given_holds_for_that_turn(serve: Serve) -> None:
    model = ScriptedModel([ADD, ADD, say("After.")])
    configs: list[TurnConfig | None] = [
        TurnConfig(
            max_steps=2,
            active_tools=["add", "unknown"],
            system="not this",
            instructions="Only add.",
            temperature=0.5,
            max_output_tokens=9,
            top_p=0.1,
            seed=7,
            stop_sequences="END",
            tool_choice="required",
            provider_options={"openai_user": "u"},
            message_metadata={"mood": "good"},
        ),
        None,
    ]
    server = await serve(
        agent(model, add, sub, before_turn=lambda self, ctx: configs.pop(0), message_metadata={"mood": "usual"})
    )
    tab = await server.tab()
    await tab.ask("r1", "Hi")
    await tab.done("r1")
    await tab.ask("r2", *(await server.stored()), user_message("Again"))
    await tab.done("r2")

    first, second, third = model.requests
    assert (first.system, first.tools) == ("Only add.", ["add"])
    assert first.settings == second.settings
    assert first.settings == {
        "temperature": 0.5,
        "max_tokens": 9,
        "top_p": 0.1,
        "seed": 7,
        "stop_sequences": ["END"],
        "tool_choice": "required",
        "openai_user": "u",
    }
    assert (third.system, third.tools, third.settings) == ("You are a helpful assistant.", ["add", "sub"], {})
    stored = await server.stored()
    assert [message["metadata"] for message in stored if message["role"] == "assistant"] == [
        {"mood": "good"},
        {"mood": "usual"},
    ]
    assert chunks_of(tab.frames, "r1")[0]["messageMetadata"] == {"mood": "good"}


@requirement("engine:30")
async def test_a_turns_own_repair_finds_what_was_meant(serve: Serve) -> None:
    asked: list[tuple[str, Any, str]] = []

    def mend(tool_name: str, input: Any, error: str) -> tuple[str, dict[str, Any]] | None:
        asked.append((tool_name, input, error))
        return None if tool_name == "nope" else ("add", {"a": 1, "b": 2})

    broken = [call("plus", {"x": 1}), call("add", raw='{"a":'), call("add", {"a": "x"}), call("nope")]
    model = ScriptedModel([broken, say("Done.")])
    server = await serve(agent(model, add, before_turn=lambda self, ctx: TurnConfig(repair_tool_call=mend)))
    tab = await server.tab()
    await tab.ask("r1", "Hi")
    await tab.done("r1")

    parts = tool_parts((await server.stored())[1])
    assert [part.get("output") for part in parts] == [3, 3, 3, None]
    assert "unavailable tool 'nope'" in parts[3]["errorText"]
    # Calls of what is not there are put right before any call runs.
    assert [(name, input) for name, input, _ in asked] == [
        ("plus", {"x": 1}),
        ("add", '{"a":'),
        ("nope", {}),
        ("add", {"a": "x"}),
    ]
    assert "Field required" in asked[3][2]


async def test_the_class_may_repair_and_its_answer_is_what_the_model_sees(serve: Serve) -> None:
    def mend(self: Think, tool_name: str, input: Any, error: str) -> tuple[str, dict[str, Any]]:
        return "add", {"a": 2, "b": 2}

    model = ScriptedModel([[call("plus", {"x": 1}, id="c1")], say("Done.")])
    server = await serve(agent(model, add, repair_tool_call=mend))
    tab = await server.tab()
    await tab.ask("r1", "Hi")
    await tab.done("r1")
    (part,) = tool_parts((await server.stored())[1])
    assert (part["input"], part["output"]) == ({"a": 2, "b": 2}, 4)
    shown = [part for part in model.requests[1].messages[-1]["parts"] if part.get("toolCallId") == "c1"]
    assert shown[0]["output"] == 4


async def test_tools_and_messages_of_one_turn_are_the_models_for_that_turn(serve: Serve) -> None:
    model = ScriptedModel([call("sub", {"a": 3, "b": 1}), say("2."), say("Next.")])
    turns = iter([TurnConfig(tools=[sub], active_tools=[], messages=[user_message("Only this")]), None])
    server = await serve(agent(model, add, before_turn=lambda self, ctx: next(turns)))
    tab = await server.tab()
    await tab.ask("r1", "Hi")
    await tab.done("r1")
    await tab.ask("r2", *(await server.stored()), user_message("More"))
    await tab.done("r2")
    assert [request.tools for request in model.requests] == [["sub"], ["sub"], ["add"]]
    assert [said(request.messages) for request in model.requests[:2]] == [["Only this"], ["Only this", ""]]
    assert tool_parts(dict(model.requests[1].messages[1]))[0]["output"] == 2
    assert said(await server.stored()) == ["Hi", "2.", "More", "Next."]


# ── steps ───────────────────────────────────────────────────────────


@requirement("engine:32", "fault:MQ-12")
@pytest.mark.parametrize(
    ("most", "conditions", "steps"),
    [
        (10, [], 10),
        (3, [], 3),
        (3, [lambda steps: len(steps) == 2], 2),
        (3, [lambda steps: False, lambda steps: steps[-1].called("add")], 1),
        (2, [lambda steps: len(steps) == 5], 2),
        (4, lambda steps: len(steps) == 3, 3),
    ],
)
async def test_a_model_that_calls_for_ever_ends_at_the_first_limit_and_the_next_turn_works(
    serve: Serve, most: int, conditions: Any, steps: int
) -> None:
    model = ScriptedModel([*[ADD] * steps, say("Well.")])
    server = await serve(
        agent(model, add, max_steps=most, before_turn=lambda self, ctx: TurnConfig(stop_when=conditions))
    )
    tab = await server.tab()
    await tab.ask("r1", "Hi")
    assert (await tab.done("r1"))["outcome"] == "completed"
    assert len(model.requests) == steps
    assert chunks_of(tab.frames, "r1")[-1] == {"type": "finish", "finishReason": "tool-calls"}
    assert [part["output"] for part in tool_parts((await server.stored())[1])] == [3] * steps
    await tab.ask("r2", *(await server.stored()), user_message("And?"))
    assert (await tab.done("r2"))["outcome"] == "completed"
    assert said(await server.stored())[-1] == "Well."


@requirement("engine:33")
async def test_before_a_step_the_steps_so_far_are_told_and_the_model_may_change(serve: Serve) -> None:
    seen: list[tuple[int, list[str], int, str]] = []
    other = ScriptedModel([[say("Here."), call("sub", {"a": 3, "b": 1})]], name="other")
    model = ScriptedModel([ADD, say("End.")], name="usual")
    finished: list[StepResult] = []

    class Agent(Think):
        def get_model(self):
            return model

        def get_tools(self):
            return [add, sub]

        async def before_step(self, ctx: StepContext):
            seen.append((ctx.number, [step.finish_reason for step in ctx.steps], len(ctx.messages), ctx.model.name))
            if ctx.number == 1:
                assert ctx.steps[0].tool_calls[0]["output"] == 3
                return StepConfig(
                    model=other, system="Other.", active_tools=["sub"], tool_choice="auto", messages=ctx.messages[-1:]
                )
            return None

        def on_step_finish(self, step: StepResult):
            finished.append(step)

    server = await serve(Agent)
    tab = await server.tab()
    await tab.ask("r1", "Hi")
    assert (await tab.done("r1"))["outcome"] == "completed"
    assert seen == [
        (0, [], 1, "usual"),
        (1, ["tool-calls"], 2, "usual"),
        (2, ["tool-calls", "tool-calls"], 2, "usual"),
    ]
    (request,) = other.requests
    assert (request.system, request.tools, request.settings) == ("Other.", ["sub"], {"tool_choice": "auto"})
    assert [message["role"] for message in request.messages] == ["assistant"]
    assert (model.requests[1].system, model.requests[1].tools) == ("You are a helpful assistant.", ["add", "sub"])
    assert [(step.number, step.finish_reason, step.text) for step in finished] == [
        (0, "tool-calls", ""),
        (1, "tool-calls", "Here."),
        (2, "stop", "End."),
    ]


async def test_every_chunk_of_the_model_is_told_and_none_of_the_tools(serve: Serve) -> None:
    kinds: list[str] = []

    async def hear(self: Think, chunk: dict[str, Any]) -> None:
        kinds.append(chunk["type"])

    model = ScriptedModel([[say("a"), ADD], say("b")])
    server = await serve(agent(model, add, on_chunk=hear))
    tab = await server.tab()
    await tab.ask("r1", "Hi")
    await tab.done("r1")
    text = ["text-start", "text-delta", "text-end"]
    assert kinds == [*text, "tool-input-start", "tool-input-delta", "tool-input-available", *text]


# ── tool calls ──────────────────────────────────────────────────────


class Calls:
    """A tool that counts, and the hooks around it."""

    def __init__(self, decide: Any) -> None:
        self.ran: list[dict[str, Any]] = []
        self.asked: list[ToolCallContext] = []
        self.results: list[ToolCallResult] = []
        self._decide = decide
        self.model = ScriptedModel([call("mul", {"a": 2, "b": 3}, id="c1"), say("Done.")])

    def agent(self) -> type[Think]:
        @tool
        async def mul(a: int, b: int) -> int:
            """Multiply."""
            self.ran.append({"a": a, "b": b})
            return a * b

        async def before(agent: Think, ctx: ToolCallContext) -> Any:
            self.asked.append(ctx)
            return self._decide(ctx)

        def after(agent: Think, result: ToolCallResult) -> None:
            self.results.append(result)

        return agent(self.model, mul, before_tool_call=before, after_tool_call=after)

    @property
    def shown(self) -> dict[str, Any]:
        """The call, as the model was shown it."""
        return next(part for part in self.model.requests[1].messages[-1]["parts"] if part.get("toolCallId") == "c1")


async def decided(serve: Serve, decide: Any) -> Calls:
    calls = Calls(decide)
    server = await serve(calls.agent())
    tab = await server.tab()
    await tab.ask("r1", "Hi")
    assert (await tab.done("r1"))["outcome"] == "completed"
    return calls


@requirement("engine:34")
@pytest.mark.parametrize("decision", [None, allow()])
async def test_a_call_that_is_allowed_runs_once(serve: Serve, decision: Any) -> None:
    calls = await decided(serve, lambda ctx: decision)
    assert calls.ran == [{"a": 2, "b": 3}]
    (asked,), (result,) = calls.asked, calls.results
    assert (asked.request_id, asked.tool_call_id, asked.tool_name) == ("r1", "c1", "mul")
    assert asked.input == {"a": 2, "b": 3}
    assert (result.success, result.output, result.error) == (True, 6, None)
    assert result.duration_ms >= 0
    assert calls.shown["output"] == 6


@requirement("engine:34")
async def test_a_call_may_be_allowed_with_other_input_and_keeps_what_the_model_wrote(serve: Serve) -> None:
    def decide(ctx: ToolCallContext) -> Any:
        ctx.input["a"] = 5  # type: ignore[index]
        return allow(ctx.input)

    calls = await decided(serve, decide)
    assert calls.ran == [{"a": 5, "b": 3}]
    assert calls.results[0].input == {"a": 2, "b": 3}
    assert (calls.shown["input"], calls.shown["output"]) == ({"a": 2, "b": 3}, 15)


@requirement("engine:35")
@pytest.mark.parametrize(
    ("decision", "output"),
    [
        (block("Not on Sundays."), "Not on Sundays."),
        (block(), 'Tool "mul" was blocked by before_tool_call.'),
        (substitute({"cached": {6}}), {"cached": [6]}),
        (substitute(None), None),
    ],
)
async def test_a_call_that_is_blocked_or_substituted_does_not_run(serve: Serve, decision: Any, output: Any) -> None:
    calls = await decided(serve, lambda ctx: decision)
    assert calls.ran == []
    assert (calls.shown["state"], calls.shown["output"]) == ("output-available", output)
    assert (calls.results[0].success, calls.results[0].output) == (True, output)


@requirement("engine:36")
async def test_a_hook_that_raises_before_a_call_is_the_calls_error(serve: Serve) -> None:
    def decide(ctx: ToolCallContext) -> Any:
        raise LookupError("no quota left")

    calls = await decided(serve, decide)
    assert calls.ran == []
    assert (calls.shown["state"], calls.shown["errorText"]) == ("output-error", "no quota left")
    assert calls.results[0].success is False
    assert isinstance(calls.results[0].error, LookupError)


async def test_a_hook_that_fails_after_a_call_ends_the_turn_but_not_the_other_calls(
    serve: Serve, log: ErrorLog
) -> None:
    done = asyncio.Event()
    failed = asyncio.Event()

    @tool
    async def quick() -> str:
        """Quick."""
        return "quick"

    @tool
    async def slow() -> str:
        """Slow."""
        await failed.wait()
        done.set()
        return "slow"

    def after(self: Think, result: ToolCallResult) -> None:
        if result.tool_name == "quick":
            failed.set()
            raise LookupError("no audit log")

    model = ScriptedModel([[call("quick"), call("slow")]])
    errors: list[Exception] = []
    server = await serve(
        agent(model, quick, slow, after_tool_call=after, on_chat_error=lambda self, error, ctx: errors.append(error))
    )
    tab = await server.tab()
    await tab.ask("r1", "Hi")
    assert (await tab.done("r1"))["outcome"] == "error"
    assert done.is_set()
    assert [part["output"] for part in tool_parts((await server.stored())[1])] == ["quick", "slow"]
    assert [type(error) for error in errors] == [LookupError]
    log.expect("Turn r1 failed")


# ── reasoning ───────────────────────────────────────────────────────


@requirement("engine:39")
@pytest.mark.parametrize(
    ("of_class", "of_turn", "sent"),
    [(True, None, True), (False, None, False), (True, False, False), (False, True, True)],
)
@pytest.mark.parametrize("rpc", [False, True], ids=["over WebSocket", "over RPC"])
async def test_reasoning_is_sent_unless_class_or_turn_say_no(
    serve: Serve, of_class: bool, of_turn: bool | None, sent: bool, rpc: bool
) -> None:
    heard: list[str] = []

    class Agent(Think):
        model = ScriptedModel([[think("Hm."), ADD], [think("So."), say("3.")]])
        send_reasoning = of_class

        def get_tools(self):
            return [add]

        def before_turn(self, ctx: TurnContext):
            return TurnConfig(send_reasoning=of_turn)

        @callable
        async def talk(self) -> str:
            return (await self.chat("Hi", lambda chunk: heard.append(chunk["type"]))).request_id

    server = await serve(Agent)
    tab = await server.tab()
    request = "r1"
    if rpc:
        request = await result_of(tab, "talk")
    else:
        await tab.ask(request, "Hi")
    await tab.done(request)
    kinds = [chunk["type"] for chunk in chunks_of(tab.frames, request)]
    assert ("reasoning-delta" in kinds) is sent
    assert kinds.count("text-delta") == 1
    stored = parts_of((await server.stored())[1])
    assert [part["type"] for part in stored] == [
        *(["reasoning"] if sent else []),
        "tool-add",
        *(["reasoning"] if sent else []),
        "text",
    ]
    if rpc:
        assert heard == kinds
    # The model itself is shown its reasoning: some refuse a step whose calls have lost it.
    assert [part["type"] for part in parts_of(dict(Agent.model.requests[1].messages[-1]))] == ["reasoning", "tool-add"]


# ── after a turn ────────────────────────────────────────────────────


@requirement("engine:41")
async def test_the_response_hook_fires_once_for_every_turn_that_began_to_answer(serve: Serve) -> None:
    responses: list[ChatResponse] = []
    gate = Gate()
    model = ScriptedModel(
        [
            say("Fine."),
            [say("Half"), fail(ModelRejected("nope"))],
            [say("Part"), pause(gate), say("never")],
            [finish("stop")],
        ]
    )
    server = await serve(agent(model, on_chat_response=lambda self, response: responses.append(response)))
    tab = await server.tab()
    for request in ("completed", "error", "aborted", "empty"):
        await tab.ask(request, *(await server.stored()), user_message(request))
        if request == "aborted":
            await gate.reached()
            await tab.cancel(request)
        await tab.done(request)
    await tab.settle()
    assert [(r.request_id, r.status, said([dict(r.message)])[0], r.error) for r in responses] == [
        ("completed", "completed", "Fine.", None),
        ("error", "error", "Half", "nope"),
        ("aborted", "aborted", "Part", None),
        ("empty", "completed", "", None),
    ]
    stored = await server.stored()
    assert [m["id"] for m in stored if m["role"] == "assistant"] == [r.message["id"] for r in responses[:3]]


@requirement("engine:41")
async def test_the_next_turn_waits_for_the_response_hook_and_none_is_lost(serve: Serve) -> None:
    entered, release = asyncio.Event(), asyncio.Event()
    order: list[str] = []

    async def hook(self: Think, response: ChatResponse) -> None:
        order.append(f"hook {response.request_id}")
        if response.request_id == "r1":
            entered.set()
            await release.wait()
        order.append(f"over {response.request_id}")

    class Told(ScriptedModel):
        def stream(self, request: Any) -> Any:
            order.append("asked")
            return super().stream(request)

    server = await serve(agent(Told([say("1"), say("2"), say("3")]), on_chat_response=hook))
    tab = await server.tab()
    await tab.ask("r1", "First")
    await entered.wait()
    await tab.ask("r2", "Second")
    await tab.ask("r3", "Third")
    await tab.settle()
    assert order == ["asked", "hook r1"]
    release.set()
    await tab.done("r3")
    await tab.settle()
    assert order == [
        *("asked", "hook r1", "over r1"),
        *("asked", "hook r2", "over r2"),
        *("asked", "hook r3", "over r3"),
    ]


async def test_a_response_hook_that_fails_is_logged_and_changes_nothing(serve: Serve, log: ErrorLog) -> None:
    def hook(self: Think, response: ChatResponse) -> None:
        raise LookupError("no analytics")

    server = await serve(agent(ScriptedModel([say("1"), say("2")]), on_chat_response=hook))
    tab = await server.tab()
    for number in (1, 2):
        await tab.ask(f"r{number}", *(await server.stored()), user_message("Hi"))
        assert (await tab.done(f"r{number}"))["outcome"] == "completed"
    await tab.settle()
    log.expect("on_chat_response failed for turn r1")
    log.expect("on_chat_response failed for turn r2")


@requirement("engine:92", "protocol:52")
async def test_hooks_read_the_fields_of_the_request_and_one_without_has_none(serve: Serve) -> None:
    bodies: list[Any] = []
    server = await serve(
        agent(ScriptedModel([say("1"), say("2")]), before_turn=lambda self, ctx: bodies.append(dict(ctx.body)))
    )
    tab = await server.tab()
    await tab.ask("r1", "First", plan="pro", deep={"a": [1, None]}, clientTools=[])
    await tab.done("r1")
    await tab.ask("r2", *(await server.stored()), user_message("Second"))
    await tab.done("r2")
    assert bodies == [{"plan": "pro", "deep": {"a": [1, None]}}, {}]


# ── errors ──────────────────────────────────────────────────────────


async def test_the_application_names_errors_and_says_what_people_are_shown(serve: Serve) -> None:
    told: list[tuple[str, str, str | None]] = []

    def classify(self: Think, error: Exception, ctx: Any) -> str:
        return "rate_limit" if "429" in str(error) else "other"

    async def explain(self: Think, error: Exception, ctx: Any) -> str:
        told.append((ctx.request_id, ctx.stage, ctx.classification))
        return "Come back later."

    model = ScriptedModel([[say("a"), fail(ModelRejected("429"))]])
    server = await serve(agent(model, classify_chat_error=classify, on_chat_error=explain))
    tab = await server.tab()
    await tab.ask("r1", "Hi")
    await tab.done("r1")
    assert [frame["body"] for frame in tab.of("r1") if frame.get("error")] == ["Come back later."]
    assert told == [("r1", "stream", "rate_limit")]


@pytest.mark.parametrize("broken", ["classify_chat_error", "on_chat_error"])
async def test_an_error_hook_that_fails_leaves_the_usual_text(serve: Serve, log: ErrorLog, broken: str) -> None:
    def hook(self: Think, error: Exception, ctx: Any) -> str:
        raise LookupError("broken")

    model = ScriptedModel([[fail(ModelRejected("nope"))], say("Better.")])
    server = await serve(agent(model, **{broken: hook}))
    tab = await server.tab()
    await tab.ask("r1", "Hi")
    await tab.done("r1")
    assert [frame["body"] for frame in tab.of("r1") if frame.get("error")] == ["nope"]
    log.expect("The hooks for errors failed for turn r1")


@requirement("engine:42")
async def test_an_error_in_the_stream_is_an_event_over_both_ways_in(serve: Serve) -> None:
    events: list[Any] = []

    class Agent(Think):
        model = ScriptedModel([[say("Half"), fail(ModelRejected("nope"))]] * 2)

        @callable
        async def talk(self) -> str:
            return (await self.save_messages("Hi")).status

    server = await serve(Agent, on_event=events.append)
    tab = await server.tab()
    await tab.ask("r1", "Hi")
    assert (await tab.done("r1"))["outcome"] == "error"
    assert await result_of(tab, "talk") == "error"
    failed = [event for event in events if event.type == "chat:request:failed"]
    assert [(event.payload["stage"], event.payload["error"]) for event in failed] == [("stream", "nope")] * 2
    assert said(await server.stored()) == ["Hi", "Half", "Hi", "Half"]
