"""Conversations brought back from a real store, and the turns that the last process left open."""

import json
from collections.abc import AsyncIterator, Sequence
from typing import Any

import pytest

from perdure import Think
from perdure.agent.conversation import Conversation
from perdure.agent.stream import LiveStream
from perdure.agent.turn import Turn
from perdure.agent.wake import wake
from perdure.chat.recovery import INTERRUPTED_TURN
from perdure.chat.repair import INTERRUPTED
from perdure.protocol.client_frames import RpcRequest, StateUpdate, parse
from perdure.session.tree import Tree
from perdure.storage.contract import (
    ClearConversation,
    CloseTurn,
    LoadAgent,
    LoadChunks,
    LoadPath,
    OpenTurn,
    Operation,
    UpdateTurn,
)
from perdure.storage.sqlite import SqliteStore
from tests.agent.services import Frame, RecordingServices
from tests.chat.chunks import Chunk, called, said

pytestmark = pytest.mark.anyio

PEER = 1
START: list[Chunk] = [{"type": "start", "messageId": "a2"}, {"type": "start-step"}]


class Past:
    """What a process before this one stored of an agent."""

    def __init__(self, store: SqliteStore) -> None:
        self.store = store
        self.transcript = Tree()

    async def write(self, operations: Sequence[Operation]) -> None:
        await self.store.write("a", self.store.epoch, operations)

    async def say(self, identifier: str, parent: str | None, *, waiting: bool = False) -> None:
        text = f'{{"id":"{identifier}","role":"user","parts":[{{"type":"text","text":"hi"}}]}}'
        await self.write(self.transcript.append(identifier, "user", text, parent, 1, waiting=waiting))

    async def answer(self, identifier: str, parent: str) -> None:
        parts = [{"type": "text", "text": f"answer {identifier}", "state": "done"}]
        message: Any = {"id": identifier, "role": "assistant", "parts": parts}
        await self.write(self.transcript.answer(message, parent, 1))

    async def open(
        self, turn: str, parent: str, status: str = "running", message: str = "a2", *, branches: bool = False
    ) -> None:
        opened = Turn(
            branches=branches,
            id=turn,
            trigger="ws-chat",
            message_id=message,
            parent=parent,
            own_messages=[parent],
            origin_ids=[parent],
            generation=0,
        )
        await self.write([OpenTurn(turn, status, "ws-chat", opened.to_json(), message, 1)])

    async def stream(self, turn: str, *chunks: Chunk) -> None:
        stream = LiveStream(turn, RecordingServices())
        for chunk in chunks:
            stream.add(chunk)
        await self.write(stream.unstored())

    async def close(self, turn: str, status: str = "completed", error: str | None = None) -> None:
        await self.write([CloseTurn(turn, status, error, 2)])


class Woken:
    """A conversation after its wake, and one connection to it."""

    def __init__(self, conversation: Conversation, services: RecordingServices) -> None:
        self.conversation = conversation
        self.services = services
        conversation.connected(PEER)

    def ask(self, frame: str) -> list[Frame]:
        """What a frame is answered with."""
        before = len(self.services.sent)
        parsed = parse(frame)
        assert not isinstance(parsed, StateUpdate | RpcRequest)
        self.conversation.received(PEER, parsed, "c1")
        return [frame for _, frame in self.services.sent[before:]]

    @property
    def path(self) -> list[str]:
        return [message["id"] for message in self.conversation.messages()]


@pytest.fixture
async def past() -> AsyncIterator[Past]:
    store = await SqliteStore.temporary()
    yield Past(store)
    await store.close()


async def woken(past: Past) -> Woken:
    services = RecordingServices(past.store)
    conversation = await wake(Think(), "a", past.store, services)
    await services.settled()
    return Woken(conversation, services)


def request(turn: str, *messages: str) -> str:
    """A chat request whose messages say hi."""
    posted = [{"id": message, "role": "user", "parts": [{"type": "text", "text": "hi"}]} for message in messages]
    init = {"method": "POST", "body": json.dumps({"messages": posted})}
    return json.dumps({"type": "cf_agent_use_chat_request", "id": turn, "init": init})


PROBE = '{"type":"cf_agent_stream_resume_request","probeId":"P"}'


def ack(turn: str) -> str:
    return f'{{"type":"cf_agent_stream_resume_ack","id":"{turn}"}}'


# ── nothing open ────────────────────────────────────────────────────


async def test_an_agent_that_was_never_seen_is_empty_and_stays_unknown_to_the_store(past: Past) -> None:
    agent = await woken(past)
    assert agent.path == []
    assert agent.services.written == []
    assert agent.ask(PROBE) == [{"type": "cf_agent_stream_resume_none", "reason": "idle", "probeId": "P"}]


async def test_a_conversation_comes_back_with_its_branches(past: Past) -> None:
    await past.say("u1", None)
    await past.answer("a1", "u1")
    await past.say("u2", "a1")
    await past.answer("a3", "u1")
    agent = await woken(past)
    assert agent.path == ["u1", "a3"]
    known = await past.store.read(LoadAgent("a"))
    assert known.messages == 4
    assert agent.ask(request("R9", "u2", "u4")) == []
    assert agent.path == ["u1", "a3", "u4"], "a message of another branch is known"
    await agent.services.close()


async def test_a_cleared_conversation_is_empty_and_may_begin_again(past: Past) -> None:
    await past.say("u1", None)
    await past.open("R1", "u1")
    await past.write([ClearConversation()])
    agent = await woken(past)
    assert agent.path == []
    assert agent.services.written == []


async def test_a_request_that_was_answered_before_the_restart_is_known_as_repeated(past: Past) -> None:
    await past.say("u1", None)
    await past.open("R1", "u1")
    await past.answer("a1", "u1")
    await past.close("R1")
    agent = await woken(past)
    assert agent.ask(request("R1", "u2")) == []
    assert agent.services.written == []
    assert agent.path == ["u1", "a1"]


# ── the turn that failed last ───────────────────────────────────────


async def test_the_turn_that_failed_last_is_still_shown_to_who_asks(past: Past) -> None:
    await past.say("u1", None)
    await past.open("R1", "u1")
    await past.stream("R1", *START, *said("It is")[:2])
    await past.close("R1", "error", "model overloaded")
    agent = await woken(past)
    assert agent.services.frames(PEER)[0]["type"] == "cf_agent_chat_messages", "unasked it gets the conversation"
    assert agent.ask(PROBE) == [{"type": "cf_agent_stream_resuming", "id": "R1", "probeId": "P"}]
    *replay, end = agent.ask(ack("R1"))
    assert [(frame["seq"], frame["replay"]) for frame in replay] == [(0, True), (1, True), (2, True), (3, True)]
    assert (end["body"], end["error"], end["done"], end["messageIds"]) == ("model overloaded", True, True, ["u1"])
    assert "replay" not in end


@pytest.mark.parametrize("status", ["completed", "aborted"])
async def test_a_turn_that_ended_well_leaves_nothing_to_ask_for(past: Past, status: str) -> None:
    await past.say("u1", None)
    await past.open("R1", "u1")
    await past.close("R1", "error", "no")
    await past.open("R2", "u1")
    await past.close("R2", status)
    agent = await woken(past)
    assert agent.ask(PROBE)[0]["reason"] == "idle"


# ── turns that were left open ───────────────────────────────────────


async def test_a_turn_that_was_running_keeps_what_it_said_and_is_shown_as_interrupted(past: Past) -> None:
    await past.say("u1", None)
    await past.open("R1", "u1")
    await past.stream("R1", *START, *called("add", "c1", {"a": 1}), *said("It is")[:2])
    agent = await woken(past)
    assert agent.path == ["u1", "a2"]
    answer = agent.conversation.messages()[1]
    assert [part.get("state") for part in answer["parts"]] == [None, "output-error", "done"]
    assert answer["parts"][1]["errorText"] == INTERRUPTED
    assert agent.ask(PROBE) == [{"type": "cf_agent_stream_resuming", "id": "R1", "probeId": "P"}]
    *replay, end, shown = agent.ask(ack("R1"))
    assert [frame["seq"] for frame in replay] == list(range(7))
    assert (end["body"], end["error"]) == (INTERRUPTED_TURN, True)
    assert shown == {"type": "cf_agent_message_updated", "message": answer}, "no chunk says how the call ended"

    record = await past.store.read(LoadAgent("a"))
    assert record.open_turns == []
    assert record.last_turn is not None
    assert (record.last_turn.status, record.last_turn.error) == ("interrupted", INTERRUPTED_TURN)
    assert [row.id for row in await past.store.read(LoadPath("a"))] == ["u1", "a2"]
    assert len(await past.store.read(LoadChunks("a", "R1"))) == 1, "they are shown until another request comes"


async def test_a_second_wake_finds_what_the_first_one_made_of_it(past: Past) -> None:
    await past.say("u1", None)
    await past.open("R1", "u1")
    await past.stream("R1", *START, *said("It is")[:2])
    first = await woken(past)
    second = await woken(past)
    assert second.services.written == []
    assert second.conversation.messages() == first.conversation.messages()
    assert second.ask(PROBE) == first.ask(PROBE)
    assert second.ask(ack("R1")) == first.ask(ack("R1"))


async def test_a_turn_that_had_said_nothing_leaves_no_message(past: Past) -> None:
    await past.say("u1", None)
    await past.open("R1", "u1")
    agent = await woken(past)
    assert agent.path == ["u1"]
    assert agent.ask(ack("R1"))[0]["body"] == INTERRUPTED_TURN


async def test_a_request_of_an_interrupted_turn_is_known_as_repeated(past: Past) -> None:
    await past.say("u1", None)
    await past.open("R1", "u1")
    agent = await woken(past)
    assert agent.ask(request("R1", "u1")) == []


async def test_a_turn_that_waited_keeps_its_message_behind_the_answer_that_was_being_made(past: Past) -> None:
    await past.say("u1", None)
    await past.open("R1", "u1")
    await past.say("u2", "u1", waiting=True)
    await past.open("R2", "u2", "queued", "a3")
    await past.stream("R1", *START, *said("It is")[:2])
    agent = await woken(past)
    assert agent.path == ["u1", "a2", "u2"]
    assert [row.id for row in await past.store.read(LoadPath("a"))] == agent.path
    record = await past.store.read(LoadAgent("a"))
    assert (record.open_turns, record.closed_turns) == ([], ["R1", "R2"])
    assert agent.ask(PROBE)[0]["id"] == "R2", "the failure that is shown is the last one"
    assert len(agent.ask(ack("R2"))) == 1
    assert await past.store.read(LoadChunks("a", "R1")) == []


@pytest.mark.parametrize("others", [[], ["before"], ["behind"], ["before", "behind"]])
@pytest.mark.parametrize("branches", [False, True])
async def test_a_message_whose_turn_was_stopped_while_it_waited_keeps_its_place_behind_the_answer(
    past: Past, others: list[str], branches: bool
) -> None:
    """As it does when the turn that was being answered ends by itself."""
    await past.say("u1", None)
    last = "u1"
    if branches:
        await past.answer("a1", "u1")
        last = "a1"
    await past.open("R1", "u1", branches=branches)
    expected = ["u1", "a2"]
    for name, stops in (("before", False), ("u2", True), ("behind", False)):
        if stops or name in others:
            await past.say(name, last, waiting=True)
            await past.open(f"R-{name}", name, "queued", f"answer-{name}")
            if stops:
                await past.close(f"R-{name}", "aborted")
            expected.append(name)
            last = name
    await past.stream("R1", *START, *said("It is")[:2])
    agent = await woken(past)
    assert agent.path == expected
    assert [row.id for row in await past.store.read(LoadPath("a"))] == expected


async def test_a_message_whose_turn_was_stopped_before_stays_before_the_answer_of_a_later_one(past: Past) -> None:
    await past.say("u1", None)
    await past.open("R1", "u1")
    await past.say("u2", "u1", waiting=True)
    await past.open("R2", "u2", "queued", "a3")
    await past.close("R2", "aborted")
    await past.answer("a1", "u1")
    await past.close("R1")
    past.transcript.begin(["u2"])
    await past.say("u3", "u2")
    await past.open("R3", "u3")
    await past.stream("R3", *START, *said("It is")[:2])
    assert (await woken(past)).path == ["u1", "a1", "u2", "u3", "a2"]


async def test_a_turn_that_had_waited_and_was_running_answers_its_own_message(past: Past) -> None:
    await past.say("u1", None)
    await past.open("R1", "u1")
    await past.say("u2", "u1", waiting=True)
    await past.open("R2", "u2", "queued", "a2")
    await past.answer("a1", "u1")
    await past.close("R1")
    await past.write([UpdateTurn("R2", "running")])
    await past.stream("R2", *START, *said("It is")[:2])
    agent = await woken(past)
    assert agent.path == ["u1", "a1", "u2", "a2"]


async def test_another_answer_that_was_being_made_takes_the_place_of_the_first(past: Past) -> None:
    await past.say("u1", None)
    await past.answer("a1", "u1")
    await past.open("R2", "u1", branches=True)
    await past.stream("R2", *START, *said("It is")[:2])
    agent = await woken(past)
    assert agent.path == ["u1", "a2"]
    assert (await past.store.read(LoadAgent("a"))).messages == 3


async def test_an_answer_to_a_message_that_was_edited_meanwhile_stays_off_the_path(past: Past) -> None:
    await past.say("u1", None)
    await past.open("R1", "u1")
    await past.say("e1", None, waiting=True)
    await past.open("R2", "e1", "queued", "a3")
    await past.stream("R1", *START, *said("It is")[:2])
    agent = await woken(past)
    assert agent.path == ["e1"]
    assert [row.id for row in await past.store.read(LoadPath("a"))] == ["e1"]
    assert (await past.store.read(LoadAgent("a"))).messages == 3


async def test_a_turn_that_had_lost_its_place_to_another_did_not_fail(past: Past) -> None:
    await past.say("u1", None)
    await past.open("R1", "u1")
    await past.say("u2", "u1", waiting=True)
    await past.open("R2", "u2", "queued", "a3")
    await past.say("u3", "u2", waiting=True)
    await past.write([UpdateTurn("R2", "superseded"), *past.transcript.leave_out(["u2"])])
    await past.open("R3", "u3", "queued", "a4")
    await past.stream("R1", *START, *said("It is")[:2])
    agent = await woken(past)
    assert agent.path == ["u1", "a2", "u2", "u3"]
    record = await past.store.read(LoadAgent("a"))
    assert (record.open_turns, record.closed_turns) == ([], ["R2", "R1", "R3"])
    assert agent.ask(PROBE)[0]["id"] == "R3"
    assert agent.ask(request("R2", "u2")) == [], "it is known as repeated"
