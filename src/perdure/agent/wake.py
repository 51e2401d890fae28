"""Brings a conversation back from storage, and closes the turns that the last process left open."""

from __future__ import annotations

import logging
import math

import msgspec

from perdure.agent.conversation import Conversation
from perdure.agent.services import Services
from perdure.agent.stream import ChunkLog, bodies_of
from perdure.agent.think import Think
from perdure.agent.turns import Failure
from perdure.chat.recovery import INTERRUPTED_TURN, rebuild
from perdure.protocol import codec
from perdure.session.archive import Archive
from perdure.session.transcript import WINDOW, Transcript
from perdure.storage.contract import (
    AgentRecord,
    CloseTurn,
    DropChunks,
    LoadAgent,
    LoadChunks,
    Operation,
    Store,
    TurnRow,
)

__all__ = ["wake"]

logger = logging.getLogger(__name__)


class _Request(msgspec.Struct):
    """What :meth:`Turn.to_json` stored, as far as it is needed here."""

    parent: str | None = None
    own: list[str] = []
    origin: list[str] = []
    continuation: bool = False
    branches: bool = False

    @property
    def needed(self) -> list[str]:
        """The messages that it was about."""
        return self.own if self.parent is None else [*self.own, self.parent]


async def wake(think: Think, key: str, store: Store, services: Services, window: int = WINDOW) -> Conversation:
    """The conversation of the agent with this key, as it is stored; empty when there is none.

    Its recent end is in memory then: as much as the class allows. Clients are sent ``window`` bytes of it at most. What
    is damaged is left out with a warning, and stays stored.

    Raises:
        StorageError: it cannot be read.
    """
    record = await store.read(LoadAgent(key))
    archive = Archive(store, key, services.settled)
    memory = _budget(think.hydration_byte_budget)
    transcript = await Transcript.open(archive, record, window=window, memory=memory)
    if record.open_turns:
        failure = await _close_left_open(key, record, transcript, store, services)
    else:
        failure = await _last_failure(key, record.last_turn, store)
    transcript.shrink()
    finished = [*record.closed_turns, *(turn.id for turn in record.open_turns)]
    return Conversation(think, services, transcript, failure, finished)


def _budget(given: float) -> float:
    return given if given > 0 and math.isfinite(given) else math.inf


async def _close_left_open(
    key: str, record: AgentRecord, transcript: Transcript, store: Store, services: Services
) -> Failure | None:
    """Keep what the open turns said, and close them. The last one is the failure that clients are shown."""
    failure: Failure | None = None
    operations: list[Operation] = []
    requests = [(turn, _request_of(turn)) for turn in record.open_turns]
    await _read_what_they_need([request for _, request in requests], transcript)
    waiting = [identifier for turn, request in requests if turn.status == "queued" for identifier in request.own]
    # They keep their place behind the answer that was being made.
    withdrawn = [identifier for turn in record.withdrawn for identifier in _request_of(turn).own]
    await transcript.recall([*waiting, *withdrawn])
    await transcript.recall_following([*waiting, *withdrawn])
    transcript.hold([*waiting, *withdrawn])
    for turn, request in requests:
        transcript.begin(request.own)
        if failure is not None:
            operations.append(DropChunks(failure.log.turn))
        log = await _chunk_log(key, turn.id, store, continuation=request.continuation)
        operations += _keep_answer(turn, request, log, transcript, services.now_ms())
        operations.append(CloseTurn(turn.id, "interrupted", INTERRUPTED_TURN, services.now_ms()))
        transcript.begin(withdrawn)
        failure = Failure(log, INTERRUPTED_TURN, request.origin)
    # Nothing waits for it: the next start would make the same of what is stored. So the conversation can be read even
    # when nothing can be written.
    services.checkpoint(operations)
    return failure


async def _read_what_they_need(requests: list[_Request], transcript: Transcript) -> None:
    """Answers go behind messages that may be older than what is in memory."""
    on_path = [identifier for request in requests if not request.branches for identifier in request.needed]
    await transcript.extend(on_path)
    for request in requests:
        if request.branches and request.parent is not None:
            await transcript.reach([], request.parent)
    if any(request.continuation for request in requests) and (tip := transcript.tip(None)) is not None:
        await transcript.load(tip)


def _keep_answer(
    turn: TurnRow, request: _Request, log: ChunkLog, transcript: Transcript, now_ms: int
) -> list[Operation]:
    """Store what a turn said before it was interrupted."""
    chunks = [codec.decode(codec.decode(body)) for body in log.bodies]
    last = transcript.known.get(transcript.tip(None) or "")
    extended = last.message.message if request.continuation and last is not None and last.message else None
    message = rebuild(turn.message_id, chunks, extended)
    if message is None:
        return []
    if extended is not None:
        return transcript.update(message)
    parent = request.parent if request.parent in transcript.known else None
    if not request.branches or parent is None:
        parent = transcript.tip(parent)
    return transcript.answer(message, parent, now_ms)


async def _last_failure(key: str, turn: TurnRow | None, store: Store) -> Failure | None:
    if turn is None or turn.error is None:
        return None
    request = _request_of(turn)
    log = await _chunk_log(key, turn.id, store, continuation=request.continuation)
    return Failure(log, turn.error, request.origin)


def _request_of(turn: TurnRow) -> _Request:
    try:
        return codec.decode_as(_Request, turn.request)
    except codec.DecodeError as error:
        logger.warning("What turn %s was to do is damaged: %s", turn.id, error)
        return _Request()


async def _chunk_log(key: str, turn: str, store: Store, *, continuation: bool) -> ChunkLog:
    bodies: list[str] = []
    for segment in await store.read(LoadChunks(key, turn)):
        try:
            bodies += bodies_of([segment])
        except codec.DecodeError as error:
            logger.warning("The stored chunks of turn %s are damaged from %d on: %s", turn, segment.index, error)
            break
    return ChunkLog(turn, bodies, continuation=continuation)
