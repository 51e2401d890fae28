"""Turns that the server's own code asks for, seen from the code and from a connected tab."""

import asyncio
from collections.abc import Sequence
from typing import Any

import pytest

from perdure import BadRequest, ModelRejected, NestedTurn, Think, TurnConfig, TurnContext, TurnResult, callable, tool
from perdure.testing import Gate, ScriptedModel, call, fail, pause, say, strict_provider_errors
from tests.agent.calls import call_of, error_of, parts_of, result_of, said
from tests.requirements import requirement
from tests.support import ErrorLog, Serve, Tab, agent, chunks_of, user_message

pytestmark = pytest.mark.anyio


def running(agent: type[Think], **methods: Any) -> type[Think]:
    """The class with these methods for clients to call."""
    return type("Agent", (agent,), {name: callable(method) for name, method in methods.items()})


def snapshots(tab: Tab) -> list[list[str]]:
    """The texts of each conversation that a tab was sent after it came."""
    return [said(f["messages"]) for f in tab.frames if f["type"] == "cf_agent_chat_messages" and not f.get("connect")]


# ── save_messages ───────────────────────────────────────────────────


@requirement("protocol:57")
async def test_saving_messages_answers_them_in_every_tab(serve: Serve) -> None:
    async def start(self: Think) -> list[Any]:
        result = await self.save_messages("hi")
        assert result.message is not None
        return [result.request_id, result.status, result.text, result.message["id"]]

    server = await serve(running(agent(ScriptedModel([[say("hello ", "there")]])), start=start))
    tab, other = await server.tab(), await server.tab()
    await tab.opened()
    await other.opened()
    request, status, text, message = await result_of(tab, "start")
    assert (status, text) == ("completed", "hello there")
    for seen in (tab, other):
        await seen.done(request)
        assert snapshots(seen) == [["hi"], ["hi", "hello there"]]
        chunks = chunks_of(seen.frames, request)
        assert chunks[0] == {"type": "start", "messageId": message}
        kinds = [(f["type"], f.get("done")) for f in seen.frames if f["type"] != "rpc"][3:]
        snapshot, chunk = ("cf_agent_chat_messages", None), ("cf_agent_use_chat_response", False)
        assert kinds == [snapshot, *[chunk] * len(chunks), snapshot, ("cf_agent_use_chat_response", True)]


@requirement("engine:10")
async def test_saving_nothing_answers_what_is_there(serve: Serve) -> None:
    async def start(self: Think) -> str:
        await self.add_messages("question")
        return (await self.save_messages([])).text

    model = ScriptedModel([say("answer")])
    server = await serve(running(agent(model), start=start))
    assert await result_of(await server.tab(), "start") == "answer"
    assert said(model.requests[0].messages) == ["question"]


@pytest.mark.parametrize("nothing", [[], None, lambda messages: []])
async def test_saving_nothing_in_an_empty_conversation_asks_no_model(serve: Serve, nothing: Any) -> None:
    async def start(self: Think) -> str:
        return (await self.save_messages(nothing)).status

    model = ScriptedModel([say("answer")])
    server = await serve(running(agent(model), start=start))
    tab = await server.tab()
    assert await result_of(tab, "start") == "skipped"
    assert model.requests == []
    assert await server.stored() == []
    await tab.ask("r1", "Hi")
    assert (await tab.done("r1"))["outcome"] == "completed"


@requirement("engine:21")
async def test_a_function_sees_the_conversation_as_it_is_when_its_turn_starts(serve: Serve) -> None:
    gate, seen = Gate(), []

    async def start(self: Think) -> str:
        async def follow(messages: Sequence[Any]) -> str:
            seen.append(said(messages))
            return f"after {len(messages)}"

        return (await self.save_messages(follow)).status

    server = await serve(running(agent(ScriptedModel([[pause(gate), say("one")], say("two")])), start=start))
    tab = await server.tab()
    await tab.ask("r1", "first")
    await gate.reached()
    waiting = asyncio.create_task(result_of(tab, "start"))
    await tab.settle()
    assert seen == []
    gate.open()
    assert await waiting == "completed"
    assert seen == [["first", "one"]]
    assert said(await server.stored()) == ["first", "one", "after 2", "two"]


@requirement("engine:20")
@pytest.mark.parametrize("when", ["before", "while it waits", "in mid-stream", "too late"])
async def test_a_signal_stops_the_turn_and_the_messages_are_stored(serve: Serve, when: str) -> None:
    gate, stop, results = Gate(), asyncio.Event(), []
    model = ScriptedModel([[say("first"), pause(gate), say("!")], [say("second"), pause(gate), say("!")]])

    async def start(self: Think) -> str:
        results.append(await self.save_messages("saved", signal=stop))
        return results[0].status

    server = await serve(running(agent(model), start=start))
    tab = await server.tab()
    await tab.opened()
    if when in {"before", "while it waits"}:
        await tab.ask("r1", "asked")
        await gate.reached()
    if when == "before":
        stop.set()
    reply = asyncio.create_task(result_of(tab, "start"))
    if when == "in mid-stream":
        await gate.reached()
        stop.set()
    await tab.settle()
    if when == "while it waits":
        stop.set()
    if when != "in mid-stream":
        gate.open()
    assert await reply == ("completed" if when == "too late" else "aborted")
    if when == "too late":
        stop.set()
    await tab.settle()

    stored = said(await server.stored())
    assert (
        stored
        == {
            "before": ["asked", "first!", "saved"],
            "while it waits": ["asked", "first!", "saved"],
            "in mid-stream": ["saved", "first"],
            "too late": ["saved", "first!"],
        }[when]
    )
    assert len(model.requests) == 1
    assert (await tab.done(results[0].request_id))["outcome"] == ("completed" if when == "too late" else "aborted")
    assert not [task for task in asyncio.all_tasks() if "_watch" in repr(task.get_coro())]


@pytest.mark.parametrize("how", ["timeout", "cancel"])
async def test_a_wait_that_is_given_up_stops_the_turn(serve: Serve, how: str) -> None:
    gate, ended = Gate(), []

    async def start(self: Think) -> str:
        waiting = asyncio.create_task(self.save_messages("go"))
        await gate.reached()
        try:
            if how == "cancel":
                waiting.cancel()
                await waiting
            async with asyncio.timeout(None) as patience:
                patience.reschedule(asyncio.get_running_loop().time())
                await waiting
        except (TimeoutError, asyncio.CancelledError) as error:
            ended.append(type(error))
        return "on"

    model = ScriptedModel([[say("half"), pause(gate), say("never")], say("next")])
    server = await serve(running(agent(model), start=start))
    tab = await server.tab()
    assert await result_of(tab, "start") == "on"
    await tab.seen(lambda frame: frame.get("outcome") == "aborted")
    assert ended == [TimeoutError if how == "timeout" else asyncio.CancelledError]
    assert model.requests[0].outcome == "closed"
    await tab.ask("r1", *(await server.stored()), user_message("more"))
    assert (await tab.done("r1"))["outcome"] == "completed"
    assert said(await server.stored()) == ["go", "half", "more", "next"]


async def test_a_function_that_never_gives_its_messages_can_be_stopped(serve: Serve) -> None:
    entered = asyncio.Event()

    async def start(self: Think) -> str:
        async def never(messages: Sequence[Any]) -> str:
            entered.set()
            await asyncio.Event().wait()
            return "never"

        return (await self.save_messages(never)).status

    async def stop(self: Think) -> None:
        await entered.wait()
        self.cancel_all_chats()

    server = await serve(running(agent(ScriptedModel([])), start=start, stop=stop))
    tab = await server.tab()
    waiting = asyncio.create_task(result_of(tab, "start"))
    await call_of(tab, "stop")
    assert await waiting == "aborted"
    assert await server.stored() == []


@pytest.mark.parametrize("cleared", [False, True])
async def test_messages_found_when_the_turn_is_stopped_or_cleared_are_not_added(serve: Serve, cleared: bool) -> None:
    entered, found = asyncio.Event(), asyncio.Event()

    async def start(self: Think) -> str:
        async def find(messages: Sequence[Any]) -> str:
            entered.set()
            await found.wait()
            return "found"

        return (await self.save_messages(find)).status

    async def stop(self: Think) -> None:
        await entered.wait()
        found.set()
        if cleared:
            await self.clear_messages()
        else:
            self.cancel_all_chats()

    server = await serve(running(agent(ScriptedModel([])), start=start, stop=stop))
    tab = await server.tab()
    waiting = asyncio.create_task(result_of(tab, "start"))
    await call_of(tab, "stop")
    assert await waiting == "aborted"
    assert await server.stored() == []


async def test_a_turn_that_is_cleared_before_it_starts_leaves_nothing(serve: Serve) -> None:
    async def start(self: Think) -> str:
        result, _ = await asyncio.gather(self.save_messages("gone"), self.clear_messages())
        return result.status

    model = ScriptedModel([say("next")])
    server = await serve(running(agent(model), start=start))
    tab = await server.tab()
    assert await result_of(tab, "start") == "skipped"
    assert await server.stored() == []


@pytest.mark.parametrize(
    ("messages", "problem"),
    [
        (5, "not int"),
        ([5], "A message is int"),
        ({"role": "user"}, "parts"),
        ({"role": "boss", "parts": []}, "role"),
        ({"role": "user", "parts": ["text"]}, "parts"),
        ({"id": 5, "role": "user", "parts": []}, "id"),
        ({"role": "user", "parts": [{"type": "text", "text": object()}]}, "no JSON form"),
    ],
)
async def test_messages_that_are_none_are_refused_before_anything_happens(
    serve: Serve, messages: Any, problem: str
) -> None:
    async def start(self: Think) -> str:
        for give in (self.save_messages, self.add_messages, self.run_turn, self.chat):
            with pytest.raises(BadRequest, match=problem):
                await give(messages)
        return "refused"

    server = await serve(running(agent(ScriptedModel([])), start=start))
    tab = await server.tab()
    await tab.opened()
    assert await result_of(tab, "start") == "refused"
    assert tab.kinds(3) == ["rpc"]


async def test_a_function_that_gives_no_messages_fails_its_turn_with_a_clear_text(serve: Serve) -> None:
    async def start(self: Think) -> str | None:
        return (await self.save_messages(lambda messages: 5)).error

    server = await serve(running(agent(ScriptedModel([])), start=start))
    error = await result_of(await server.tab(), "start")
    assert error == "Messages are a text, a UI message, or a list of UI messages; not int."


# ── run_turn ────────────────────────────────────────────────────────


@requirement("engine:9")
@pytest.mark.parametrize("nothing", ["", []])
async def test_a_turn_on_nothing_is_skipped_without_a_trace(serve: Serve, nothing: Any) -> None:
    events: list[str] = []

    async def start(self: Think) -> list[Any]:
        result = await self.run_turn(nothing)
        return [result.status, result.request_id, result.continuation]

    server = await serve(
        running(agent(ScriptedModel([])), start=start), on_event=lambda event: events.append(event.type)
    )
    tab = await server.tab()
    await tab.opened()
    assert await result_of(tab, "start") == ["skipped", "", False]
    assert tab.kinds(3) == ["rpc"]
    assert not [event for event in events if event.startswith("chat:")]


@requirement("engine:12")
async def test_combinations_that_do_not_fit_raise_before_any_work(serve: Serve) -> None:
    async def start(self: Think) -> str:
        wrong: list[dict[str, Any]] = [
            {},
            {"input": "x", "continuation": True},
            {"continuation": True, "callback": print},
            {"callback": print},
            {"input": "x", "callback": 5},
            {"input": "", "callback": 5},
        ]
        for options in wrong:
            with pytest.raises(TypeError):
                await self.run_turn(**options)
        with pytest.raises(TypeError):
            await self.run_turn("x", mode="zzz")  # type: ignore[call-arg]
        return "raised"

    server = await serve(running(agent(ScriptedModel([])), start=start))
    tab = await server.tab()
    await tab.opened()
    assert await result_of(tab, "start") == "raised"
    assert tab.kinds(3) == ["rpc"]


@requirement("engine:7", "engine:8")
async def test_turns_asked_for_side_by_side_run_one_after_the_other(serve: Serve) -> None:
    events: list[tuple[str, str]] = []
    gate = Gate()

    async def start(self: Think) -> list[str]:
        results = await asyncio.gather(*(self.run_turn(text) for text in ("a", "b", "c")))
        return [result.text for result in results]

    model = ScriptedModel([[pause(gate), say("A")], say("B"), say("C")])

    def hear(event: Any) -> None:
        if event.type.startswith("chat:turn"):
            events.append((event.type, event.payload["requestId"]))
            assert "channel" not in event.payload

    server = await serve(running(agent(model), start=start), on_event=hear)
    tab = await server.tab()
    waiting = asyncio.create_task(result_of(tab, "start"))
    await gate.reached()
    assert len(model.requests) == 1
    gate.open()
    assert await waiting == ["A", "B", "C"]
    assert said(await server.stored()) == ["a", "A", "b", "B", "c", "C"]
    await tab.settle()
    ids = [request for kind, request in events if kind == "chat:turn:start"]
    assert events == [(kind, id) for id in ids for kind in ("chat:turn:start", "chat:turn:finish")]
    assert len(set(ids)) == 3


# ── continue_last_turn ──────────────────────────────────────────────


@requirement("engine:26")
async def test_a_continuation_extends_the_last_answer(serve: Serve) -> None:
    model = ScriptedModel([say("one"), say(" two")])
    turns: list[tuple[bool, Any]] = []

    async def more(self: Think) -> list[Any]:
        result = await self.continue_last_turn({"plan": "pro"})
        return [result.continuation, result.status, result.text]

    def before(self: Think, ctx: TurnContext) -> None:
        turns.append((ctx.continuation, dict(ctx.body)))

    server = await serve(running(agent(model, before_turn=before), more=more))
    tab = await server.tab()
    await tab.ask("r1", "count")
    await tab.done("r1")
    assert await result_of(tab, "more") == [True, "completed", "one two"]
    assert turns == [(False, {}), (True, {"plan": "pro"})]
    stored = await server.stored()
    assert [m["role"] for m in stored] == ["user", "assistant"]
    assert said(stored)[1] == "one two"
    # The model is asked to go on by an item that nobody else sees.
    assert strict_provider_errors(model.requests[1]) == []
    assert [m["role"] for m in model.requests[1].messages] == ["user", "assistant", "user"]
    continued = [frame for frame in tab.frames if frame.get("continuation")]
    assert continued
    assert all(frame["id"] == continued[0]["id"] for frame in continued)
    assert "messageId" not in chunks_of(tab.frames, continued[0]["id"])[0]


@requirement("engine:26")
async def test_a_continuation_can_be_stopped_by_a_signal(serve: Serve) -> None:
    gate, stop = Gate(), asyncio.Event()

    async def more(self: Think) -> str:
        return (await self.continue_last_turn(signal=stop)).status

    server = await serve(running(agent(ScriptedModel([say("one"), [say(" two"), pause(gate)]])), more=more))
    tab = await server.tab()
    await tab.ask("r1", "count")
    await tab.done("r1")
    waiting = asyncio.create_task(result_of(tab, "more"))
    await gate.reached()
    stop.set()
    assert await waiting == "aborted"
    assert said(await server.stored()) == ["count", "one two"]


@requirement("engine:13")
async def test_a_continuation_of_nothing_is_skipped(serve: Serve) -> None:
    async def more(self: Think) -> list[str]:
        first = await self.continue_last_turn()
        await self.add_messages("a question")
        second = await self.run_turn(continuation=True)
        return [first.status, second.status]

    server = await serve(running(agent(ScriptedModel([])), more=more))
    assert await result_of(await server.tab(), "more") == ["skipped", "skipped"]
    assert said(await server.stored()) == ["a question"]


# ── inside a turn ───────────────────────────────────────────────────


@requirement("engine:6", "fault:CO-10")
@pytest.mark.parametrize("way", ["save_messages", "run_turn", "chat", "continue_last_turn", "stream"])
async def test_waiting_for_a_turn_from_inside_a_turn_raises_instead_of_hanging(serve: Serve, way: str) -> None:
    seen: list[BaseException] = []

    class Agent(Think):
        model = ScriptedModel([[call("again")], [say("ok")]])

        @tool
        async def again(self) -> str:
            """Ask again."""
            try:
                match way:
                    case "continue_last_turn":
                        await self.continue_last_turn()
                    case "stream":
                        async for _ in self.stream("inner"):
                            pass
                    case _:
                        await getattr(self, way)("inner")
            except NestedTurn as error:
                seen.append(error)
                raise
            return "no"

        def get_tools(self):
            return [self.again]

    server = await serve(Agent)
    tab = await server.tab()
    await tab.ask("r1", "go")
    assert (await tab.done("r1"))["outcome"] == "completed"
    assert len(seen) == 1
    assert f"{way}()" in str(seen[0])
    assert said(await server.stored()) == ["go", "ok"]


@requirement("engine:6", "engine:23", "fault:CO-11")
async def test_messages_added_from_a_tool_are_stored_during_the_turn_and_stand_before_the_answer(serve: Serve) -> None:
    gate = Gate()

    class Agent(Think):
        model = ScriptedModel([[call("note")], [pause(gate), say("done")]])

        @tool
        async def note(self) -> str:
            """Note."""
            await self.add_messages("noted")
            return "ok"

        def get_tools(self):
            return [self.note]

    server = await serve(Agent)
    tab = await server.tab()
    await tab.ask("r1", "go")
    await gate.reached()
    assert said(await server.stored()) == ["go", "noted"]
    assert snapshots(tab) == []
    gate.open()
    await tab.done("r1")
    assert said(await server.stored()) == ["go", "noted", "done"]
    assert snapshots(tab) == [["go", "noted", "done"]]


# ── messages without a turn ─────────────────────────────────────────


def message(identifier: str, text: str, role: str = "user") -> dict[str, Any]:
    return {"id": identifier, "role": role, "parts": [{"type": "text", "text": text}]}


@requirement("engine:22")
async def test_adding_messages_starts_no_turn(serve: Serve) -> None:
    async def add(self: Think) -> None:
        await self.add_messages([message("u1", "one"), message("a1", "two", "assistant")])
        await self.add_messages([message("u1", "other"), message("u2", "three")])  # u1 is known: left alone
        await self.add_messages(lambda messages: message("u3", f"after {len(messages)}"))
        await self.add_messages(message("a1", "two, new", "assistant"), mode="upsert")
        await self.add_messages([])

    model = ScriptedModel([])
    server = await serve(running(agent(model), add=add))
    tab = await server.tab()
    await tab.opened()
    await call_of(tab, "add")
    assert said(await server.stored()) == ["one", "two, new", "three", "after 3"]
    assert snapshots(tab) == [
        ["one", "two"],
        ["one", "two", "three"],
        ["one", "two", "three", "after 3"],
        ["one", "two, new", "three", "after 3"],
    ]
    assert model.requests == []


@requirement("engine:22")
async def test_messages_may_follow_an_earlier_one_that_is_there(serve: Serve) -> None:
    async def add(self: Think) -> list[str]:
        await self.add_messages([message("u1", "one"), message("a1", "two", "assistant")])
        await self.add_messages([message("a2", "other", "assistant"), message("u2", "more")], parent="u1")
        return said(self.messages)

    async def lost(self: Think) -> None:
        await self.add_messages("lost", parent="zzz")

    server = await serve(running(agent(ScriptedModel([])), add=add, lost=lost))
    tab = await server.tab()
    assert await result_of(tab, "add") == ["one", "other", "more"]
    assert await error_of(tab, "lost") == "There is no message 'zzz' that the new one could follow."
    assert said(await server.stored()) == ["one", "other", "more"]


@requirement("engine:24")
async def test_messages_are_a_copy_and_what_is_written_shows_in_them(serve: Serve) -> None:
    async def read(self: Think) -> list[list[str]]:
        seen: list[list[str]] = []
        await self.add_messages(message("u1", "one"))
        copied = await self.get_messages()
        copied[0]["parts"][0]["text"] = "changed"
        copied.clear()
        seen.append(said(await self.get_messages()))
        await self.add_messages(message("u1", "new"), mode="upsert")
        seen.append(said(await self.get_messages()))
        return seen

    server = await serve(running(agent(ScriptedModel([])), read=read))
    assert await result_of(await server.tab(), "read") == [["one"], ["new"]]
    assert said(await server.stored()) == ["new"]


@requirement("engine:25", "protocol:108")
async def test_clearing_in_code_is_told_to_everybody_and_stops_what_runs(serve: Serve) -> None:
    gate = Gate()

    async def forget(self: Think) -> int:
        await self.clear_messages()
        return len(self.messages)

    model = ScriptedModel([[say("half"), pause(gate)], say("fresh")])
    server = await serve(running(agent(model), forget=forget))
    tab, other = await server.tab(), await server.tab()
    await tab.ask("r1", "go")
    await gate.reached()
    assert await result_of(tab, "forget") == 0
    for seen in (tab, other):
        await seen.seen(lambda frame: frame["type"] == "cf_agent_chat_clear")
    assert await server.stored() == []
    await tab.ask("r2", "again")
    assert (await tab.done("r2"))["outcome"] == "completed"
    assert said(await server.stored()) == ["again", "fresh"]


# ── results ─────────────────────────────────────────────────────────


@requirement("fault:MQ-16")
@pytest.mark.parametrize(
    ("before", "after", "text"),
    [
        (("Let me", " look"), ("Found", " it"), "Let me look\n\nFound it"),
        (("Let me look. ",), ("Found it",), "Let me look. Found it"),
        ((), ("Found it",), "Found it"),
        (("Looking",), (), "Looking"),
    ],
)
async def test_the_text_of_a_turn_sets_apart_what_stands_around_calls(
    serve: Serve, before: tuple[str, ...], after: tuple[str, ...], text: str
) -> None:
    @tool
    def look() -> str:
        """Look."""
        return "it"

    async def start(self: Think) -> str:
        return (await self.save_messages("go")).text

    model = ScriptedModel([[say(*before), call("look")] if before else [call("look")], [say(*after)] if after else []])
    server = await serve(running(agent(model, look), start=start))
    assert await result_of(await server.tab(), "start") == text


async def test_a_turn_that_fails_says_why(serve: Serve) -> None:
    async def start(self: Think) -> list[Any]:
        result = await self.save_messages("go")
        return [result.status, result.error, result.message, result.text]

    server = await serve(running(agent(ScriptedModel([[say("half"), fail(ModelRejected("nope"))]])), start=start))
    assert await result_of(await server.tab(), "start") == ["error", "nope", None, ""]


async def test_stopping_a_turn_by_its_id_leaves_the_others(serve: Serve) -> None:
    gate = Gate()
    found: list[TurnResult] = []

    class Agent(Think):
        model = ScriptedModel([[say("one"), pause(gate)], say("two")])

        @callable
        async def start(self) -> list[str]:
            waiting = [asyncio.ensure_future(self.save_messages(text)) for text in ("a", "b")]
            await gate.reached()
            assert self.active_turn is not None
            self.cancel_chat("unknown")
            self.cancel_chat(self.active_turn)
            found.extend(await asyncio.gather(*waiting))
            return [result.status for result in found]

    server = await serve(Agent)
    tab = await server.tab()
    assert await result_of(tab, "start") == ["aborted", "completed"]
    assert said(await server.stored()) == ["a", "one", "b", "two"]


async def test_what_before_turn_raises_ends_the_turn_and_not_the_agent(serve: Serve, log: ErrorLog) -> None:
    def before(self: Think, ctx: TurnContext) -> TurnConfig | None:
        if not said(ctx.messages)[-1]:
            return None
        raise LookupError("a secret of the database")

    server = await serve(agent(ScriptedModel([say("ok")]), before_turn=before))
    tab = await server.tab()
    await tab.ask("r1", "go")
    done = await tab.done("r1")
    assert (done["outcome"], done["error"]) == ("error", True)
    assert "secret" not in done["body"]
    log.expect("Turn r1 failed")
    await tab.ask("r2", user_message(""))
    assert (await tab.done("r2"))["outcome"] == "completed"
    assert parts_of((await server.stored())[-1])[0]["text"] == "ok"
