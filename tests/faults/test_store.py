"""A store that is slow or fails: nothing is shown before it is kept, and what failed is gone as a whole."""

import asyncio
import json
from collections.abc import Callable, Sequence

import pytest

from perdure import tool
from perdure.storage.contract import AppendChunks, AppendMessage, CloseTurn, OpenTurn, Operation
from perdure.testing import Gate, ScriptedModel, call, pause, say, strict_provider_errors
from tests.support import ErrorLog, Serve, Tab, agent, chat_request, chunks_of, user_message
from tests.support.stores import TroubledStore

pytestmark = pytest.mark.anyio

Stores = Callable[[], TroubledStore]


def holds(kind: type[Operation]) -> Callable[[Sequence[Operation]], bool]:
    return lambda operations: any(isinstance(operation, kind) for operation in operations)


def never(operations: Sequence[Operation]) -> bool:
    return False


async def dropped(*tabs: Tab, request: str | None = None) -> None:
    """All are disconnected; told before that, if there was a ``request``, that it failed."""
    for tab in tabs:
        code, reason = await tab.ended()
        assert (code, reason) == (
            1011,
            "The agent's data could not be stored or read. Reconnect to see what is kept.",
        )
        ends = [frame for frame in tab.frames if frame.get("done") and frame["id"] == request]
        assert [frame.get("error") for frame in ends] == ([] if request is None else [True])
        assert all("could not store the conversation" in frame["body"] for frame in ends)


async def test_nothing_is_shown_before_it_is_durable(serve: Serve, stores: Stores) -> None:
    gate = Gate()
    server = await serve(agent(ScriptedModel([[say("Half"), pause(gate)]])))
    tab, other = await server.tab(), await server.tab()
    await tab.opened()
    await other.opened()
    stores().hold()
    await tab.ask("r1", "Hi")
    await gate.reached()
    history = asyncio.create_task(server.get("/agents/agent/room/get-messages"))
    late = await server.tab()
    elsewhere = await server.tab("elsewhere")
    await elsewhere.opened()
    await elsewhere.settle()
    assert len(tab.frames) == len(other.frames) == 3
    assert late.frames == []
    assert not history.done()

    stores().release()
    assert len((await history).json()) == 1
    await tab.delta("r1", "Half")
    await other.delta("r1", "Half")
    assert other.kinds(3)[0] == "cf_agent_chat_messages"
    assert (await late.opened())[0]["type"] == "cf_agent_stream_resuming"
    gate.open()
    await tab.done("r1")


async def test_a_request_that_cannot_be_kept_drops_the_agent_and_leaves_nothing(
    serve: Serve, stores: Stores, log: ErrorLog
) -> None:
    gate = Gate()
    model = ScriptedModel([say("One."), [pause(gate)], say("Two.")])
    server = await serve(agent(model))
    tab, other = await server.tab(), await server.tab()
    await tab.ask("r1", "First")
    await tab.done("r1")
    stored = await server.stored()
    stores().breaks = holds(OpenTurn)
    await tab.ask("r2", *stored, user_message("Second"))
    await dropped(tab, other, request="r2")
    assert len(other.of("r2")) == 1
    stores().breaks = never

    assert await server.stored() == stored
    back = await server.tab()
    assert (await back.opened())[0]["messages"] == stored
    assert (await back.probe("p1"))["reason"] == "idle"
    await back.ask("r2", *stored, user_message("Second"))
    gate.open()
    await back.done("r2")
    await log_of_one_failure(log)


async def log_of_one_failure(log: ErrorLog) -> None:
    """The failure was logged by the store and by the host, once each, and nothing else was."""
    drops = [error for error in log.errors if "is dropped from memory" in error]
    assert len(drops) == 1, drops
    log.expect("is dropped from memory")
    log.expect("was not stored")


async def test_two_requests_of_which_the_first_cannot_be_kept_are_both_gone(
    serve: Serve, stores: Stores, log: ErrorLog
) -> None:
    server = await serve(agent(ScriptedModel([say("Never."), say("Fresh.")])))
    tab = await server.tab()
    await tab.opened()
    broken: list[int] = []

    def first_only(operations: Sequence[Operation]) -> bool:
        broken.append(1)
        return len(broken) == 1

    stores().breaks = first_only
    bodies = [json.dumps({"messages": [user_message(text)]}) for text in ("First", "Second")]
    await tab.send_together(*(chat_request(f"r{number}", body) for number, body in enumerate(bodies)))
    await dropped(tab, request="r0")
    assert await server.stored() == []
    await log_of_one_failure(log)


async def test_an_answer_that_cannot_be_kept_is_not_called_done(serve: Serve, stores: Stores, log: ErrorLog) -> None:
    model = ScriptedModel([say("One."), say("Two.")])
    server = await serve(agent(model))
    tab, other = await server.tab(), await server.tab()
    question = user_message("First")
    stores().breaks = holds(CloseTurn)
    await tab.ask("r1", question)
    await dropped(tab, other, request="r1")
    stores().breaks = never

    messages = await server.stored()
    assert messages[0] == question
    back = await server.tab()
    assert (await back.probe("p1"))["type"] == "cf_agent_stream_resuming", "the turn was interrupted"
    await back.ask("r2", *messages, user_message("Second"))
    assert (await back.done("r2"))["outcome"] == "completed"
    assert strict_provider_errors(model.requests[1]) == []
    await log_of_one_failure(log)


async def test_a_checkpoint_that_cannot_be_kept_ends_the_turn_and_the_agent_comes_back(
    serve: Serve, stores: Stores, log: ErrorLog
) -> None:
    gate = Gate()
    model = ScriptedModel([[say(*(f"d{number} " for number in range(100))), pause(gate), say("late")], say("Two.")])
    server = await serve(agent(model))
    tab, other = await server.tab(), await server.tab()
    stores().breaks = holds(AppendChunks)
    await tab.ask("r1", "First")
    await dropped(tab, other, request="r1")
    stores().breaks = never
    gate.open()
    back = await server.tab()
    await back.opened()
    messages = await server.stored()
    assert [message["role"] for message in messages] == ["user"]
    await back.ask("r2", *messages, user_message("Second"))
    assert (await back.done("r2"))["outcome"] == "completed"
    assert chunks_of(back.frames, "r1") == []
    assert model.requests[0].outcome == "closed"
    await log_of_one_failure(log)


async def test_a_turn_that_outlives_its_dropped_agent_writes_nothing_any_more(
    serve: Serve, stores: Stores, log: ErrorLog
) -> None:
    """Its tool does not let itself be stopped; when it ends, the agent is long back under another object."""
    gate = Gate()

    @tool
    async def stubborn() -> str:
        """Returns when it likes."""
        while True:
            try:
                await gate.passed()
            except asyncio.CancelledError:
                continue
            return "at last"

    model = ScriptedModel([[say(*(str(number) for number in range(70))), call("stubborn", id="c1")], say("Two.")])
    server = await serve(agent(model, stubborn))
    tab = await server.tab()
    stores().breaks = holds(AppendChunks)
    await tab.ask("r1", "First")
    await dropped(tab, request="r1")
    stores().breaks = never
    back = await server.tab()
    await back.opened()
    messages = await server.stored()
    count = len(stores().writes)
    gate.open()
    await back.settle()
    await back.ask("r2", *messages, user_message("Second"))
    assert (await back.done("r2"))["outcome"] == "completed"
    written = [operation for operations in stores().writes[count:] for operation in operations]
    assert not [item for item in written if isinstance(item, AppendChunks) and item.turn == "r1"]
    assert not [item for item in written if isinstance(item, CloseTurn) and item.id == "r1"]
    after = await server.stored()
    assert [message["role"] for message in after] == ["user", "user", "assistant"]
    await log_of_one_failure(log)


async def test_an_agent_that_cannot_be_kept_does_not_take_others_along(
    serve: Serve, stores: Stores, log: ErrorLog
) -> None:
    gate = Gate()
    model = ScriptedModel([[say("Half"), pause(gate), say(" done.")], say("Never kept.")])
    server = await serve(agent(model))
    good, bad = await server.tab("good"), await server.tab("bad")
    await good.ask("r1", "Hi")
    await gate.reached()
    stores().breaks = holds(AppendMessage)
    await bad.ask("r2", "Hi")
    await dropped(bad, request="r2")
    stores().breaks = never
    gate.open()
    assert (await good.done("r1"))["outcome"] == "completed"
    assert len(await server.stored("good")) == 2
    assert await server.stored("bad") == []
    await log_of_one_failure(log)
