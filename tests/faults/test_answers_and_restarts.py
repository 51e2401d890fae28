"""A server that ends while calls wait, were answered or run: after the next start all goes on where it was."""

from collections.abc import AsyncGenerator, Callable, Coroutine
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import pytest

from perdure import Agent, client_tool, tool
from perdure.chat.answers import NOT_RUN
from perdure.chat.recovery import INTERRUPTED_TURN
from perdure.chat.repair import INTERRUPTED
from perdure.storage.contract import OpenAgents
from perdure.storage.interactions import LoadInteractions
from perdure.testing import FakeClock, Gate, ScriptedModel, call, pause, say, strict_provider_errors
from tests.support import agent
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


async def test_a_tab_that_comes_in_mid_stream_sees_what_was_decided(start: Start, till: Till) -> None:
    gate = Gate()
    model = ScriptedModel([[call("slow"), pays(1, "c1"), pays(2, "c2")], [say("done")]])

    @tool
    async def slow() -> None:
        """Wait."""
        await gate.passed()

    host = await start(agent(model, till.tool, slow))
    room = Room(host)
    request = room.begin()
    await room.line.seen(lambda frame: "tool-approval-request" in frame.get("body", ""), 2)
    room.decide("c1", approved=False)
    room.decide("c2")
    await room.settle()
    late = host.line(agent="agent")
    await late.seen(lambda frame: frame["type"] == "cf_agent_stream_resuming")
    late.post({"type": "cf_agent_stream_resume_ack", "id": request})
    shown = await late.seen(lambda frame: frame["type"] == "cf_agent_message_updated")
    states = {part["toolCallId"]: part["state"] for part in shown["message"]["parts"] if "toolCallId" in part}
    assert (states["c1"], states["c2"]) == ("output-denied", "approval-responded")
    kinds = [frame["type"] for frame in late.frames]
    assert kinds.index("cf_agent_message_updated") > [frame.get("replayComplete") for frame in late.frames].index(True)
    gate.open()
    await room.done(request)
