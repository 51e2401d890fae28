"""Messages that are answered when it has been quiet for a while, on a clock that the test moves."""

import math
from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import Any

import pytest

from perdure import ChatResponse, Debounce, Think
from perdure.protocol.messages import text_of as words_of
from perdure.testing import FakeClock, Gate, ScriptedModel, pause, say
from tests.requirements import requirement
from tests.server.overlapping import outcomes
from tests.support import Frame, Serve, Serving, Tab, agent, text_of, user_message
from tests.support.engines import default_engine
from tests.support.tabs import chunks_of

pytestmark = pytest.mark.anyio

Start = Callable[..., Awaitable[Serving]]

OTHERS = 1
"""What else sleeps in a server whose agents never leave memory."""


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
def start(serve: Serve, clock: FakeClock) -> Start:
    """Starts servers on the clock."""

    def begin(*agents: type[Think]) -> Awaitable[Serving]:
        return serve(*agents, engine=replace(default_engine(), clock=clock), idle_seconds=None)

    return begin


def shown(model: ScriptedModel) -> list[list[str]]:
    """What the model was shown, request by request."""
    return [[words_of(message) for message in request.messages] for request in model.requests]


class Typing:
    """Somebody who goes on asking."""

    def __init__(self, tab: Tab) -> None:
        self.tab = tab
        self.posted: list[Frame] = []

    async def ask(self, letter: str) -> None:
        """Returns when the server has the question."""
        self.posted.append(user_message(letter, f"u-{letter}"))
        await self.tab.ask(letter, *self.posted)
        await self.tab.settle()


@requirement("fault:CO-05", "engine:100")
async def test_the_last_one_is_answered_when_it_has_been_quiet_since(start: Start, clock: FakeClock) -> None:
    gate, responses = Gate(), []

    def on_chat_response(self: Think, response: ChatResponse) -> None:
        responses.append(response.request_id)

    model = ScriptedModel([[pause(gate), say("one.")], say("four.")])
    server = await start(agent(model, message_concurrency=Debounce(ms=300), on_chat_response=on_chat_response))
    tab, other = await server.tab(), await server.tab()
    typing = Typing(tab)
    for letter in "ABCD":
        await typing.ask(letter)
        clock.advance(0.1)
    gate.open()
    await tab.done("A")
    await clock.sleeping(OTHERS + 1)
    assert outcomes(tab) == [("A", "completed"), ("B", "skipped"), ("C", "skipped")]

    clock.advance(0.199)
    await tab.settle()
    assert len(model.requests) == 1, "299 ms after the last one"
    clock.advance(0.0011)
    assert (await tab.done("D"))["outcome"] == "completed"
    await other.done("D")
    assert shown(model) == [["A"], ["A", "one.", "D"]]
    assert [words_of(message) for message in await server.stored()] == ["A", "one.", "B", "C", "D", "four."]
    assert responses == ["A", "D"]
    assert other.of("B") == other.of("C") == []


@requirement("fault:CO-05")
@pytest.mark.parametrize("bad", [-1, math.nan, "x", None])
async def test_a_time_that_is_none_counts_as_750_ms(start: Start, clock: FakeClock, bad: Any) -> None:
    gate = Gate()
    model = ScriptedModel([[pause(gate), say("one.")], say("two.")])
    server = await start(agent(model, message_concurrency={"strategy": "debounce", "debounceMs": bad}))
    tab = await server.tab()
    typing = Typing(tab)
    await typing.ask("A")
    await typing.ask("B")
    gate.open()
    await clock.sleeping(OTHERS + 1)
    clock.advance(0.749)
    await tab.settle()
    assert len(model.requests) == 1
    clock.advance(0.001)
    assert (await tab.done("B"))["outcome"] == "completed"


async def test_the_first_message_is_answered_at_once(start: Start) -> None:
    server = await start(agent(ScriptedModel([say("one.")]), message_concurrency=Debounce(ms=3_600_000)))
    tab = await server.tab()
    await Typing(tab).ask("A")
    assert (await tab.done("A"))["outcome"] == "completed"


async def test_who_has_waited_long_enough_behind_others_waits_no_longer(start: Start, clock: FakeClock) -> None:
    gate = Gate()
    model = ScriptedModel([[pause(gate), say("one.")], say("two.")])
    server = await start(agent(model, message_concurrency=Debounce(ms=300)))
    tab = await server.tab()
    typing = Typing(tab)
    await typing.ask("A")
    await typing.ask("B")
    clock.advance(0.3)
    gate.open()
    assert (await tab.done("B"))["outcome"] == "completed"


async def test_a_message_that_comes_in_the_quiet_begins_it_anew(start: Start, clock: FakeClock) -> None:
    """The one that waits for quiet has its turn already: it ends at once."""
    gate = Gate()
    model = ScriptedModel([[pause(gate), say("one.")], say("three.")])
    server = await start(agent(model, message_concurrency=Debounce(ms=300)))
    tab, other = await server.tab(), await server.tab()
    typing = Typing(tab)
    await typing.ask("A")
    await typing.ask("B")
    gate.open()
    await tab.done("A")
    await clock.sleeping(OTHERS + 1)
    clock.advance(0.299)
    await typing.ask("C")
    assert (await tab.done("B"))["outcome"] == "skipped"
    clock.advance(0.001)
    await clock.sleeping(OTHERS + 1)
    clock.advance(0.298)
    await tab.settle()
    assert len(model.requests) == 1
    clock.advance(0.001)
    assert (await tab.done("C"))["outcome"] == "completed"
    await other.done("C")
    assert other.of("B") == []
    assert shown(model)[1] == ["A", "one.", "C"]


@requirement("fault:CO-09", "engine:100")
async def test_a_clear_frees_all_who_wait(start: Start, clock: FakeClock) -> None:
    gate = Gate()
    model = ScriptedModel([[pause(gate), say("one.")], say("fresh.")])
    server = await start(agent(model, message_concurrency=Debounce(ms=5000)))
    tab, other = await server.tab(), await server.tab()
    typing = Typing(tab)
    for letter in "ABC":
        await typing.ask(letter)
    await other.clear()
    for letter in "ABC":
        await tab.done(letter)
    assert sorted(outcomes(tab)) == [("A", "aborted"), ("B", "skipped"), ("C", "skipped")]
    clock.advance(10)
    await tab.settle()
    assert len(model.requests) == 1
    assert await server.stored() == []
    assert (await tab.probe("p"))["reason"] == "idle"

    await tab.ask("N", "N")
    assert (await tab.done("N"))["outcome"] == "completed"


async def test_a_clear_frees_the_one_that_waits_for_quiet(start: Start, clock: FakeClock) -> None:
    gate = Gate()
    model = ScriptedModel([[pause(gate), say("one.")]])
    server = await start(agent(model, message_concurrency=Debounce(ms=5000)))
    tab, other = await server.tab(), await server.tab()
    typing = Typing(tab)
    await typing.ask("A")
    await typing.ask("B")
    gate.open()
    await tab.done("A")
    await clock.sleeping(OTHERS + 1)
    await tab.clear()
    assert (await tab.done("B"))["outcome"] == "skipped"
    assert (await other.done("B"))["outcome"] == "skipped", "a clear concerns everybody"
    assert await server.stored() == []
    clock.advance(10)
    await tab.settle()
    assert len(model.requests) == 1


async def test_the_one_that_waits_for_quiet_can_be_stopped(start: Start, clock: FakeClock) -> None:
    gate = Gate()
    model = ScriptedModel([[pause(gate), say("one.")]])
    server = await start(agent(model, message_concurrency=Debounce(ms=5000)))
    tab, other = await server.tab(), await server.tab()
    typing = Typing(tab)
    await typing.ask("A")
    await typing.ask("B")
    gate.open()
    await tab.done("A")
    await clock.sleeping(OTHERS + 1)
    await tab.cancel("B")
    assert (await tab.done("B"))["outcome"] == "aborted"
    assert (await other.done("B"))["outcome"] == "aborted"
    assert [words_of(message) for message in await server.stored()] == ["A", "one.", "B"]


async def test_turns_of_the_server_wait_behind_the_quiet_and_are_not_delayed_themselves(
    start: Start, clock: FakeClock
) -> None:
    gate = Gate()
    model = ScriptedModel([[pause(gate), say("one.")], say("two."), say("s.")])
    kind = agent(model, message_concurrency=Debounce(ms=300))
    server = await start(kind)
    tab = await server.tab()
    typing = Typing(tab)
    await typing.ask("A")
    await typing.ask("B")
    await tab.ask("R", typing.posted[0], trigger="regenerate-message")
    await tab.settle()
    gate.open()
    await clock.sleeping(OTHERS + 1)
    assert tab.of("R") == []
    clock.advance(0.3)
    await tab.done("R")
    assert outcomes(tab) == [("A", "completed"), ("B", "completed"), ("R", "completed")]


@requirement("engine:107")
async def test_a_tab_that_comes_in_the_quiet_is_told_to_wait_and_gets_the_stream(
    start: Start, clock: FakeClock
) -> None:
    first, second = Gate(), Gate()
    model = ScriptedModel([[pause(first), say("one.")], [pause(second), say("three.")]])
    server = await start(agent(model, message_concurrency=Debounce(ms=300)))
    tab = await server.tab()
    typing = Typing(tab)
    await typing.ask("A")
    await typing.ask("B")
    first.open()
    await tab.done("A")
    await clock.sleeping(OTHERS + 1)
    late = await server.tab()
    assert await late.probe("p") == {"type": "cf_agent_stream_pending", "id": "B", "probeId": "p"}
    start_of_wait = len(late.frames)
    await typing.ask("C")
    await tab.done("B")
    await clock.sleeping(OTHERS + 1)
    clock.advance(0.3)
    await second.reached()
    await late.settle()
    assert "cf_agent_stream_resume_none" not in late.kinds(start_of_wait)
    assert late.frames[-1] == {"type": "cf_agent_stream_resuming", "id": "C"}
    await late.ack("C")
    await late.settle()
    second.open()
    await late.done("C")
    assert text_of(chunks_of(late.frames, "C")) == "three."
