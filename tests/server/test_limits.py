"""Frames that are too large or broken: the socket that sent them is closed, and nothing else happens."""

import struct

import pytest

from perdure import Limits
from perdure.testing import Gate, ScriptedModel, pause, say
from tests.support import Serve, agent, chunks_of, text_of, user_message

pytestmark = pytest.mark.anyio

KIB = 1024
LIMITS = Limits(window=KIB, upload=KIB, frame=64 * KIB)


async def test_a_frame_over_the_limit_closes_its_socket_and_nothing_is_stored(serve: Serve) -> None:
    server = await serve(agent(ScriptedModel([say("Hello.")])), limits=LIMITS)
    tab, other = await server.tab(), await server.tab()
    await tab.opened()
    await tab.ask("r1", user_message("x" * 64 * KIB))
    code, _ = await tab.ended()
    assert code == 1009
    assert await server.stored() == []
    assert other.closed is None

    await other.ask("r2", user_message("x" * 60 * KIB))
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
    if code == 1007:
        log.expect("Invalid UTF-8 sequence received from client.")


async def test_the_cap_on_frames_must_leave_room_for_a_whole_conversation() -> None:
    with pytest.raises(Exception, match="must be at least 2 \\* window \\+ upload = 3072 bytes"):
        Limits(window=KIB, upload=KIB, frame=2 * KIB)
