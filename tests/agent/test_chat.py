"""``chat()`` and ``stream()``: what the caller is told of the turn, and what everybody else sees of it."""

import asyncio
import warnings
from typing import Any

import pytest

from perdure import ChatCallbacks, ChatResponse, ModelRejected, Think, TurnFailed, callable
from perdure.testing import Gate, ScriptedModel, fail, finish, pause, say
from tests.agent.calls import call_of, error_of, result_of, said
from tests.requirements import requirement
from tests.support import Serve, agent, chunks_of, text_of

pytestmark = pytest.mark.anyio


class Heard(ChatCallbacks):
    """Writes down what it is told."""

    def __init__(self) -> None:
        self.calls: list[Any] = []
        self.chunks: list[dict[str, Any]] = []
        self.request = ""

    async def on_start(self, request_id: str) -> None:
        self.request = request_id
        self.calls.append("start")

    def on_event(self, chunk: dict[str, Any]) -> None:
        self.chunks.append(chunk)

    async def on_done(self) -> None:
        self.calls.append("done")

    def on_error(self, error: str) -> None:
        self.calls.append(error)

    async def on_interrupted(self) -> None:
        self.calls.append("interrupted")


def talking(model: ScriptedModel, talk: Any, **fields: Any) -> type[Think]:
    """An agent whose method ``talk`` clients may call."""
    return agent(model, talk=callable(talk), **fields)


@requirement("fault:MT-04")
async def test_a_chat_streams_to_its_caller_and_to_every_open_page(serve: Serve) -> None:
    heard = Heard()

    async def talk(self: Think) -> None:
        result = await self.chat("question", heard)
        assert (result.status, result.text, result.request_id) == ("completed", "answer!", heard.request)
        await self.clear_messages()

    server = await serve(talking(ScriptedModel([say("answer", "!")]), talk))
    page = await server.tab()
    await page.opened()
    tab = await server.tab()
    await call_of(tab, "talk")
    await page.seen(lambda frame: frame["type"] == "cf_agent_chat_clear")
    assert heard.calls == ["start", "done"]
    assert text_of(heard.chunks) == "answer!"
    assert chunks_of(page.frames, heard.request) == heard.chunks
    shown = [said(f["messages"]) for f in page.frames[1:] if f["type"] == "cf_agent_chat_messages"]
    assert shown == [["question"], ["question", "answer!"]]
    assert page.kinds()[-3:] == ["cf_agent_chat_messages", "cf_agent_use_chat_response", "cf_agent_chat_clear"]
    assert page.frames[-2]["done"] is True
    assert await server.stored() == []


@requirement("engine:15")
async def test_the_empty_text_is_a_message(serve: Serve) -> None:
    async def talk(self: Think) -> str:
        return (await self.chat("")).text

    model = ScriptedModel([say("Yes?")])
    server = await serve(talking(model, talk))
    assert await result_of(await server.tab(), "talk") == "Yes?"
    assert model.requests[0].messages[0]["parts"] == [{"type": "text", "text": ""}]


@requirement("engine:16")
async def test_tools_given_to_a_chat_are_ignored_with_a_warning(serve: Serve) -> None:
    async def talk(self: Think) -> None:
        with pytest.warns(UserWarning, match=r"chat\(tools=…\) is ignored.*get_tools"):
            await self.chat("hi", tools=[print])
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            await self.chat("hi")

    model = ScriptedModel([say("1"), say("2")])
    server = await serve(talking(model, talk))
    assert (await call_of(await server.tab(), "talk"))["success"]
    assert [request.tools for request in model.requests] == [[], []]


@requirement("engine:18", "engine:19")
async def test_the_id_told_at_the_start_stops_the_chat_from_another_call(serve: Serve) -> None:
    gate, heard = Gate(), Heard()

    async def talk(self: Think) -> str:
        return (await self.chat("go", heard)).status

    async def stop(self: Think) -> None:
        self.cancel_chat(heard.request)

    model = ScriptedModel([[say("half"), pause(gate), say("never")], say("next")])
    server = await serve(talking(model, talk, stop=callable(stop)))
    tab = await server.tab()
    waiting = asyncio.create_task(result_of(tab, "talk"))
    await gate.reached()
    assert heard.calls == ["start"]
    await call_of(tab, "stop")
    assert await waiting == "aborted"
    assert heard.calls == ["start"]
    assert said(await server.stored()) == ["go", "half"]
    assert await result_of(tab, "talk") == "completed"
    assert heard.calls == ["start", "start", "done"]


@pytest.mark.parametrize("how", ["signal", "timeout"])
async def test_a_chat_is_stopped_by_a_signal_and_by_a_timeout(serve: Serve, how: str) -> None:
    gate, heard, stop = Gate(), Heard(), asyncio.Event()

    async def talk(self: Think) -> str:
        async with asyncio.timeout(None) as patience:

            async def give_up() -> None:
                await gate.reached()
                if how == "signal":
                    stop.set()
                else:
                    patience.reschedule(asyncio.get_running_loop().time())

            giving_up = asyncio.ensure_future(give_up())
            result = await self.chat("go", heard, signal=stop)
        await giving_up
        return result.status

    server = await serve(talking(ScriptedModel([[say("half"), pause(gate)]]), talk))
    tab = await server.tab()
    reply = await call_of(tab, "talk")
    assert reply.get("result" if how == "signal" else "error") == ("aborted" if how == "signal" else "TimeoutError")
    await tab.done(heard.request)
    assert heard.calls == ["start"]
    assert said(await server.stored()) == ["go", "half"]


async def test_an_error_is_told_to_a_callback_that_takes_errors_and_raised_otherwise(serve: Serve) -> None:
    heard, chunks = Heard(), []

    class Done:
        """Only wants to know the end."""

        def on_done(self) -> None:
            chunks.append("done")

    async def talk(self: Think) -> list[str]:
        ends = [(await self.chat("one", heard)).status]
        for callback in (None, lambda chunk: chunks.append(chunk.get("delta", "")), Done()):
            try:
                await self.chat("again", callback)
            except TurnFailed as error:
                ends.append(str(error))
        return ends

    model = ScriptedModel([[say("a"), fail(ModelRejected("nope"))]] * 4)
    server = await serve(talking(model, talk))
    assert await result_of(await server.tab(), "talk") == ["error", "nope", "nope", "nope"]
    assert heard.calls == ["start", "nope"]
    assert "".join(chunks) == "a"


@requirement("engine:43")
async def test_what_an_error_callback_raises_reaches_the_caller_and_fires_no_hook_twice(serve: Serve) -> None:
    responses: list[str] = []

    class Raising(Heard):
        def on_error(self, error: str) -> None:
            raise LookupError(f"because: {error}")

    def hook(self: Think, response: ChatResponse) -> None:
        responses.append(response.status)

    async def talk(self: Think) -> None:
        await self.chat("go", Raising())

    server = await serve(talking(ScriptedModel([[say("a"), fail(ModelRejected("nope"))]]), talk, on_chat_response=hook))
    tab = await server.tab()
    assert await error_of(tab, "talk") == "because: nope"
    assert responses == ["error"]


async def test_a_callback_that_raises_stops_its_turn(serve: Serve) -> None:
    gate = Gate()

    def hear(chunk: dict[str, Any]) -> None:
        if chunk["type"] == "text-delta":
            raise LookupError("full")

    async def talk(self: Think) -> None:
        await self.chat("go", hear)

    model = ScriptedModel([[say("half"), pause(gate)]])
    server = await serve(talking(model, talk))
    tab = await server.tab()
    assert await error_of(tab, "talk") == "full"
    await tab.seen(lambda frame: frame.get("outcome") == "aborted")
    assert model.requests[0].outcome == "closed"


async def test_an_object_is_told_what_it_has_methods_for(serve: Serve) -> None:
    deltas: list[str] = []

    class Some:
        async def on_event(self, chunk: dict[str, Any]) -> None:
            deltas.append(chunk.get("delta", ""))

    async def talk(self: Think) -> str:
        with pytest.raises(TypeError, match="int is neither"):
            await self.chat("hi", 5)  # type: ignore[arg-type]
        return (await self.chat("hi", Some())).status  # type: ignore[arg-type]

    server = await serve(talking(ScriptedModel([say("a", "b")]), talk))
    assert await result_of(await server.tab(), "talk") == "completed"
    assert "".join(deltas) == "ab"


@requirement("engine:11")
async def test_a_streamed_turn_on_nothing_starts_and_ends_and_a_function_is_always_answered(serve: Serve) -> None:
    ends: list[Any] = []

    async def talk(self: Think) -> None:
        await self.add_messages("a question")
        for nothing in ("", [], lambda messages: []):
            heard = Heard()
            result = await self.run_turn(nothing, heard)
            ends.append((heard.calls, heard.request == result.request_id, result.status, text_of(heard.chunks)))
        await self.run_turn("hi", lambda chunk: ends.append(chunk["type"]))

    model = ScriptedModel([say("answer"), [finish("stop")]])
    server = await serve(talking(model, talk))
    tab = await server.tab()
    assert (await call_of(tab, "talk"))["success"]
    assert ends == [
        *[(["start", "done"], True, "skipped", "")] * 2,
        (["start", "done"], True, "completed", "answer"),
        *("start", "start-step", "finish-step", "finish"),
    ]
    model.assert_done()


async def test_a_stream_gives_the_chunks_and_raises_what_failed(serve: Serve) -> None:
    async def talk(self: Think) -> list[str]:
        seen = [chunk.get("delta", "") async for chunk in self.stream("one")]
        try:
            async for chunk in self.stream("two"):
                seen += [chunk.get("delta", "")]
        except TurnFailed as error:
            seen.append(str(error))
        return [text for text in seen if text]

    server = await serve(talking(ScriptedModel([say("a", "b"), [say("c"), fail(ModelRejected("nope"))]]), talk))
    assert await result_of(await server.tab(), "talk") == ["a", "b", "c", "nope"]


async def test_leaving_a_stream_stops_its_turn(serve: Serve) -> None:
    gate = Gate()

    async def talk(self: Think) -> None:
        async for chunk in self.stream("go"):
            if chunk["type"] == "text-delta":
                break

    model = ScriptedModel([[say("half"), pause(gate)], say("next")])
    server = await serve(talking(model, talk))
    tab = await server.tab()
    await call_of(tab, "talk")
    await tab.seen(lambda frame: frame.get("outcome") == "aborted")
    await tab.ask("r1", "more")
    assert (await tab.done("r1"))["outcome"] == "completed"
    assert said(await server.stored()) == ["go", "half", "more", "next"]


async def test_a_caller_outside_the_agent_learns_that_it_went_out_of_memory(serve: Serve) -> None:
    gate, heard = Gate(), Heard()
    outside: list[asyncio.Task[Any]] = []

    async def lines(self: Think) -> None:
        async for _ in self.stream("and this"):
            raise AssertionError("it waits behind the other")

    async def talk(self: Think) -> None:
        outside.append(asyncio.get_running_loop().create_task(self.chat("go", heard)))
        outside.append(asyncio.get_running_loop().create_task(self.chat("and this")))
        outside.append(asyncio.get_running_loop().create_task(lines(self)))

    server = await serve(talking(ScriptedModel([[say("half"), pause(gate)]]), talk))
    await call_of(await server.tab(), "talk")
    await gate.reached()
    await server.stop()
    result, *errors = await asyncio.gather(*outside, return_exceptions=True)
    assert result.status == "interrupted"
    assert heard.calls == ["start", "interrupted"]
    assert [str(error) for error in errors] == ["The turn was interrupted: its agent went out of memory."] * 2
