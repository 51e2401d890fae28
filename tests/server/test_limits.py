"""Frames that are too large or broken: the socket that sent them is closed, and nothing else happens."""

import json
import struct

import pytest

from perdure import Limits
from perdure.testing import Gate, ScriptedModel, pause, say
from tests.support import Serve, agent, chunks_of, text_of, user_message

pytestmark = pytest.mark.anyio

KIB = 1024
LIMITS = Limits(window=KIB, upload=31 * KIB, frame=64 * KIB)


async def test_a_frame_over_the_limit_closes_its_socket_and_nothing_is_stored(serve: Serve) -> None:
    server = await serve(agent(ScriptedModel([say("Hello.")])), limits=LIMITS)
    tab, other = await server.tab(), await server.tab()
    await tab.opened()
    await tab.ask("r1", user_message("x" * 64 * KIB))
    code, _ = await tab.ended()
    assert code == 1009
    assert await server.stored() == []
    assert other.closed is None

    await other.ask("r2", user_message("x" * 30 * KIB))
    assert (await other.done("r2"))["outcome"] == "completed"


async def test_a_frame_over_the_limit_disturbs_no_stream(serve: Serve) -> None:
    gate = Gate()
    server = await serve(agent(ScriptedModel([[say("Half"), pause(gate), say(" done.")]])), limits=LIMITS)
    tab, rude = await server.tab(), await server.tab()
    await tab.ask("r1", "Go")
    await gate.reached()
    await rude.send("x" * 65 * KIB)
    assert (await rude.ended())[0] == 1009
    gate.open()
    await tab.done("r1")
    assert text_of(chunks_of(tab.frames, "r1")) == "Half done."


@pytest.mark.parametrize(
    ("broken", "code"),
    [
        pytest.param(b"\x81\xff" + struct.pack("!Q", 50_000_000) + bytes(4), 1009, id="announces 50 MB"),
        pytest.param(b"\x83\x80" + bytes(4), 1002, id="has an opcode that is none"),
        pytest.param(b"\x81\x05Hello", 1002, id="is not masked"),
        pytest.param(b"\x81\x82" + bytes(4) + b"\xff\xfe", 1007, id="is text that is not UTF-8"),
    ],
)
async def test_a_chunk_for_a_socket_that_was_just_closed_for_a_frame_that(
    serve: Serve, log, broken: bytes, code: int
) -> None:
    """The frame and the chunk meet: the chunk is on its way to the socket when the server closes it."""
    gate = Gate()
    server = await serve(agent(ScriptedModel([[say("Half"), pause(gate), say(" done.")]])), limits=LIMITS)
    tab, rude = await server.tab(), await server.tab()
    await tab.ask("r1", "Go")
    await rude.delta("r1", "Half")
    await gate.reached()
    rude.write(broken)
    gate.open()
    assert (await rude.ended())[0] == code
    await tab.done("r1")
    assert text_of(chunks_of(tab.frames, "r1")) == "Half done."


@pytest.mark.parametrize("filling", ["x", "é", '"', "\\"])
async def test_a_message_over_the_limit_is_refused_and_the_next_one_answered(serve: Serve, filling: str) -> None:
    """What counts is what it takes in the frame, where quotes and backslashes are written with three more signs."""
    limits = Limits(window=4 * KIB, upload=8 * KIB, frame=24 * KIB)
    server = await serve(agent(ScriptedModel([say("Hello."), say("Edited.")])), limits=limits)
    tab, other = await server.tab(), await server.tab()
    width = len(json.dumps(json.dumps(filling, ensure_ascii=False), ensure_ascii=False).encode()) - 6
    await tab.ask("r1", user_message(filling * (8 * KIB // width + 1), "u-large"))
    done = await tab.done("r1")
    assert (done["error"], done["outcome"]) == (True, "error")
    assert "'u-large' is too large" in done["body"]
    assert "at most 8,192 are taken in one message (Limits.upload)" in done["body"]
    assert (await tab.probe("p1"))["reason"] == "idle"
    assert await server.stored() == []

    await tab.ask("r2", user_message(filling * (8 * KIB // width - 100), "u-large"))
    assert (await tab.done("r2"))["outcome"] == "completed"
    edited = user_message(filling * (8 * KIB // width + 1), "u-large")
    await tab.ask("r3", edited)
    assert (await tab.done("r3"))["outcome"] == "error", "an edit is a message like any other"
    assert other.closed is None


async def test_large_uploads_in_a_row_do_not_outgrow_the_frame_of_who_posts_all_that_it_is_sent(serve: Serve) -> None:
    limits = Limits(window=4 * KIB, upload=8 * KIB, frame=24 * KIB)
    server = await serve(agent(ScriptedModel([say("y" * 3 * KIB) for _ in range(4)])), limits=limits)
    tab, other = await server.tab(), await server.tab()
    for number in range(4):
        shown = await server.stored()
        await tab.ask(f"r{number}", *shown, user_message('"' * 1900))
        assert (await tab.done(f"r{number}"))["outcome"] == "completed"
    assert other.closed is None
    assert len(shown) == 2, "more than fits the window, as the question is shown whose answer is"


async def test_the_cap_on_frames_must_leave_room_for_a_whole_conversation() -> None:
    with pytest.raises(Exception, match="must be at least 2 \\* window \\+ 2 \\* upload = 4096 bytes"):
        Limits(window=KIB, upload=KIB, frame=2 * KIB)
