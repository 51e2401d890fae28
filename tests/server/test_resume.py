"""Tabs that come back: offers, acks, replays, and failures that are still to be shown."""

import pytest

from perdure import ModelUnreachable
from perdure.testing import Gate, ScriptedModel, fail, pause, say
from tests.requirements import requirement
from tests.support import Frame, Serve, Tab, agent, chunks_of, text_of, user_message

pytestmark = pytest.mark.anyio

DELTAS = [f"d{number} " for number in range(30)]


def is_replay_complete(frame: Frame) -> bool:
    return frame.get("replayComplete", False)


async def replayed(tab: Tab, request: str) -> list[Frame]:
    """Ack an offer; gives the frames of the request up to the mark."""
    start = len(tab.frames)
    await tab.ack(request)
    await tab.next(is_replay_complete, since=start)
    return [frame for frame in tab.frames[start:] if frame.get("id") == request]


@requirement("fault:RS-01", "protocol:87", "protocol:88")
async def test_a_reload_in_mid_stream_loses_and_doubles_nothing(serve: Serve) -> None:
    gates = [Gate(), Gate(), Gate()]
    moves = [
        say(*DELTAS[:10]),
        pause(gates[0]),
        say(*DELTAS[10:20]),
        pause(gates[1]),
        say(*DELTAS[20:]),
        pause(gates[2]),
    ]
    server = await serve(agent(ScriptedModel([moves])))
    tab, other = await server.tab(), await server.tab()
    await tab.ask("r1", "Go")
    await tab.delta("r1", "d9 ")
    await tab.close()

    back = await server.tab()
    assert (await back.probe("p1")) == {"type": "cf_agent_stream_resuming", "id": "r1", "probeId": "p1"}
    gates[0].open()
    await other.delta("r1", "d19 ")
    await back.settle()
    assert chunks_of(back.frames, "r1") == [], "nothing live before the ack"

    first = await replayed(back, "r1")
    assert all(frame.get("replay") for frame in first)
    gates[1].open()
    gates[2].open()
    await back.done("r1")

    chunks = [frame for frame in back.of("r1") if "seq" in frame]
    assert [frame["seq"] for frame in chunks] == list(range(len(chunks))), "no gap and no overlap"
    assert text_of(chunks_of(back.frames, "r1")) == "".join(DELTAS) == (await server.stored())[-1]["parts"][-1]["text"]
    live = {frame["seq"]: frame for frame in other.of("r1") if "seq" in frame}
    assert [{k: v for k, v in frame.items() if k != "replay"} for frame in chunks] == list(live.values())
    assert {frame["seq"] for frame in chunks if frame.get("replay")} == set(range(len(first) - 1))
    assert first[-1] == {
        "type": "cf_agent_use_chat_response",
        "id": "r1",
        "body": "",
        "done": False,
        "replay": True,
        "replayComplete": True,
    }


@requirement("protocol:85", "fault:RS-02")
async def test_an_idle_agent_says_so_with_the_probes_id(serve: Serve) -> None:
    server = await serve(agent(ScriptedModel([say("Hello.")])))
    tab = await server.tab()
    await tab.opened()
    idle = {"type": "cf_agent_stream_resume_none", "reason": "idle"}
    assert await tab.probe("p7") == {**idle, "probeId": "p7"}
    assert await tab.probe() == idle
    await tab.ask("r1", "Hi")
    await tab.done("r1")
    assert await tab.probe("p8") == {**idle, "probeId": "p8"}


@requirement("protocol:99")
async def test_a_probe_that_is_repeated_is_answered_again(serve: Serve) -> None:
    gate = Gate()
    server = await serve(agent(ScriptedModel([[pause(gate), say("Hello.")]])))
    tab = await server.tab()
    assert await tab.probe("p1") == await tab.probe("p1")
    await tab.ask("r1", "Hi")
    await gate.reached()
    assert (
        await tab.probe("p2")
        == await tab.probe("p2")
        == {
            "type": "cf_agent_stream_resuming",
            "id": "r1",
            "probeId": "p2",
        }
    )
    gate.open()
    await tab.done("r1")


@requirement("protocol:86")
async def test_a_probe_during_a_stream_gets_its_own_offer_beside_the_one_on_connect(serve: Serve) -> None:
    gate = Gate()
    server = await serve(agent(ScriptedModel([[say("Half"), pause(gate)]])))
    tab = await server.tab()
    await tab.ask("r1", "Go")
    await gate.reached()
    late = await server.tab()
    assert (await late.opened())[0] == {"type": "cf_agent_stream_resuming", "id": "r1"}
    assert await late.probe("p1") == {"type": "cf_agent_stream_resuming", "id": "r1", "probeId": "p1"}
    gate.open()
    await late.done("r1")


@requirement("protocol:92", "fault:RS-03")
async def test_a_probe_before_the_first_chunk_is_pending_until_the_stream_is_offered(serve: Serve) -> None:
    gate, last = Gate(), Gate()
    model = ScriptedModel([[say("Hello."), pause(last)]])

    async def get_model(self: object) -> ScriptedModel:
        await gate.passed()
        return model

    server = await serve(agent(None, get_model=get_model))
    tab = await server.tab()
    await tab.ask("r1", "Go")
    await gate.reached()
    late = await server.tab()
    assert await late.probe("p1") == {"type": "cf_agent_stream_pending", "id": "r1", "probeId": "p1"}
    start = len(late.frames)
    gate.open()
    assert await late.next(since=start) == {"type": "cf_agent_stream_resuming", "id": "r1"}
    frames = await replayed(late, "r1")
    assert frames[0]["seq"] == 0
    last.open()
    await late.done("r1")


@requirement("protocol:93", "fault:RS-03")
async def test_with_several_requests_waiting_a_parked_tab_waits_for_one_that_streams(serve: Serve) -> None:
    gates, last = {"First": Gate(), "Second": Gate(), "Third": Gate()}, Gate()
    questions: list[str] = []

    async def get_model(self) -> ScriptedModel | None:
        question = self.messages[len(questions)]["parts"][0]["text"]
        questions.append(question)
        await gates[question].passed()
        return ScriptedModel([[say("Here."), pause(last)]]) if question == "Third" else None

    server = await serve(agent(None, get_model=get_model))
    tab = await server.tab()
    posted = []
    for number, text in enumerate(gates, 1):
        posted.append(user_message(text))
        await tab.ask(f"r{number}", *posted)
        await tab.settle()
    late = await server.tab()
    assert await late.probe("p1") == {"type": "cf_agent_stream_pending", "id": "r3", "probeId": "p1"}

    start = len(late.frames)
    for gate in gates.values():
        gate.open()
    await late.next(lambda frame: frame["type"].startswith("cf_agent_stream_"), since=start)
    assert late.frames[-1] == {"type": "cf_agent_stream_resuming", "id": "r3"}, "two came to nothing, the third did not"
    await replayed(late, "r3")
    last.open()
    await late.done("r3")


@requirement("engine:107")
@pytest.mark.parametrize("end", ["cancelled", "failed"])
async def test_a_tab_that_comes_back_before_the_stream_is_kept_for_the_turn_behind_it(serve: Serve, end: str) -> None:
    preparing, last = Gate(), Gate()
    models = [None, ScriptedModel([[say("Second."), pause(last)]])]

    async def get_model(self: object) -> ScriptedModel | None:
        model = models.pop(0)
        if model is None:
            await preparing.passed()
        return model

    server = await serve(agent(None, get_model=get_model))
    tab, other = await server.tab(), await server.tab()
    first = user_message("First")
    await tab.ask("r1", first)
    await preparing.reached()
    await tab.close()
    back = await server.tab()
    assert (await back.opened())[0] == {"type": "cf_agent_stream_pending", "id": "r1"}
    await other.ask("r2", first, user_message("Second"))
    await other.settle()

    start = len(back.frames)
    if end == "cancelled":
        await other.cancel("r1")
    else:
        preparing.open()
    offered = await back.next(lambda frame: frame["type"].startswith("cf_agent_stream_"), since=start)
    assert offered == {"type": "cf_agent_stream_resuming", "id": "r2"}
    assert text_of(chunks_of(await replayed(back, "r2"), "r2")) in {"", "Second."}
    last.open()
    await back.done("r2")
    assert text_of(chunks_of(back.frames, "r2")) == "Second."


@requirement("fault:RS-03")
async def test_a_parked_tab_is_released_when_its_turn_comes_to_nothing(serve: Serve) -> None:
    gate = Gate()

    async def get_model(self: object) -> None:
        await gate.passed()

    server = await serve(agent(None, get_model=get_model))
    tab = await server.tab()
    await tab.ask("r1", "Go")
    await gate.reached()
    late = await server.tab()
    await late.probe("p1")
    start = len(late.frames)
    await tab.cancel("r1")
    released = await late.next(lambda frame: frame["type"] == "cf_agent_stream_resume_none", since=start)
    assert released == {"type": "cf_agent_stream_resume_none"}


@requirement("fault:RS-04", "engine:108")
async def test_two_acks_are_two_whole_replays(serve: Serve) -> None:
    gate = Gate()
    server = await serve(agent(ScriptedModel([[say(*DELTAS[:5]), pause(gate), say(*DELTAS[5:])]])))
    tab = await server.tab()
    await tab.ask("r1", "Go")
    await gate.reached()
    late = await server.tab()
    await late.probe("p1")
    replays = [await replayed(late, "r1"), await replayed(late, "r1")]
    for frames in replays:
        assert chunks_of(frames, "r1")[0]["type"] == "start"
        assert text_of(chunks_of(frames, "r1")) == "".join(DELTAS[:5])
    gate.open()
    await late.done("r1")
    live = [frame for frame in late.of("r1") if "seq" in frame and not frame.get("replay")]
    assert text_of(chunks_of(live, "r1")) == "".join(DELTAS[5:])


@requirement("protocol:91", "fault:RS-07", "engine:105")
async def test_a_stream_that_ends_before_the_ack_is_not_lost_on_who_owes_it(serve: Serve) -> None:
    gate = Gate()
    server = await serve(agent(ScriptedModel([[say("Half"), pause(gate), say(" done.")], say("Next.")])))
    tab = await server.tab()
    await tab.ask("r1", "Go")
    await gate.reached()
    late = await server.tab()
    await late.opened()
    gate.open()
    done = await late.done("r1")
    stored = await server.stored()
    assert late.frames[3:] == [{"type": "cf_agent_chat_messages", "messages": stored}, done]

    over = {"type": "cf_agent_use_chat_response", "id": "r1", "body": "", "done": True, "replay": True}
    start = len(late.frames)
    await late.ack("r1")
    assert await late.next(since=start) == over

    await tab.ask("r2", *stored, user_message("More"))
    await late.done("r2")
    assert text_of(chunks_of(late.frames, "r2")) == "Next.", "the next turn reaches it live"


@requirement("fault:RS-07")
async def test_an_ack_after_a_clear_is_just_done(serve: Serve) -> None:
    gate = Gate()
    server = await serve(agent(ScriptedModel([[say("Half"), pause(gate)]])))
    tab = await server.tab()
    await tab.ask("r1", "Go")
    await gate.reached()
    late = await server.tab()
    await late.opened()
    await tab.clear()
    await late.seen(lambda frame: frame["type"] == "cf_agent_chat_clear")
    await late.done("r1")
    start = len(late.frames)
    await late.ack("r1")
    over = {"type": "cf_agent_use_chat_response", "id": "r1", "body": "", "done": True, "replay": True}
    assert await late.next(since=start) == over


@requirement("protocol:89", "fault:RS-08", "engine:108")
async def test_acks_of_other_streams_disturb_nobody_and_free_who_sent_them(serve: Serve) -> None:
    gates = [Gate(), Gate()]
    moves = [say("a"), pause(gates[0]), say("b"), pause(gates[1]), say("c")]
    server = await serve(agent(ScriptedModel([[say("Earlier.")], moves])))
    tab = await server.tab()
    await tab.ask("r1", "First")
    await tab.done("r1")
    await tab.ask("r2", "Second")
    await gates[0].reached()

    late = await server.tab()
    await late.opened()
    start = len(late.frames)
    await late.ack("r1")
    await late.ack("")
    await late.send({"type": "cf_agent_stream_resume_ack"})
    await late.send({"type": "cf_agent_stream_resume_ack", "id": 5})
    await late.settle()
    assert late.frames[start:] == []

    gates[0].open()
    await late.delta("r2", "b")
    gates[1].open()
    await tab.done("r2")
    await late.done("r2")
    assert text_of(chunks_of(tab.frames, "r2")) == "abc"
    assert text_of(chunks_of(late.frames, "r2")) == "bc"


@requirement("protocol:87", "protocol:89")
async def test_an_ack_that_crosses_the_offer_of_the_next_stream_loses_nothing_of_that(serve: Serve) -> None:
    """The page acks each offer once: the ack of the first stream is no answer to the offer of the second."""
    first, second, third = Gate(), Gate(), Gate()
    moves = [say("x"), pause(second), say("y"), pause(third), say("z")]
    server = await serve(agent(ScriptedModel([[say("a"), pause(first)], moves])))
    tab = await server.tab()
    await tab.ask("r1", "First")
    await first.reached()
    late = await server.tab()
    await late.opened()
    first.open()
    await late.done("r1")
    await tab.ask("r2", *(await server.stored()), user_message("Second"))
    await second.reached()
    assert (await late.probe("p"))["id"] == "r2"

    start = len(late.frames)
    await late.ack("r1")
    second.open()
    await third.reached()
    await late.settle()
    assert late.frames[start:] == [], "no chunks before the replay"
    await late.ack("r2")
    await late.seen(lambda frame: frame.get("replayComplete", False))
    third.open()
    await late.done("r2")
    chunks = [frame for frame in late.frames[start:] if "seq" in frame]
    assert [frame["seq"] for frame in chunks] == list(range(len(chunks)))
    assert text_of(chunks_of(chunks, "r2")) == "xyz"


async def test_who_has_not_taken_up_a_stream_is_told_of_the_end_of_a_request_that_waits_behind_it(serve: Serve) -> None:
    gate = Gate()
    server = await serve(agent(ScriptedModel([[say("a"), pause(gate), say("b")]])))
    tab = await server.tab()
    await tab.ask("r1", "First")
    await gate.reached()
    late = await server.tab()
    await late.opened()
    await late.ask("r2", user_message("Second"))
    await late.settle()
    await tab.cancel("r2")
    for seen in (late, tab):
        assert (await seen.done("r2"))["outcome"] == "aborted"
    assert chunks_of(late.frames, "r1") == [], "the replay brings them"
    gate.open()
    await late.done("r1")
    assert [frame["done"] for frame in late.of("r2")] == [True]


@requirement("protocol:90")
async def test_an_ack_of_an_unknown_or_finished_stream_is_answered_once(serve: Serve) -> None:
    server = await serve(agent(ScriptedModel([say("Hello.")])))
    tab = await server.tab()
    await tab.ask("r1", "Hi")
    await tab.done("r1")
    for request in ("r1", "never-heard-of"):
        start = len(tab.frames)
        await tab.ack(request)
        await tab.settle()
        assert tab.frames[start:] == [
            {"type": "cf_agent_use_chat_response", "id": request, "body": "", "done": True, "replay": True}
        ]


@requirement("fault:RS-09")
async def test_a_tab_that_goes_in_the_middle_of_its_replay_harms_nobody(serve: Serve) -> None:
    gate = Gate()
    deltas = [f"{number} " for number in range(5000)]
    server = await serve(agent(ScriptedModel([[say(*deltas), pause(gate), say("end")]])))
    tab = await server.tab()
    await tab.ask("r1", "Go")
    await gate.reached()
    await tab.delta("r1", "4999 ")
    late = await server.tab()
    await late.opened()
    await late.ack("r1")
    await late.seen(lambda frame: frame.get("seq") == 100)
    late.drop()
    gate.open()
    await tab.done("r1")
    assert text_of(chunks_of(tab.frames, "r1")) == "".join(deltas) + "end"
    assert (await server.stored())[-1]["parts"][-1]["text"] == "".join(deltas) + "end"


@requirement("protocol:94", "engine:106")
async def test_who_was_away_when_a_turn_failed_is_shown_it_when_it_asks(serve: Serve) -> None:
    server = await serve(agent(ScriptedModel([[say("ab"), fail(ModelUnreachable("The line broke."))]])))
    tab = await server.tab()
    await tab.ask("r1", user_message("Go", "u-1"))
    await tab.done("r1")
    live = [frame for frame in tab.of("r1") if "seq" in frame]
    await tab.close()

    for probe in ("p1", "p2"):
        late = await server.tab()
        opening = await late.opened()
        assert opening[0]["connect"] is True
        assert len(opening) == 3, "a failure is not part of the opening"
        assert await late.probe(probe) == {"type": "cf_agent_stream_resuming", "id": "r1", "probeId": probe}
        await late.ack("r1")
        done = await late.done("r1")
        assert done == {
            "type": "cf_agent_use_chat_response",
            "id": "r1",
            "body": "The line broke.",
            "done": True,
            "error": True,
            "outcome": "error",
            "messageIds": ["u-1"],
        }
        assert [frame for frame in late.of("r1") if "seq" in frame] == [{**frame, "replay": True} for frame in live]


@requirement("protocol:95", "engine:105")
async def test_a_failure_is_history_once_a_request_is_accepted_or_the_chat_is_cleared(serve: Serve) -> None:
    gate = Gate()
    broken = [fail(ModelUnreachable("The line broke."))]
    server = await serve(agent(ScriptedModel([broken, [pause(gate), say("Better.")], broken])))
    tab = await server.tab()
    await tab.ask("r1", "First")
    await tab.done("r1")
    assert (await tab.probe("p1"))["id"] == "r1"
    await tab.ask("r2", "Second")
    await gate.reached()
    late = await server.tab()
    assert await late.probe("p2") == {"type": "cf_agent_stream_resuming", "id": "r2", "probeId": "p2"}
    gate.open()
    await late.done("r2")
    assert (await late.probe("p3"))["type"] == "cf_agent_stream_resume_none"

    await tab.ask("r3", "Third")
    await tab.done("r3")
    assert (await tab.probe("p4"))["id"] == "r3"
    await tab.clear()
    assert await tab.probe("p5") == {"type": "cf_agent_stream_resume_none", "reason": "idle", "probeId": "p5"}


async def test_a_failure_is_still_shown_after_a_restart(serve: Serve) -> None:
    first = await serve(agent(ScriptedModel([[say("ab"), fail(ModelUnreachable("The line broke."))]])))
    tab = await first.tab()
    await tab.ask("r1", "Go")
    await tab.done("r1")
    live = [frame for frame in tab.of("r1") if "seq" in frame]
    await first.stop()

    second = await serve(agent(ScriptedModel([])))
    late = await second.tab()
    assert (await late.probe("p1"))["id"] == "r1"
    await late.ack("r1")
    assert (await late.done("r1"))["body"] == "The line broke."
    assert [frame for frame in late.of("r1") if "seq" in frame] == [{**frame, "replay": True} for frame in live]
