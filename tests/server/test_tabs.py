"""Several tabs on one conversation: what each is shown, and that none can harm another."""

import json

import pytest
from websockets.frames import Frame as WireFrame
from websockets.frames import Opcode

from perdure import Limits
from perdure.testing import Gate, ScriptedModel, pause, say
from tests.requirements import requirement
from tests.support import Serve, agent, chat_request, chunks_of, text_of, user_message

pytestmark = pytest.mark.anyio

KIB = 1024
SMALL = {"window": KIB, "upload": KIB, "frame": 64 * KIB}


@requirement("fault:MT-02")
async def test_a_tab_that_owes_an_ack_is_held_out_and_the_others_are_not(serve: Serve) -> None:
    gates = [Gate(), Gate(), Gate()]
    deltas = [f"d{number} " for number in range(30)]
    moves = [
        say(*deltas[:10]),
        pause(gates[0]),
        say(*deltas[10:20]),
        pause(gates[1]),
        say(*deltas[20:]),
        pause(gates[2]),
    ]
    server = await serve(agent(ScriptedModel([moves])))
    first, second = await server.tab(), await server.tab()
    await first.ask("r1", "Go")
    await gates[0].reached()
    third = await server.tab()
    await third.opened()
    gates[0].open()
    await first.delta("r1", "d19 ")
    await second.delta("r1", "d19 ")
    await third.settle()
    assert third.of("r1") == [{"type": "cf_agent_stream_resuming", "id": "r1"}]

    await third.ack("r1")
    await third.seen(lambda frame: frame.get("replayComplete", False))
    gates[1].open()
    gates[2].open()
    for tab in (first, second, third):
        await tab.done("r1")
        frames = [frame for frame in tab.of("r1") if "seq" in frame]
        assert [frame["seq"] for frame in frames] == list(range(len(frames)))
        assert text_of(chunks_of(frames, "r1")) == "".join(deltas)


@requirement("protocol:61", "fault:MT-06")
async def test_a_page_cannot_overwrite_the_history_by_pushing_a_list(serve: Serve) -> None:
    server = await serve(agent(ScriptedModel([say("One."), say("Two.")])))
    tab, other = await server.tab(), await server.tab()
    await tab.ask("r1", "First")
    await tab.done("r1")
    await tab.ask("r2", *(await server.stored()), user_message("Second"))
    await other.done("r2")
    await tab.done("r2")
    stored = await server.stored()
    count, mark = len(tab.frames), len(other.frames)
    edited = [{**stored[0], "parts": [{"type": "text", "text": "Something else"}]}, *stored[1:]]
    for messages in (stored[:3], edited, [], "x", None):
        await tab.send({"type": "cf_agent_chat_messages", "messages": messages})
    await tab.settle()
    await other.settle()
    assert (len(tab.frames), len(other.frames)) == (count, mark)
    assert await server.stored() == stored


async def test_a_hundred_tabs_all_see_the_same(serve: Serve) -> None:
    server = await serve(agent(ScriptedModel([say(*(f"d{number} " for number in range(50)))])))
    tabs = [await server.tab() for _ in range(100)]
    for tab in tabs:
        await tab.opened()
    await tabs[0].ask("r1", "Go")
    for tab in tabs:
        await tab.done("r1")
    assert all(tab.frames[4:] == tabs[1].frames[4:] for tab in tabs[1:])
    assert tabs[0].frames[3:] == tabs[1].frames[4:]
    assert len(chunks_of(tabs[1].frames, "r1")) == 56


async def test_tabs_of_another_conversation_see_nothing(serve: Serve) -> None:
    server = await serve(agent(ScriptedModel([say("Hello.")])))
    tab, stranger = await server.tab("one"), await server.tab("two")
    await stranger.opened()
    await tab.ask("r1", "Hi")
    await tab.done("r1")
    await stranger.settle()
    assert len(stranger.frames) == 3


async def test_any_tab_may_stop_what_another_asked(serve: Serve) -> None:
    gate = Gate()
    server = await serve(agent(ScriptedModel([[say("Half"), pause(gate)]])))
    tab, other = await server.tab(), await server.tab()
    await tab.ask("r1", "Go")
    await gate.reached()
    await other.cancel("r1")
    assert (await tab.done("r1"))["outcome"] == "aborted"


async def test_tabs_that_come_and_go_leave_nothing_behind(serve: Serve) -> None:
    gate = Gate()
    server = await serve(agent(ScriptedModel([[say("Half"), pause(gate), say(" done.")]])))
    tab = await server.tab()
    await tab.ask("r1", "Go")
    await gate.reached()
    for number in range(20):
        late = await server.tab()
        await late.opened()
        if number % 2:
            await late.ack("r1")
            late.drop()
        else:
            await late.close()
    gate.open()
    await tab.done("r1")
    assert text_of(chunks_of(tab.frames, "r1")) == "Half done."
    assert len(chunks_of(tab.frames, "r1")) == len({frame["seq"] for frame in tab.of("r1") if "seq" in frame})


async def test_a_tab_that_does_not_read_is_closed_and_the_others_see_everything(serve: Serve) -> None:
    limits = Limits(**SMALL, backlog=256 * KIB)
    gates = [Gate() for _ in range(24)]
    piece = "x" * 64 * KIB
    moves = [move for gate in gates for move in (pause(gate), say(piece))]
    server = await serve(agent(ScriptedModel([moves])), limits=limits, send_buffer=16 * KIB)
    tab = await server.tab()
    slow = await server.tab(reading=False, receive_buffer=16 * KIB, max_queue=1)

    await tab.ask("r1", "Go")
    for number, gate in enumerate(gates):
        await gate.reached()
        # Before the first piece there are start and start-step, with it comes text-start.
        await tab.seen(lambda frame, seq=number + 2 if number else 1: frame.get("seq", -1) >= seq)
        gate.open()
    await tab.done("r1")
    assert text_of(chunks_of(tab.frames, "r1")) == piece * len(gates)

    slow.read_on()
    code, reason = await slow.ended()
    assert code == 1013
    assert "slow" in reason

    back = await server.tab()
    greeting = (await back.opened())[0]
    assert greeting["messages"] == await server.stored()


async def test_a_tab_that_vanishes_in_the_middle_of_a_frame_leaves_nothing_half(serve: Serve) -> None:
    server = await serve(agent(ScriptedModel([say("Hello.")])))
    tab, other = await server.tab(), await server.tab()
    await tab.opened()
    text = json.dumps(chat_request("r1", json.dumps({"messages": [user_message("x" * 10_000)]})))
    whole = WireFrame(Opcode.TEXT, text.encode()).serialize(mask=True)
    tab.write(whole[: len(whole) // 2])
    tab.drop()
    await other.settle()
    assert await server.stored() == []
    await other.ask("r2", "Hi")
    assert (await other.done("r2"))["outcome"] == "completed"
    assert len(await server.stored()) == 2


async def test_a_tab_that_vanishes_with_a_request_in_flight_has_asked(serve: Serve) -> None:
    gate = Gate()
    server = await serve(agent(ScriptedModel([[pause(gate), say("Hello.")]])))
    tab, other = await server.tab(), await server.tab()
    await tab.ask("r1", "Hi")
    await gate.reached()
    tab.drop()
    gate.open()
    await other.done("r1")
    assert len(await server.stored()) == 2
