"""Brings a conversation back from storage, and closes the turns that the last process left open."""

from __future__ import annotations

import msgspec

from perdure.agent.conversation import Conversation
from perdure.agent.services import Services
from perdure.agent.stream import ChunkLog, bodies_of
from perdure.agent.think import Think
from perdure.agent.turns import Failure
from perdure.chat.recovery import INTERRUPTED_TURN, rebuild
from perdure.protocol import codec
from perdure.session.transcript import Transcript
from perdure.storage.contract import (
    AgentRecord,
    CloseTurn,
    DropChunks,
    LoadAgent,
    LoadChunks,
    LoadOffPath,
    LoadPath,
    Operation,
    Store,
    TurnRow,
)

__all__ = ["wake"]


class _Request(msgspec.Struct):
    """What :meth:`Turn.to_json` stored, as far as it is needed here."""

    parent: str | None = None
    own: list[str] = []
    origin: list[str] = []
    continuation: bool = False
    branches: bool = False


async def wake(think: Think, key: str, store: Store, services: Services) -> Conversation:
    """The conversation of the agent with this key, as it is stored; empty when there is none.

    Raises:
        StorageError: it cannot be read.
    """
    record = await store.read(LoadAgent(key))
    if record.next_pos == 0:
        return Conversation(think, services, Transcript(), finished=record.closed_turns)
    path = await store.read(LoadPath(key))
    elsewhere = await store.read(LoadOffPath(key)) if record.messages > len(path) else []
    transcript = Transcript(path, elsewhere, record.next_pos)
    if record.open_turns:
        failure = await _close_left_open(key, record, transcript, store, services)
    else:
        failure = await _last_failure(key, record.last_turn, store)
    finished = [*record.closed_turns, *(turn.id for turn in record.open_turns)]
    return Conversation(think, services, transcript, failure, finished)


async def _close_left_open(
    key: str, record: AgentRecord, transcript: Transcript, store: Store, services: Services
) -> Failure | None:
    """Keep what the open turns said, and close them. The last one is the failure that clients are shown."""
    failure: Failure | None = None
    operations: list[Operation] = []
    requests = [(turn, codec.decode_as(_Request, turn.request)) for turn in record.open_turns]
    for turn, request in requests:
        if turn.status == "queued":
            transcript.hold(request.own)
    for turn, request in requests:
        transcript.begin(request.own)
        if failure is not None:
            operations.append(DropChunks(failure.log.turn))
        log = await _chunk_log(key, turn.id, store, continuation=request.continuation)
        operations += _keep_answer(turn, request, log, transcript, services.now_ms())
        operations.append(CloseTurn(turn.id, "interrupted", INTERRUPTED_TURN, services.now_ms()))
        failure = Failure(log, INTERRUPTED_TURN, request.origin)
    services.write(operations)
    return failure


def _keep_answer(
    turn: TurnRow, request: _Request, log: ChunkLog, transcript: Transcript, now_ms: int
) -> list[Operation]:
    """Store what a turn said before it was interrupted."""
    chunks = [codec.decode(codec.decode(body)) for body in log.bodies]
    last = transcript.known.get(transcript.tip(None) or "")
    extended = last.message.message if request.continuation and last is not None else None
    message = rebuild(turn.message_id, chunks, extended)
    if message is None:
        return []
    if extended is not None:
        return transcript.update(message)
    parent = request.parent if request.branches else transcript.tip(request.parent)
    return transcript.answer(message, parent, now_ms)


async def _last_failure(key: str, turn: TurnRow | None, store: Store) -> Failure | None:
    if turn is None or turn.error is None:
        return None
    request = codec.decode_as(_Request, turn.request)
    log = await _chunk_log(key, turn.id, store, continuation=request.continuation)
    return Failure(log, turn.error, request.origin)


async def _chunk_log(key: str, turn: str, store: Store, *, continuation: bool) -> ChunkLog:
    return ChunkLog(turn, bodies_of(await store.read(LoadChunks(key, turn))), continuation=continuation)
