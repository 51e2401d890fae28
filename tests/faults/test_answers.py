"""Answers to tool calls in odd places and at odd moments: none is lost, and no call stays open without its record."""

import json
from collections.abc import Callable
from typing import Any

import anyio
import pytest

from perdure import ChatResponse, Debounce, Think, callable, client_tool, tool
from perdure.agent.stream import SEGMENT
from perdure.chat.answers import NOT_RUN
from perdure.chat.repair import INTERRUPTED
from perdure.protocol import codec
from perdure.protocol.messages import is_tool_part
from perdure.storage.contract import LoadPath
from perdure.storage.interactions import LoadInteractions
from perdure.testing import Gate, ScriptedModel, call, pause, say, strict_provider_errors
from tests.support import ErrorLog, agent
from tests.support.hosting import Hosting, hosting
from tests.support.rooms import WINDOW, Room

pytestmark = pytest.mark.anyio

PLACE = client_tool("place")


class Till:
    """A tool that needs approval, and what it was paid."""

    def __init__(self) -> None:
        self.paid: list[int] = []

        @tool(needs_approval=True)
        async def pay(amount: int) -> str:
            """Pay."""
            self.paid.append(amount)
            return f"paid {amount}"

        self.tool = pay


@pytest.fixture
def till() -> Till:
    return Till()


def pays(amount: int = 1, id: str = "c1") -> Any:
    return call("pay", {"amount": amount}, id=id)


async def stored_parts(host: Hosting, key: str = "agent/room") -> dict[str, dict[str, Any]]:
    """The tool parts of the whole stored path, not only of what clients are sent."""
    messages = [codec.decode(row.body) for row in await host.read(LoadPath(key))]
    return {part["toolCallId"]: part for message in messages for part in message["parts"] if is_tool_part(part)}


@callable
async def note(self: Think, size: int) -> None:
    """Add a message of this size without a turn."""
    await self.add_messages({"role": "user", "parts": [{"type": "text", "text": "x" * size}]})


# ── the message is not in memory ────────────────────────────────────


async def test_a_call_that_was_windowed_out_of_memory_is_answered_in_its_message(till: Till) -> None:
    model = ScriptedModel([[pays()], [say("done")]])
    kind = agent(model, till.tool, hydration_byte_budget=1500, note=note)
    async with hosting(kind) as host:
        room = Room(host)
        await room.ask()
        for _ in range(3):
            await room.line.call("note", 1000)
        room.decide("c1")
        await room.settle()
        assert (await stored_parts(host))["c1"]["state"] == "approval-responded"
        await room.continued()
        part = (await stored_parts(host))["c1"]
        assert (part["state"], part["output"]) == ("output-available", "paid 1")
    assert till.paid == [1]


async def test_a_call_that_was_windowed_out_of_memory_is_given_up_in_its_message(till: Till) -> None:
    model = ScriptedModel([[pays()], [say("done")]])
    kind = agent(model, till.tool, hydration_byte_budget=1500, note=note)
    async with hosting(kind) as host:
        room = Room(host)
        await room.ask()
        for _ in range(3):
            await room.line.call("note", 1000)
        await room.ask("Never mind.")
        part = (await stored_parts(host))["c1"]
        assert (part["state"], part["errorText"]) == ("output-error", INTERRUPTED)
    assert till.paid == []


@pytest.mark.parametrize("by", ["page", "code"])
async def test_what_was_read_for_an_answer_is_let_go_of_when_nothing_goes_on(till: Till, by: str) -> None:
    @callable
    async def agree(self: Think) -> bool:
        return await self.approve("c1", go_on=False)

    @callable
    def held(self: Think) -> int:
        """Bytes of the conversation that are in memory."""
        nodes = self._bound.chat._transcript.known.values()
        return sum(node.size for node in nodes if node.loaded)

    model = ScriptedModel([[pays()]])
    kind = agent(model, till.tool, hydration_byte_budget=4000, note=note, agree=agree, held=held)
    async with hosting(kind) as host:
        room = Room(host)
        await room.ask()
        for _ in range(8):
            await room.line.call("note", 1000)
        assert await room.line.call("held") <= 4000
        if by == "page":
            room.decide("c1", autoContinue=False)
        else:
            assert await room.line.call("agree")
        await room.settle()
        assert (await stored_parts(host))["c1"]["state"] == "approval-responded"
        assert await room.line.call("held") <= 4000


# ── the message was replaced ────────────────────────────────────────


@callable
async def settle_calls(self: Think, *calls: str) -> None:
    """Replace the last message by one in which these calls have a result."""
    message = self.messages[-1]
    parts = [
        {**part, "state": "output-available", "output": "by the app"} if part.get("toolCallId") in calls else part
        for part in message["parts"]
    ]
    await self.add_messages({**message, "parts": parts}, mode="upsert")


async def test_a_call_that_the_application_settled_in_its_message_waits_no_longer(till: Till) -> None:
    model = ScriptedModel([[pays()], [say("done")]])
    async with hosting(agent(model, till.tool, settle_calls=settle_calls)) as host:
        room = Room(host)
        await room.ask()
        await room.line.call("settle_calls", "c1")
        for answer in (room.decide, room.result):
            answer("c1")
            await room.settle()
        await host.advance(WINDOW)
        assert len(model.requests) == 1, "an answer that comes too late starts nothing"
        assert (await room.parts())["c1"]["output"] == "by the app"
        await room.ask("Go on.")
        assert strict_provider_errors(model.requests[1]) == []
    assert till.paid == []


async def test_the_conversation_goes_on_when_the_application_settles_the_last_call_that_was_missing() -> None:
    model = ScriptedModel([[call("place", id="c1"), call("place", id="c2")], [say("done")]])
    async with hosting(agent(model, PLACE, settle_calls=settle_calls)) as host:
        room = Room(host)
        await room.ask()
        room.result("c1", "Brno")
        await room.settle()
        await room.line.call("settle_calls", "c2")
        await room.continued()
        assert {call: part["output"] for call, part in (await room.parts()).items()} == {
            "c1": "Brno",
            "c2": "by the app",
        }
        model.assert_done()


async def test_a_call_that_is_still_open_in_the_new_message_still_waits(till: Till) -> None:
    model = ScriptedModel([[pays(1, "c1"), pays(2, "c2")], [say("done")]])
    async with hosting(agent(model, till.tool, settle_calls=settle_calls)) as host:
        room = Room(host)
        await room.ask()
        await room.line.call("settle_calls", "c1")
        room.decide("c2")
        await room.continued()
        assert till.paid == [2]
        assert {call: part["output"] for call, part in (await room.parts()).items()} == {
            "c1": "by the app",
            "c2": "paid 2",
        }


async def test_a_message_cannot_take_the_id_of_an_answer_that_is_being_made() -> None:
    gate = Gate()
    model = ScriptedModel([[say("Half"), pause(gate)]])

    @callable
    async def takes(self: Think, id: str) -> None:
        await self.add_messages({"id": id, "role": "assistant", "parts": []}, mode="upsert")

    async with hosting(agent(model, takes=takes)) as host:
        room = Room(host)
        request = room.begin()
        start = await room.line.seen(lambda frame: '"messageId"' in frame.get("body", ""))
        reply = await room.line.reply("takes", json.loads(start["body"])["messageId"])
        assert "an answer that is being made" in reply["error"]
        gate.open()
        await room.done(request)
        assert [message["role"] for message in await room.messages()] == ["user", "assistant"]


# ── questions that expire ───────────────────────────────────────────


async def test_a_question_does_not_expire_with_an_earlier_one_on_a_call_of_the_same_id(till: Till) -> None:
    """Some models count their calls anew in each conversation."""
    model = ScriptedModel([[pays()], [pays()], [say("done")]])
    async with hosting(agent(model, till.tool, approval_ttl=100), idle_seconds=None) as host:
        room = Room(host)
        await room.ask()
        room.line.post({"type": "cf_agent_chat_clear"})
        await room.settle()
        await host.advance(60)
        await room.ask()
        for _ in range(20):
            await host.advance(3)  # the alarm looks at the clock every ten seconds, and the agent at its timers then
        assert await room.states() == {"c1": "approval-requested"}
        await host.advance(60)
        await room.continued()
        assert await room.states() == {"c1": "output-denied"}
    assert till.paid == []


# ── stores that are slow, or fail ───────────────────────────────────


def shows(text: str) -> Callable[[dict[str, Any]], bool]:
    return lambda frame: text in json.dumps(frame)


async def test_an_answer_in_mid_stream_is_shown_to_nobody_before_it_is_stored() -> None:
    gate = Gate()
    model = ScriptedModel([[call("place", id="c1"), pause(gate)], [say("done")]])
    async with hosting(agent(model, PLACE)) as host:
        room = Room(host)
        other = host.line(agent="agent")
        request = room.begin()
        await other.seen(shows("tool-input-available"))
        host.store.hold()
        room.result("c1", "Brno")
        for _ in range(20):
            await anyio.lowlevel.checkpoint()
        assert not any(shows("Brno")(frame) for frame in other.frames)
        host.store.release()
        await other.seen(shows('\\"type\\":\\"tool-output-available\\"'))
        await other.seen(shows("cf_agent_message_updated"))
        gate.open()
        await room.done(request)
        await room.continued()
        assert (await room.parts())["c1"]["output"] == "Brno"


async def test_an_answer_is_stored_before_the_model_sees_it() -> None:
    model = ScriptedModel([[call("place", id="c1")], [say("done")]])
    async with hosting(agent(model, PLACE)) as host:
        room = Room(host)
        await room.ask()
        await host.store.settled()
        host.store.hold()
        room.result("c1")
        await host.clock.sleeping(3)
        host.clock.advance(WINDOW)
        for _ in range(50):
            await anyio.lowlevel.checkpoint()
        assert len(model.requests) == 1
        host.store.release()
        await room.continued()
        model.assert_done()


@pytest.mark.parametrize("answer", ["result", "decision"])
async def test_an_answer_that_could_not_be_stored_was_never_given(answer: str, till: Till, log: ErrorLog) -> None:
    model = ScriptedModel([[call("place", id="c1") if answer == "result" else pays()], [say("done")]])
    async with hosting(agent(model, till.tool, PLACE)) as host:
        room = Room(host)
        await room.ask()
        before = await room.states()
        await host.store.settled()
        host.store.fail()
        room.result("c1") if answer == "result" else room.decide("c1")
        assert (await room.line.ended())[0] == 1011
        assert not any(frame["type"] == "cf_agent_message_updated" for frame in room.line.frames)
        log.expect("is dropped from memory: database or disk is full")
        host.store.heal()
        host.clock.advance(WINDOW)

        again = Room(host)
        assert await again.states() == before
        assert (len(model.requests), till.paid) == (1, [])
        again.result("c1") if answer == "result" else again.decide("c1")
        await again.continued()
        assert (await again.states())["c1"] == "output-available"
        assert till.paid == ([] if answer == "result" else [1])


async def test_who_decides_in_code_learns_that_it_could_not_be_stored(till: Till, log: ErrorLog) -> None:
    @callable
    async def agree(self: Think) -> bool:
        return await self.approve("c1")

    model = ScriptedModel([[pays()]])
    async with hosting(agent(model, till.tool, agree=agree)) as host:
        room = Room(host)
        await room.ask()
        await host.store.settled()
        host.store.fail()
        room.line.post({"type": "rpc", "id": "x", "method": "agree", "args": []})
        await room.line.ended()
        log.expect("is dropped from memory: database or disk is full")
        assert not any(frame.get("success") for frame in room.line.frames)
        host.store.heal()
        assert await Room(host).states() == {"c1": "approval-requested"}
    assert till.paid == []


async def test_an_answer_whose_chunk_fills_a_segment_is_stored_with_it_or_not_at_all(log: ErrorLog) -> None:
    gate = Gate()
    model = ScriptedModel([[call("place", id="c1"), say(*["x"] * (SEGMENT - 2)), pause(gate)]])
    async with hosting(agent(model, PLACE)) as host:
        room = Room(host)
        room.begin()
        await gate.reached()
        await host.store.settled()
        host.store.fail(after=1)
        room.result("c1", autoContinue=False)
        await room.line.ended()
        log.expect("is dropped from memory: database or disk is full")
        host.store.heal()
        again = Room(host)
        assert (await again.states())["c1"] in {"output-available", "input-available"}
        waiting = [row.call for row in await host.read(LoadInteractions("agent/room")) if row.state == "waiting"]
        assert waiting == [call for call, state in (await again.states()).items() if state == "input-available"]


# ── another message comes, and goes again ───────────────────────────


def told(gate: Gate) -> dict[str, Any]:
    """A class whose first turn is not over before the gate opens, though its answer is stored."""

    async def on_chat_response(self: Think, response: ChatResponse) -> None:
        if not response.continuation:
            await gate.passed()

    return {"on_chat_response": on_chat_response}


async def test_the_conversation_goes_on_when_the_message_that_overtook_the_answer_is_taken_back(till: Till) -> None:
    gate = Gate()
    model = ScriptedModel([[pays()], [say("done")]])
    async with hosting(agent(model, till.tool, **told(gate))) as host:
        room = Room(host)
        await room.ask()
        await gate.reached()
        second = room.begin("And another thing.")
        room.decide("c1")
        room.line.post({"type": "cf_agent_chat_request_cancel", "id": second})
        assert (await room.done(second))["outcome"] == "aborted"
        gate.open()
        await room.continued()
        assert (await room.states())["c1"] == "output-available"
        model.assert_done()
    assert till.paid == [1]


async def test_the_conversation_goes_on_when_the_turn_that_came_between_is_stopped_before_it_began(till: Till) -> None:
    gate = Gate()
    model = ScriptedModel([[pays(), pause(gate)], [say("done")]])
    async with hosting(agent(model, till.tool, message_concurrency=Debounce(ms=60_000))) as host:
        room = Room(host)
        first = room.begin()
        await gate.reached()
        second = room.begin("And another thing.")
        gate.open()
        await room.done(first)
        await host.clock.sleeping(3)  # it is the turn of the second message, which waits for quiet
        room.decide("c1")
        room.line.post({"type": "cf_agent_chat_request_cancel", "id": second})
        await room.done(second)
        await room.continued()
        assert (await room.states())["c1"] == "output-available"
        model.assert_done()
    assert till.paid == [1]


async def test_the_message_that_waits_sees_an_answer_that_came_meanwhile(till: Till) -> None:
    gate = Gate()
    model = ScriptedModel([[call("place", id="c1"), pays(1, "c2")], [say("done")]])
    async with hosting(agent(model, till.tool, PLACE, **told(gate))) as host:
        room = Room(host)
        await room.ask()
        second = room.begin("And another thing.")
        room.result("c1", "Brno")
        room.decide("c2")
        await room.settle()
        gate.open()
        await room.done(second)
        await host.advance(WINDOW)
        model.assert_done()
        assert strict_provider_errors(model.requests[1]) == []
        parts = await room.parts()
        assert parts["c1"]["output"] == "Brno"
        assert parts["c2"]["errorText"] == NOT_RUN
    assert till.paid == []


# ── stops ───────────────────────────────────────────────────────────


async def test_a_turn_that_is_stopped_does_not_go_on_by_itself_after_answers_that_it_got(till: Till) -> None:
    gate = Gate()
    model = ScriptedModel([[call("place", id="c1"), say("Well"), pause(gate)], [say("done")]])
    async with hosting(agent(model, till.tool, PLACE)) as host:
        room = Room(host)
        request = room.begin()
        await gate.reached()
        room.result("c1", "Brno")
        room.line.post({"type": "cf_agent_stream_resume_request", "probeId": "p"})
        room.line.post({"type": "cf_agent_chat_request_cancel", "id": request})
        assert (await room.done(request))["outcome"] == "aborted"
        await room.settle()
        await host.advance(WINDOW)
        assert len(model.requests) == 1
        assert (await room.parts())["c1"]["output"] == "Brno"
        await room.ask("Go on.")
        assert strict_provider_errors(model.requests[1]) == []


async def test_a_continuation_that_is_stopped_before_it_began_gives_its_approved_calls_up(till: Till) -> None:
    model = ScriptedModel([[call("place", id="c1"), pays(1, "c2")], [say("done")]])
    async with hosting(agent(model, till.tool, PLACE)) as host:
        room = Room(host)
        await room.ask()
        room.result("c1", "Brno")
        room.decide("c2")
        room.line.post({"type": "cf_agent_stream_resume_request", "probeId": "p"})
        pending = await room.line.seen(lambda frame: frame["type"] == "cf_agent_stream_pending")
        room.line.post({"type": "cf_agent_chat_request_cancel", "id": pending["id"]})
        end = await room.done(pending["id"])
        assert (end["outcome"], end["continuation"]) == ("aborted", True)
        assert room.line.frames[-1] == {"type": "cf_agent_stream_resume_none"}, "nobody waits for it"
        await host.advance(WINDOW)
        assert len(model.requests) == 1
        parts = await room.parts()
        assert parts["c1"]["output"] == "Brno"
        assert parts["c2"]["errorText"] == NOT_RUN
        await room.ask("Go on.")
        assert strict_provider_errors(model.requests[1]) == []
    assert till.paid == []


# ── the message has left the path ───────────────────────────────────


@callable
async def branch(self: Think) -> None:
    """Let the conversation go on after the first question in another way."""
    await self.add_messages("Something else.", parent=self.messages[0]["id"])


async def test_an_answer_to_a_call_that_is_not_shown_any_more_is_kept_and_nothing_goes_on(till: Till) -> None:
    model = ScriptedModel([[call("place", id="c1"), pays(1, "c2")], [say("done")]])
    async with hosting(agent(model, till.tool, PLACE, branch=branch)) as host:
        room = Room(host)
        await room.ask()
        await room.line.call("branch")
        room.result("c1", "Brno")
        room.decide("c2")
        await room.settle()
        await host.advance(WINDOW)
        assert len(model.requests) == 1
        assert [message["role"] for message in await room.messages()] == ["user", "user"]
        await room.ask("Go on.")
        model.assert_done()
        states = {row.call: row.state for row in await host.read(LoadInteractions("agent/room"))}
        assert states == {}, "nothing of it is open"
    assert till.paid == []


async def test_a_conversation_that_takes_another_way_before_the_continuation_begins_goes_that_way(till: Till) -> None:
    model = ScriptedModel([[pays()]])
    async with hosting(agent(model, till.tool, branch=branch)) as host:
        room = Room(host)
        await room.ask()
        room.decide("c1")
        await room.line.call("branch")
        end = await room.continued()
        assert end["outcome"] == "skipped"
        model.assert_done()
        assert await host.read(LoadInteractions("agent/room")) == []
    assert till.paid == []


async def test_a_call_far_back_on_the_path_is_answered_and_gone_on_with(till: Till) -> None:
    """Its message is so far back that the part of the path that is in memory does not border on it."""
    model = ScriptedModel([[pays()], [say("done")]])
    kind = agent(model, till.tool, hydration_byte_budget=1500, note=note)
    async with hosting(kind) as host:
        room = Room(host)
        await room.ask()
        for _ in range(8):
            await room.line.call("note", 1000)
        room.decide("c1")
        await room.continued()
        assert (await stored_parts(host))["c1"]["output"] == "paid 1"
        assert [row.role for row in await host.read(LoadPath("agent/room"))] == ["user", "assistant", *["user"] * 8]
    assert till.paid == [1]
