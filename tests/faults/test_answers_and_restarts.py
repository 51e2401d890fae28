"""A server that ends while calls wait, were answered or run: after the next start all goes on where it was."""

from collections.abc import AsyncGenerator, Callable, Coroutine
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import pytest

from perdure import Agent, Think, TurnContext, client_tool, tool
from perdure.agent.wake import ATTEMPTS
from perdure.chat.answers import NOT_RUN
from perdure.chat.recovery import INTERRUPTED_TURN
from perdure.chat.repair import INTERRUPTED
from perdure.storage.contract import OpenAgents
from perdure.storage.interactions import LoadInteractions
from perdure.testing import FakeClock, Gate, ScriptedModel, call, pause, say, strict_provider_errors
from tests.support import ErrorLog, agent
from tests.support.hosting import Hosting, hosting
from tests.support.rooms import WINDOW, Room

pytestmark = pytest.mark.anyio

PLACE = client_tool("place")
ASKED_PLACE = client_tool("place", needs_approval=True)

Start = Callable[[type[Agent]], Coroutine[Any, Any, Hosting]]


class Till:
    """A tool that needs approval and waits at a gate, and what it was paid."""

    def __init__(self) -> None:
        self.paid: list[int] = []
        self.gate = Gate()
        self.gate.open()

        @tool(needs_approval=True)
        async def pay(amount: int) -> str:
            """Pay."""
            self.paid.append(amount)
            await self.gate.passed()
            return f"paid {amount}"

        self.tool = pay


@pytest.fixture
def till() -> Till:
    return Till()


@pytest.fixture
async def start(tmp_path: Path) -> AsyncGenerator[Start]:
    """Ends the host that runs, if there is one, and starts another on the same folder and clock."""
    clock = FakeClock()
    async with AsyncExitStack() as stack:

        async def begin(kind: type[Agent]) -> Hosting:
            await stack.aclose()
            host = await stack.enter_async_context(hosting(kind, folder=tmp_path, clock=clock))
            await host.clock.sleeping(2)
            return host

        yield begin


def pays(amount: int = 1, id: str = "c1") -> Any:
    return call("pay", {"amount": amount}, id=id)


async def waiting(host: Hosting) -> list[str]:
    return [row.call for row in await host.read(LoadInteractions("agent/room")) if row.state == "waiting"]


async def probe(room: Room) -> dict[str, Any]:
    room.line.post({"type": "cf_agent_stream_resume_request", "probeId": "p"})
    return await room.line.seen(lambda frame: frame.get("probeId") == "p")


# ── while a turn asks ───────────────────────────────────────────────


async def test_ended_while_a_page_is_asked_in_mid_stream_the_call_waits_on_without_a_banner(start: Start) -> None:
    gate = Gate()
    model = ScriptedModel([[call("place", id="c1"), say("Well"), pause(gate)], [say("done")]])
    kind = agent(model, PLACE)
    room = Room(await start(kind))
    room.begin()
    await gate.reached()

    host = await start(kind)
    room = Room(host)
    assert await room.states() == {"c1": "input-available"}
    await host.store.settled()
    assert await host.read(OpenAgents()) == []
    assert (await probe(room))["reason"] == "idle"
    room.result("c1", "Brno")
    await room.continued()
    assert (await room.parts())["c1"]["output"] == "Brno"
    assert [strict_provider_errors(request) for request in model.requests] == [[], []]


async def test_ended_after_all_was_answered_in_mid_stream_it_goes_on_by_itself(start: Start, till: Till) -> None:
    gate = Gate()
    model = ScriptedModel([[call("place", id="c1"), call("slow"), pays(1, "c2")], [say("done")]])

    @tool
    async def slow() -> None:
        """Wait."""
        await gate.passed()

    kind = agent(model, PLACE, till.tool, slow)
    room = Room(await start(kind))
    room.begin()
    await room.line.seen(lambda frame: "tool-approval-request" in frame.get("body", ""))
    room.result("c1", "Brno")
    room.decide("c2")
    await room.settle()
    await room.host.store.settled()

    room = Room(await start(kind))
    await room.continued()
    assert {call: (part["state"], part.get("errorText")) for call, part in (await room.parts()).items()} == {
        "c1": ("output-available", None),
        "call-2": ("output-error", INTERRUPTED),
        "c2": ("output-available", None),
    }
    assert till.paid == [1]
    model.assert_done()
    assert strict_provider_errors(model.requests[1]) == []


async def test_ended_while_a_message_waits_behind_answers_that_were_given_nothing_is_left_open(
    start: Start, till: Till
) -> None:
    gate = Gate()
    model = ScriptedModel([[call("slow"), pays()], [say("done")]])

    @tool
    async def slow() -> None:
        """Wait."""
        await gate.passed()

    kind = agent(model, till.tool, slow)
    room = Room(await start(kind))
    room.begin()
    await room.line.seen(lambda frame: "tool-approval-request" in frame.get("body", ""))
    room.decide("c1")
    second = room.begin("And another thing.")
    await room.settle()
    await room.host.store.settled()

    host = await start(kind)
    await host.advance(WINDOW)
    room = Room(host)
    part = (await room.parts())["c1"]
    assert (part["state"], part["errorText"]) == ("output-error", NOT_RUN)
    assert (await probe(room))["id"] == second, "the message that waited is shown as interrupted"
    await host.store.settled()
    assert await waiting(host) == []
    await room.ask("Go on.")
    assert strict_provider_errors(model.requests[1]) == []
    assert till.paid == []


async def test_ended_after_a_call_was_answered_that_nothing_goes_on_after_the_cut_answer_is_shown_as_such(
    start: Start,
) -> None:
    gate = Gate()
    model = ScriptedModel([[call("place", id="c1"), say("Well"), pause(gate)]])
    kind = agent(model, PLACE)
    room = Room(await start(kind))
    request = room.begin()
    await gate.reached()
    room.result("c1", "Brno", autoContinue=False)
    await room.settle()

    room = Room(await start(kind))
    assert (await room.parts())["c1"]["output"] == "Brno"
    assert (await probe(room))["id"] == request
    room.line.post({"type": "cf_agent_stream_resume_ack", "id": request})
    assert (await room.done(request))["body"] == INTERRUPTED_TURN


async def test_what_was_decided_in_mid_stream_is_in_the_message_with_the_result_that_followed(start: Start) -> None:
    gate = Gate()
    model = ScriptedModel([[call("slow"), call("place", {"of": "me"}, id="c1")], [say("done")]])

    @tool
    async def slow() -> None:
        """Wait."""
        await gate.passed()

    kind = agent(model, ASKED_PLACE, slow)
    room = Room(await start(kind))
    room.begin()
    await room.line.seen(lambda frame: "tool-approval-request" in frame.get("body", ""))
    room.decide("c1", reason="Why not.")
    room.result("c1", "Brno", autoContinue=False)
    await room.settle()
    await room.host.store.settled()

    room = Room(await start(kind))
    part = (await room.parts())["c1"]
    assert (part["state"], part["output"]) == ("output-available", "Brno")
    assert (part["approval"]["approved"], part["approval"]["reason"]) == (True, "Why not.")


# ── while a continuation runs ───────────────────────────────────────


async def test_ended_while_an_approved_tool_runs_it_is_not_run_again_and_the_model_learns_that(
    start: Start, till: Till
) -> None:
    model = ScriptedModel([[pays()], [say("done")]])
    kind = agent(model, till.tool)
    room = Room(await start(kind))
    await room.ask()
    till.gate = Gate()
    room.decide("c1")
    await room.settle()
    await room.host.advance(WINDOW)
    await till.gate.reached()

    room = Room(await start(kind))
    await room.continued()
    part = (await room.parts())["c1"]
    assert (part["state"], part["errorText"]) == ("output-error", INTERRUPTED)
    assert till.paid == [1]
    model.assert_done()
    assert strict_provider_errors(model.requests[1]) == []


async def test_a_continuation_that_ends_the_process_each_time_is_given_up_visibly(start: Start, till: Till) -> None:
    gates = [Gate() for _ in range(ATTEMPTS)]
    model = ScriptedModel([[pays()], *[[say(f"Half {number}"), pause(gate)] for number, gate in enumerate(gates)]])
    kind = agent(model, till.tool)
    room = Room(await start(kind))
    await room.ask()
    room.decide("c1")
    await room.settle()
    for gate in gates:
        await room.host.clock.sleeping(3)
        room.host.clock.advance(WINDOW)
        await gate.reached()
        room = Room(await start(kind))

    offer = await probe(room)
    assert offer["type"] == "cf_agent_stream_resuming"
    room.line.post({"type": "cf_agent_stream_resume_ack", "id": offer["id"]})
    end = await room.done(offer["id"])
    assert (end["body"], end["error"], end["continuation"]) == (INTERRUPTED_TURN, True, True)
    await room.host.store.settled()
    assert await room.host.read(OpenAgents()) == []
    (message,) = [message for message in await room.messages() if message["role"] == "assistant"]
    texts = [part["text"] for part in message["parts"] if part["type"] == "text"]
    assert texts == [f"Half {number}" for number in range(ATTEMPTS)], "what was said is kept"
    assert (await room.parts())["c1"]["output"] == "paid 1"
    model.assert_done()
    assert [strict_provider_errors(request) for request in model.requests] == [[]] * (ATTEMPTS + 1)
    assert till.paid == [1]


async def test_an_approved_call_that_never_came_to_run_is_given_up_with_its_continuation(
    start: Start, till: Till
) -> None:
    gates = [Gate() for _ in range(ATTEMPTS)]
    reached = iter(gates)

    async def before_turn(self: Think, context: TurnContext) -> None:
        if context.continuation:
            await next(reached).passed()

    model = ScriptedModel([[pays()], [say("done")]])
    kind = agent(model, till.tool, before_turn=before_turn)
    room = Room(await start(kind))
    await room.ask()
    room.decide("c1")
    await room.settle()
    for gate in gates:
        await room.host.clock.sleeping(3)
        room.host.clock.advance(WINDOW)
        await gate.reached()
        room = Room(await start(kind))
    part = (await room.parts())["c1"]
    assert (part["state"], part["errorText"]) == ("output-error", NOT_RUN)
    assert (await probe(room))["type"] == "cf_agent_stream_resuming"
    await room.ask("Go on.")
    model.assert_done()
    assert till.paid == []


# ── the application's own code fails ────────────────────────────────


async def test_a_start_that_fails_takes_no_answer_along(start: Start, till: Till, log: ErrorLog) -> None:
    gate = Gate()
    model = ScriptedModel([[pays()], [say("done")]])

    async def before_turn(self: Think, context: TurnContext) -> None:
        if context.continuation:
            await gate.passed()

    def on_start(self: Think) -> None:
        if failures:
            raise ConnectionError(failures.pop())

    failures: list[str] = []
    kind = agent(model, till.tool, before_turn=before_turn, on_start=on_start)
    room = Room(await start(kind))
    await room.ask()
    room.decide("c1")
    await room.settle()
    await room.host.advance(WINDOW)
    await gate.reached()

    failures += ["no database"] * (ATTEMPTS + 1)
    host = await start(kind)
    while failures:
        await Room(host).line.ended()
    log.expect("is dropped from memory: no database")
    gate.open()
    room = Room(host)
    await room.continued()
    assert (await room.states())["c1"] == "output-available"
    assert till.paid == [1]
    model.assert_done()


async def test_a_start_may_wait_for_a_turn_of_its_own_though_another_is_to_go_on(start: Start, till: Till) -> None:
    gate = Gate()
    model = ScriptedModel([[call("place", id="c1"), pause(gate)], [say("done")], [say("Welcome back.")]])

    async def on_start(self: Think) -> None:
        if self.messages:
            await self.save_messages("I am back.")

    kind = agent(model, PLACE, on_start=on_start)
    room = Room(await start(kind))
    room.begin()
    await gate.reached()
    room.result("c1", "Brno")
    await room.settle()

    host = await start(kind)
    await host.clock.sleeping(3)
    await host.advance(WINDOW)
    room = Room(host)
    roles = [message["role"] for message in await room.messages()]
    assert roles == ["user", "assistant", "user", "assistant"]
    model.assert_done()
    assert [strict_provider_errors(request) for request in model.requests] == [[], [], []]


@pytest.mark.parametrize("where", ["get_tools", "get_model", "before_turn"])
async def test_a_hook_that_fails_at_the_continuation_ends_it_and_nothing_else(
    start: Start, till: Till, where: str, log: ErrorLog
) -> None:
    failing = False

    def hook(self: Think, *args: Any) -> Any:
        if failing:
            raise ConnectionError("no database")
        return {"get_tools": [till.tool], "get_model": model, "before_turn": None}[where]

    model = ScriptedModel([[pays()], [say("done")]])
    room = Room(await start(agent(model, till.tool, **{where: hook})))
    await room.ask()
    failing = True
    room.decide("c1")
    end = await room.continued()
    assert end["error"] is True
    log.expect("Turn")
    failing = False
    part = (await room.parts())["c1"]
    assert (part["state"], part["errorText"]) == ("output-error", NOT_RUN)
    await room.ask("Go on.")
    model.assert_done()
    assert strict_provider_errors(model.requests[1]) == []
    assert till.paid == []
