"""Models, tools and hooks that misbehave: their turn ends, and the agent goes on."""

import asyncio
from collections.abc import AsyncGenerator
from typing import Any

import pytest

from perdure import Agent, ChatModel, ConfigurationError, Connection, Finish, ModelRequest, Think, tool
from perdure.models.contract import ModelEvent
from perdure.testing import Gate, ScriptedModel, call, chunk, fail, pause, say, strict_provider_errors
from tests.support import Doing, ErrorLog, Serve, Tab, agent, chunks_of, do

pytestmark = pytest.mark.anyio


async def goes_on(tab: Tab, request: str = "r-next") -> None:
    """The agent answers the next request."""
    await tab.ask(request, "And now?")
    assert (await tab.done(request))["outcome"] == "completed"
    assert (await tab.probe(f"after-{request}"))["type"] == "cf_agent_stream_resume_none"


def errors_of_turns(log: ErrorLog) -> None:
    """Errors of turns are expected, others are not."""
    log.errors = [error for error in log.errors if "Turn r1 failed" not in error]


async def test_a_model_whose_own_task_was_cancelled_fails_its_turn_only(serve: Serve, log: ErrorLog) -> None:
    """A client library that is cancelled inside raises CancelledError although nobody has stopped the turn."""
    server = await serve(agent(ScriptedModel([[say("Half"), fail(asyncio.CancelledError())], say("Next.")])))
    tab = await server.tab()
    await tab.ask("r1", "Go")
    assert (await tab.done("r1"))["outcome"] in {"error", "aborted"}
    errors_of_turns(log)
    await goes_on(tab)


async def test_a_tool_whose_own_task_was_cancelled_has_an_error_for_a_result(serve: Serve) -> None:
    @tool
    async def broken() -> str:
        """Awaits what was cancelled."""
        inner = asyncio.ensure_future(asyncio.Event().wait())
        inner.cancel()
        await inner
        return "never"

    @tool
    async def good() -> str:
        """Works."""
        return "fine"

    model = ScriptedModel([[call("broken", id="c1"), call("good", id="c2")], say("I see."), say("Next.")])
    server = await serve(agent(model, broken, good))
    tab = await server.tab()
    await tab.ask("r1", "Go")
    assert (await tab.done("r1"))["outcome"] == "completed"
    model_saw = model.requests[1].messages[-1]["parts"]
    states = {part["toolCallId"]: part["state"] for part in model_saw if "toolCallId" in part}
    assert states == {"c1": "output-error", "c2": "output-available"}
    assert strict_provider_errors(model.requests[1]) == []
    await goes_on(tab)


@pytest.mark.parametrize(
    "odd",
    [
        pytest.param({"type": "data-x", "data": object()}, id="holds what is no JSON"),
        pytest.param({"type": "text-delta", "delta": "x"}, id="lacks its id"),
        pytest.param({"type": "text-delta", "id": "0", "delta": None}, id="has no text"),
        pytest.param({"type": "tool-input-available", "toolCallId": "c1"}, id="names no tool"),
        pytest.param({"type": 5}, id="has a number for a type"),
        pytest.param({}, id="has no type"),
        pytest.param({"type": "tool-output-available", "toolCallId": "c-none", "output": 1}, id="answers no call"),
        pytest.param({"type": "unheard-of", "x": 1}, id="is of an unknown type"),
    ],
)
async def test_a_model_that_emits_a_chunk_that(serve: Serve, log: ErrorLog, odd: dict[str, Any]) -> None:
    # A call without a name is a call that failed: the model is told, and asked once more.
    again = [say("Again.")] if odd.get("toolCallId") == "c1" else []
    server = await serve(agent(ScriptedModel([[say("Half"), chunk(odd), say("more")], *again, say("Next.")])))
    tab = await server.tab()
    await tab.ask("r1", "Go")
    await tab.done("r1")
    errors_of_turns(log)
    assert (await server.stored())[0]["role"] == "user"
    await goes_on(tab)


class Endless(ChatModel):
    """Never waits and never ends, unless it is closed."""

    name = "endless"

    async def stream(self, request: ModelRequest) -> AsyncGenerator[ModelEvent, None]:
        yield {"type": "text-start", "id": "0"}
        while True:
            yield {"type": "text-delta", "id": "0", "delta": "x"}
            await asyncio.sleep(0)
        yield Finish("stop")


async def test_a_model_that_never_ends_can_be_stopped(serve: Serve) -> None:
    models: list[ChatModel] = [Endless(), ScriptedModel([say("Next.")])]
    server = await serve(agent(None, get_model=lambda self: models.pop(0)))
    tab = await server.tab()
    await tab.ask("r1", "Go")
    await tab.delta("r1", "x")
    await tab.cancel("r1")
    assert (await tab.done("r1"))["outcome"] == "aborted"
    await goes_on(tab)


async def test_a_tool_that_swallows_its_stop_once_and_returns_is_stopped(serve: Serve) -> None:
    gate = Gate()

    @tool
    async def cleans_up() -> str:
        """Finishes something before it lets itself be stopped."""
        try:
            await gate.passed()
        except asyncio.CancelledError:
            await asyncio.sleep(0)
        return "done all the same"

    server = await serve(agent(ScriptedModel([[call("cleans_up", id="c1")], say("Next.")]), cleans_up))
    tab = await server.tab()
    await tab.ask("r1", "Go")
    await gate.reached()
    await tab.cancel("r1")
    assert (await tab.done("r1"))["outcome"] == "aborted"
    part = (await server.stored())[-1]["parts"][-1]
    assert part["state"] in {"output-available", "output-error"}
    await goes_on(tab)


async def test_a_synchronous_tool_that_blocks_can_be_stopped(serve: Serve) -> None:
    import threading

    entered, leave = threading.Event(), threading.Event()
    loop = asyncio.get_running_loop()
    running = asyncio.Event()

    @tool
    def blocks() -> str:
        """Blocks its thread."""
        loop.call_soon_threadsafe(running.set)
        entered.set()
        leave.wait()
        return "too late"

    server = await serve(agent(ScriptedModel([[call("blocks", id="c1")], say("Next.")]), blocks))
    tab = await server.tab()
    await tab.ask("r1", "Go")
    await running.wait()
    await tab.cancel("r1")
    assert (await tab.done("r1"))["outcome"] == "aborted"
    leave.set()
    await goes_on(tab)
    assert "too late" not in str(await server.stored())


async def test_a_hook_that_changes_the_messages_it_is_shown_does_not_change_the_store(serve: Serve) -> None:
    """What the application is shown is documented as shared: what is stored must not depend on its manners."""

    async def get_system_prompt(self: Any) -> str:
        for message in self.messages:
            message["parts"].append({"type": "text", "text": "scribbled"})
        return "Be brief."

    first = await serve(agent(ScriptedModel([say("One.")]), get_system_prompt=get_system_prompt))
    tab = await first.tab()
    await tab.ask("r1", "Hi")
    await tab.done("r1")
    assert "scribbled" not in str(await first.stored())
    await first.stop()
    second = await serve(agent(ScriptedModel([])))
    assert "scribbled" not in str(await second.stored())


async def test_a_conversation_whose_model_breaks_every_time_can_be_cleared_and_used(
    serve: Serve, log: ErrorLog
) -> None:
    broken = [fail(ValueError("broken"))]
    server = await serve(agent(ScriptedModel([broken, broken, broken, say("Fresh.")])))
    tab = await server.tab()
    for number in range(3):
        await tab.ask(f"r{number}", f"Question {number}")
        assert (await tab.done(f"r{number}"))["outcome"] == "error"
    await tab.clear()
    await goes_on(tab)
    for number in range(3):
        log.expect(f"Turn r{number} failed")


async def test_chunks_that_are_made_without_a_pause_do_not_keep_others_waiting_for_ever(serve: Serve) -> None:
    """A long answer that comes in one piece is still sent while it is made, and another agent is served."""
    gate = Gate()
    deltas = [str(number) for number in range(20_000)]
    server = await serve(agent(ScriptedModel([[say(*deltas), pause(gate)], say("Hello.")])))
    tab, elsewhere = await server.tab("one"), await server.tab("two")
    await tab.ask("r1", "Go")
    await elsewhere.ask("r2", "Hi")
    await elsewhere.done("r2")
    gate.open()
    await tab.done("r1")
    assert len(chunks_of(tab.frames, "r1")) == len(deltas) + 6


async def test_a_class_that_fails_to_greet_a_connection_closes_it_and_serves_the_others(
    serve: Serve, log: ErrorLog
) -> None:
    def is_readonly(self: object, connection: Connection) -> bool:
        if connection.request.query.get("broken"):
            raise RuntimeError("password is hunter2")
        return False

    server = await serve(agent(ScriptedModel([say("Hello."), say("Next.")]), is_readonly=is_readonly))
    tab = await server.tab()
    broken = await server.connect("/agents/agent/room?broken=1")
    code, reason = await broken.ended()
    assert code == 1011
    assert "hunter2" not in reason
    await goes_on(tab)
    log.expect("An event of the agent agent/room failed")


async def test_a_connection_is_closed_with_a_reason_of_any_length(serve: Serve) -> None:
    def on_connect(self: object, connection: Connection) -> None:
        connection.close(4000, "é" * 500)

    server = await serve(agent(ScriptedModel([]), on_connect=on_connect))
    tab = await server.tab()
    code, reason = await tab.ended()
    assert code == 4000
    assert reason == "é" * 61


@pytest.mark.parametrize(
    "mistake",
    [
        pytest.param(lambda agent: agent.connections[0].send({"a": 1}), id="sends a dict"),
        pytest.param(lambda agent: agent.broadcast(b"bytes"), id="broadcasts bytes"),
        *(
            pytest.param(lambda agent, code=code: agent.connections[0].close(code), id=f"closes with {code!r:.12}")
            for code in (0, 999, 1004, 1005, 1006, 1015, 2999, 5000, 10**400, -1, True, 1000.0, "1000", None)
        ),
        pytest.param(lambda agent: agent.connections[0].close(4000, 5), id="closes for a number"),
    ],
)
async def test_what_cannot_be_sent_is_refused_where_the_mistake_is(serve: Serve, mistake: Any) -> None:
    """Not when its turn comes: then nothing would be sent any more."""

    class Worker(Doing, Think):
        model = ScriptedModel([say("Next.")])

    server = await serve(Worker)
    tab = await server.tab(agent="worker")

    async def slip(agent: Any) -> None:
        agent.set_state("something to wait for")
        with pytest.raises((TypeError, ConfigurationError)):
            mistake(agent)

    await do(tab, slip)
    await goes_on(tab)


@pytest.mark.parametrize("code", [1000, 1001, 1008, 1011, 1013, 1014, 3000, 4999])
async def test_a_connection_can_be_closed_with_any_code_that_may_be_sent(serve: Serve, code: int) -> None:
    server = await serve(Doing)
    tab = await server.tab(agent="doing")

    async def close(agent: Any) -> None:
        agent.connections[0].close(code, "half an emoji: \ud83d")

    await do(tab, close)
    assert await tab.ended() == (code, "half an emoji: ?")


async def test_an_agent_that_does_not_chat_has_no_messages(serve: Serve) -> None:
    class Counter(Agent):
        pass

    server = await serve(Counter)
    response = await server.get("/agents/counter/one/get-messages")
    assert (response.status_code, response.text) == (404, "Not implemented")
    tab = await server.tab("one", "counter")
    await tab.ask("r1", "Hi")
    await tab.send({"type": "cf_agent_chat_clear"})
    await tab.opened()
    assert "cf_agent_chat_messages" not in tab.kinds()
