"""One run of one turn, as its chunks go out."""

import asyncio
import json
from typing import Any, cast

import pytest

from perdure import Think
from perdure.agent.answer import Answer
from perdure.agent.room import Room as ConversationRoom
from perdure.agent.stream import SEGMENT
from perdure.agent.turn import Turn
from perdure.chat.handshake import Handshake, Idle
from perdure.session.archive import Archive
from perdure.session.transcript import Transcript
from tests.agent.services import RecordingServices
from tests.requirements import requirement

pytestmark = pytest.mark.anyio

ASKER, OTHER, LATE = 1, 2, 3


class Room:
    """Two connections, a request that was accepted, and the answer to it."""

    def __init__(self) -> None:
        self.services = RecordingServices()
        self.handshake: Handshake[int] = Handshake()
        self.handshake.connected(ASKER)
        self.handshake.connected(OTHER)
        self.handshake.accepted("R1")
        self.turn = Turn(
            id="R1",
            trigger="ws-chat",
            message_id="a1",
            parent="u1",
            own_messages=["u1"],
            origin_ids=["u1"],
            generation=0,
        )
        transcript = Transcript(Archive(cast("Any", None), "agent/room", self.services.settled))
        room = ConversationRoom(Think(), self.services, transcript, self.handshake)
        self.answer = Answer(self.turn, room)

    def chunks(self, peer: int) -> list[dict[str, Any]]:
        return [json.loads(frame["body"]) for frame in self.services.frames(peer) if "seq" in frame]


@pytest.fixture
async def room() -> Room:
    return Room()


def delta(text: str) -> dict[str, Any]:
    return {"type": "text-delta", "id": "0", "delta": text}


@requirement("engine:63")
async def test_the_first_chunk_names_the_message_that_will_be_stored(room: Room) -> None:
    assert not room.answer.opened
    room.answer.open()
    room.answer.emit(delta("Hi"))
    assert room.answer.opened
    assert room.chunks(ASKER)[0] == {"type": "start", "messageId": "a1"}
    assert room.answer.builder.message()["id"] == "a1"


async def test_a_chunk_is_in_the_message_in_the_log_and_on_its_way_at_once(room: Room) -> None:
    room.answer.open()
    room.answer.emit(delta("Hi"))
    assert room.chunks(ASKER) == room.chunks(OTHER) == [{"type": "start", "messageId": "a1"}, delta("Hi")]
    assert [json.loads(json.loads(body)) for body in room.answer.stream.bodies] == room.chunks(ASKER)
    assert room.turn.builder.parts == [{"type": "text", "text": "Hi", "state": "streaming"}]


async def test_a_chunk_without_json_form_leaves_the_message_as_it_was(room: Room) -> None:
    room.answer.open()
    room.answer.emit(delta("Hi"))
    with pytest.raises(TypeError):
        room.answer.emit({"type": "data-x", "data": object()})
    assert [part["type"] for part in room.answer.builder.parts] == ["text"]
    room.answer.emit(delta("!"))
    assert [frame["seq"] for frame in room.services.frames(ASKER)] == [0, 1, 2]


async def test_who_waits_is_offered_the_stream_before_its_first_chunk_and_gets_none(room: Room) -> None:
    room.handshake.connected(LATE)
    room.answer.open()
    room.answer.emit(delta("Hi"))
    assert room.services.frames(LATE) == [{"type": "cf_agent_stream_resuming", "id": "R1"}]
    assert room.services.sent[0][0] == (LATE,)
    room.handshake.acked(LATE, "R1")
    room.answer.emit(delta("!"))
    assert [chunk["delta"] for chunk in room.chunks(LATE)] == ["!"]


async def test_a_failure_is_told_to_those_who_get_chunks(room: Room) -> None:
    room.answer.open()
    room.handshake.connected(LATE)
    room.answer.fail("model overloaded")
    peers, frame = room.services.sent[-1]
    assert peers == (ASKER, OTHER)
    assert frame == {
        "type": "cf_agent_use_chat_response",
        "id": "R1",
        "body": "model overloaded",
        "done": False,
        "error": True,
        "messageIds": ["u1"],
    }


async def test_all_is_durable_when_the_checkpoint_is(room: Room) -> None:
    room.answer.open()
    waiting = asyncio.ensure_future(room.answer.durable())
    await asyncio.sleep(0)
    assert not waiting.done()
    room.services.commits[0].set_result(None)
    await waiting


async def test_nothing_is_shown_or_stored_of_an_answer_once_it_is_discarded(room: Room) -> None:
    room.answer.open()
    shown = len(room.services.sent)
    room.answer.discard()
    for _ in range(SEGMENT + 1):
        room.answer.emit(delta("Hi"))
    room.answer.fail("model overloaded")
    await room.answer.durable()
    assert len(room.services.sent) == shown
    assert room.services.checkpoints == []
    assert room.services.running_timers == []
    assert not room.answer.builder.has_content


async def test_an_answer_that_was_discarded_before_it_opened_is_offered_to_nobody(room: Room) -> None:
    room.handshake.connected(LATE)
    room.answer.discard()
    room.handshake.cleared()
    room.answer.open()
    assert room.services.sent == []
    assert room.services.running_timers == []
    assert room.handshake.listeners == room.handshake.everyone
    assert room.handshake.probed(LATE) == Idle()
