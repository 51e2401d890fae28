"""Events that meet: frames in one piece, requests and ends in the same breath, in every order that was thought of."""

import itertools
import json
from typing import Any

import pytest

from perdure.testing import Gate, ScriptedModel, pause, say, strict_provider_errors
from tests.support import Frame, Serve, Tab, agent, chat_request, chunks_of, text_of, user_message

pytestmark = pytest.mark.anyio

PROBE = {"type": "cf_agent_stream_resume_request", "probeId": "p"}
CLEAR = {"type": "cf_agent_chat_clear"}


def ask(request: str, *messages: Frame, **body: Any) -> Frame:
    return chat_request(request, json.dumps({"messages": messages, **body}))


def stop(request: str) -> Frame:
    return {"type": "cf_agent_chat_request_cancel", "id": request}


def ack(request: str) -> Frame:
    return {"type": "cf_agent_stream_resume_ack", "id": request}


def well_formed(frames: list[Frame], request: str) -> bool:
    """Whether nothing follows the end, and every chunk came once or again from the beginning in a replay."""
    own = [frame for frame in frames if frame.get("id") == request and frame["type"] == "cf_agent_use_chat_response"]
    ends = [index for index, frame in enumerate(own) if frame["done"]]
    return ends == [len(own) - 1]


async def usable(tab: Tab, model: ScriptedModel) -> None:
    """The agent is idle and answers, with a request that a strict provider takes."""
    await tab.ask("r-last", user_message("The last one", "u-last"))
    assert (await tab.done("r-last"))["outcome"] == "completed"
    assert strict_provider_errors(model.requests[-1]) == []
    assert (await tab.probe("p-last")) == {"type": "cf_agent_stream_resume_none", "reason": "idle", "probeId": "p-last"}


@pytest.mark.parametrize("first", ["probe", "ask"])
async def test_a_probe_and_a_request_that_cross_leave_the_answer_whole(serve: Serve, first: str) -> None:
    """The hook's probe may be answered with the very request that the same tab sends."""
    gate = Gate()
    model = ScriptedModel([[say("Half"), pause(gate), say(" done.")], say("Last.")])
    server = await serve(agent(model))
    tab = await server.tab()
    await tab.opened()
    frames = [PROBE, ask("r1", user_message("Hi"))]
    await tab.send_together(*(frames if first == "probe" else reversed(frames)))
    await gate.reached()
    await tab.settle()
    if any(frame["type"] == "cf_agent_stream_resuming" for frame in tab.frames):
        await tab.ack("r1")
        await tab.seen(lambda frame: frame.get("replayComplete", False))
    gate.open()
    await tab.done("r1")
    assert text_of(chunks_of(tab.frames, "r1")) == "Half done."
    assert well_formed(tab.frames, "r1")
    await usable(tab, model)


@pytest.mark.parametrize("order", list(itertools.permutations(["stop", "clear", "ask", "probe"])), ids="-".join)
async def test_what_comes_in_one_piece_during_a_turn_is_handled_in_order(serve: Serve, order: tuple[str, ...]) -> None:
    gate = Gate()
    model = ScriptedModel([[say("Half"), pause(gate)], say("Second."), say("Last.")])
    server = await serve(agent(model))
    tab, other = await server.tab(), await server.tab()
    question = user_message("First", "u-1")
    await tab.ask("r1", question)
    await gate.reached()
    second = user_message("Second", "u-2")
    sent = {"stop": stop("r1"), "clear": CLEAR, "ask": ask("r2", second), "probe": PROBE}
    await tab.send_together(*(sent[name] for name in order))
    for seen in (tab, other):
        assert (await seen.done("r1"))["outcome"] == "aborted"
        await seen.done("r2")
        await seen.settle()
        assert well_formed(seen.frames, "r1")
        assert well_formed(seen.frames, "r2")
    assert [frame.get("probeId") for frame in tab.frames].count("p") == 1

    cleared_last = order.index("clear") > order.index("ask")
    assert tab.of("r2")[-1]["outcome"] == ("skipped" if cleared_last else "completed")
    stored = await server.stored()
    assert [message["id"] for message in stored if message["role"] == "user"] == ([] if cleared_last else ["u-2"])
    await usable(tab, model)


async def test_an_ack_that_meets_the_end_of_its_stream_gets_the_end_once(serve: Serve) -> None:
    gate = Gate()
    model = ScriptedModel([[say("Half"), pause(gate), say(" done.")], say("Last.")])
    server = await serve(agent(model))
    tab = await server.tab()
    await tab.ask("r1", user_message("Hi"))
    await gate.reached()
    late = await server.tab()
    await late.opened()
    await late.send_together(ack("r1"), stop("r1"), ack("r1"))
    await late.seen(lambda frame: frame.get("outcome") == "aborted")
    await late.settle()
    ends = [frame for frame in late.of("r1") if frame.get("done")]
    assert [frame.get("replay", False) for frame in ends] == [False]
    assert text_of(chunks_of([frame for frame in late.frames if frame.get("replay")], "r1")) == "Half" * 2
    await usable(tab, model)


async def test_two_tabs_that_ask_in_the_same_breath_are_answered_in_order(serve: Serve) -> None:
    model = ScriptedModel([say("One."), say("Two."), say("Last.")])
    server = await serve(agent(model))
    tabs = [await server.tab(), await server.tab()]
    for number, tab in enumerate(tabs):
        tab.write_frame(ask(f"r{number}", user_message(f"From {number}", f"u-{number}")))
    for number in range(2):
        for tab in tabs:
            assert (await tab.done(f"r{number}"))["outcome"] == "completed"
    roles = [message["role"] for message in await server.stored()]
    assert roles == ["user", "assistant", "user", "assistant"]
    assert [strict_provider_errors(request) for request in model.requests] == [[], []]
    await usable(tabs[0], model)


async def test_an_edit_of_the_question_that_is_being_answered_is_answered_next(serve: Serve) -> None:
    gate = Gate()
    model = ScriptedModel([[say("Half"), pause(gate), say(" done.")], say("Edited."), say("Last.")])
    server = await serve(agent(model))
    tab, other = await server.tab(), await server.tab()
    question = user_message("Frist", "u-1")
    await tab.ask("r1", question)
    await gate.reached()
    await tab.ask("r2", {**question, "parts": [{"type": "text", "text": "First"}]})
    await other.seen(lambda frame: '"First"' in json.dumps(frame))
    gate.open()
    await tab.done("r2")
    texts = [message["parts"][-1]["text"] for message in await server.stored()]
    assert texts == ["First", "Edited."]
    assert [message["parts"][-1]["text"] for message in model.requests[1].messages] == ["First"]
    stored = await server.stored()
    await server.stop()
    again = await serve(agent(ScriptedModel([say("Last.")])))
    assert await again.stored() == stored


async def test_a_regenerate_while_another_question_waits_keeps_both_questions(serve: Serve) -> None:
    gate = Gate()
    model = ScriptedModel([say("One."), [pause(gate), say("One, again.")], say("Two."), say("Last.")])
    server = await serve(agent(model))
    tab = await server.tab()
    first, second = user_message("First", "u-1"), user_message("Second", "u-2")
    await tab.ask("r1", first)
    await tab.done("r1")
    await tab.ask("r2", first, trigger="regenerate-message")
    await gate.reached()
    await tab.ask("r3", *(await server.stored()), second)
    await tab.settle()
    gate.open()
    await tab.done("r3")
    texts = [message["parts"][-1]["text"] for message in await server.stored()]
    assert texts == ["First", "One, again.", "Second", "Two."]
    assert [strict_provider_errors(request) for request in model.requests] == [[]] * 3
    await usable(tab, model)


@pytest.mark.parametrize(
    "stopped", [set(some) for count in range(5) for some in itertools.combinations(range(1, 5), count)]
)
@pytest.mark.parametrize("restarts", [False, True])
async def test_whichever_waiting_requests_are_stopped_each_question_stands_before_its_own_answer(
    serve: Serve, stopped: set[int], restarts: bool
) -> None:
    gates = [Gate() for _ in range(5)]
    model = ScriptedModel([[say(f"{number}."), pause(gates[number])] for number in range(5) if number not in stopped])
    server = await serve(agent(model))
    tab = await server.tab()
    for number in range(5):
        await tab.ask(f"r{number}", user_message(f"q{number}", f"u{number}"))
    for number in stopped:
        await tab.cancel(f"r{number}")
    await tab.settle()
    if restarts:
        await gates[0].reached()
        await server.stop()
        server = await serve(agent(ScriptedModel([])))
        answered = {0}
    else:
        for gate in gates:
            gate.open()
        answered = set(range(5)) - stopped
        for number in answered:
            await tab.done(f"r{number}")
    texts = [message["parts"][-1]["text"] for message in await server.stored()]
    expected = [[f"q{number}", f"{number}."] if number in answered else [f"q{number}"] for number in range(5)]
    assert texts == list(itertools.chain(*expected))
    for request in model.requests:
        shown = [message["parts"][-1]["text"] for message in request.messages]
        assert shown == texts[: texts.index(shown[-1]) + 1], "every prompt has all that was said before, in that order"


async def test_requests_that_wait_survive_many_stops_and_questions_in_between(serve: Serve) -> None:
    gate = Gate()
    model = ScriptedModel([[pause(gate), say("0.")], *(say(f"{number}.") for number in range(1, 6)), say("Last.")])
    server = await serve(agent(model))
    tab, other = await server.tab(), await server.tab()
    posted: list[Frame] = []
    for number in range(10):
        posted.append(user_message(f"q{number}", f"u-{number}"))
        await tab.ask(f"r{number}", *posted)
    await tab.settle()
    for number in range(1, 10, 2):
        await other.cancel(f"r{number}")
    await other.settle()
    gate.open()
    await other.done("r8")
    ids = [message["id"] for message in await server.stored() if message["role"] == "user"]
    assert sorted(ids) == sorted(f"u-{number}" for number in range(10)), "no question is lost"
    assert [strict_provider_errors(request) for request in model.requests] == [[]] * 5
    stored = await server.stored()
    await server.stop()
    again = await serve(agent(ScriptedModel([])))
    assert await again.stored() == stored
