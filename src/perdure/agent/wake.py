"""Brings a conversation back from storage, and closes the turns that the last process left open."""

from __future__ import annotations

import logging
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import msgspec

from perdure.agent.conversation import Conversation
from perdure.agent.ending import Failure
from perdure.agent.overtaking import give_up
from perdure.agent.page import PAGE, Page
from perdure.agent.room import kept
from perdure.agent.services import Services
from perdure.agent.stream import ChunkLog, bodies_of
from perdure.agent.think import Think
from perdure.agent.values import NAMESPACE
from perdure.chat.concurrency import strategy_of
from perdure.chat.interactions import Interaction, Interactions
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
    LoadValue,
    Operation,
    Store,
    TurnRow,
)
from perdure.storage.interactions import InteractionRow, LoadInteractions

__all__ = ["wake"]

logger = logging.getLogger(__name__)

_WAITING = frozenset({"queued", "superseded"})
"""Turns that had not begun."""

ATTEMPTS = 3
"""How often a continuation that the end of the process cut off is begun again: it may be what ends the process."""


class _Request(msgspec.Struct):
    """What :meth:`Turn.to_json` stored, as far as it is needed here."""

    parent: str | None = None
    own: list[str] = []
    origin: list[str] = []
    continuation: bool = False
    branches: bool = False
    group: str | None = None
    attempts: int = 0

    def tries(self, status: str) -> int:
        """How often it was begun, when the turn was left with this status."""
        return self.attempts if status in _WAITING else self.attempts + 1

    @property
    def needed(self) -> list[str]:
        """The messages that it was about."""
        return self.own if self.parent is None else [*self.own, self.parent]


@dataclass(slots=True)
class _Left:
    """What the last process left open, and what comes of it."""

    operations: list[Operation] = field(default_factory=list[Operation])
    failure: Failure | None = None
    """What clients are shown."""
    again: tuple[str, str, int] | None = None
    """The turn whose calls were answered, the message that holds them, and how often going on was tried."""


async def wake(
    think: Think, key: str, store: Store, services: Services, window: int = WINDOW, upload: float = math.inf
) -> Conversation:
    """The conversation of the agent with this key, as it is stored; empty when there is none.

    Its recent end is in memory then: as much as the class allows. Clients are sent ``window`` bytes of it at most,
    and may add ``upload`` in one message. What is damaged is left out with a warning, and stays stored. If it was about
    to go on after answers, it does so after :meth:`Conversation.begin`.

    Raises:
        StorageError: it cannot be read.
        ConfigurationError: the class says something unusable.
    """
    strategy_of(think.message_concurrency, type(think).__name__)
    record = await store.read(LoadAgent(key))
    archive = Archive(store, key, services.settled)
    memory = _budget(think.hydration_byte_budget)
    transcript = await Transcript.open(archive, record, window=window, memory=memory)
    page, interactions = Page(), Interactions()
    if record.messages or record.open_turns:
        page = Page(await store.read(LoadValue(key, NAMESPACE, PAGE)))
        interactions = Interactions(_interactions_in(await store.read(LoadInteractions(key))))
    left = _Left()
    if record.open_turns:
        left = await _close_left_open(key, record, transcript, store, services, interactions)
    else:
        left.failure = await _last_failure(key, record.last_turn, transcript, store)
    finished = [*record.closed_turns, *(turn.id for turn in record.open_turns)]
    conversation = Conversation(think, services, transcript, left.failure, finished, page, interactions, upload)
    if left.again is not None:
        conversation.take_up(*left.again, left.operations)
    else:
        if left.operations:
            # Nothing waits for it: the next start would make the same of what is stored. So the conversation can be
            # read even when nothing can be written.
            services.checkpoint(left.operations)
        transcript.shrink()
    return conversation


def _interactions_in(rows: Sequence[InteractionRow]) -> Iterator[Interaction]:
    for row in rows:
        try:
            yield codec.decode_as(Interaction, row.body)
        except codec.DecodeError as error:
            logger.warning("What is stored of the tool call %s is damaged: %s", row.call, error)


def _budget(given: float) -> float:
    return given if given > 0 and math.isfinite(given) else math.inf


async def _close_left_open(
    key: str,
    record: AgentRecord,
    transcript: Transcript,
    store: Store,
    services: Services,
    interactions: Interactions,
) -> _Left:
    """Keep what the open turns said, and close them. The last one is the failure that clients are shown, unless it
    waits for somebody, or goes on."""
    requests = [(turn, _request_of(turn)) for turn in record.open_turns]
    superseded = [turn.id for turn in record.open_turns if turn.status == "superseded"]
    # First, as the turn that closes last is the one that clients are shown.
    left = _Left([CloseTurn(turn, "skipped", None, services.now_ms()) for turn in superseded])
    await _read_what_they_need(requests, transcript)
    # Stopped while they waited: they keep their place behind the answer that was being made.
    withdrawn = [identifier for turn in record.withdrawn for identifier in _request_of(turn).own]
    waiting = [identifier for turn, request in requests if turn.status in _WAITING for identifier in request.own]
    await transcript.recall(withdrawn)
    await transcript.recall_following([*waiting, *withdrawn])
    transcript.hold([*waiting, *withdrawn])
    for turn, request in requests:
        transcript.begin(request.own)
        if turn.status == "superseded":
            continue
        if left.failure is not None:
            left.operations.append(DropChunks(left.failure.log.turn))
        log = await _chunk_log(key, turn.id, store, continuation=request.continuation)
        left.operations += _keep_answer(turn, request, log, transcript, services.now_ms(), interactions)
        failure = Failure(log, _written(turn, request, transcript), INTERRUPTED_TURN, request.origin)
        left.failure = failure if _close(turn, request, left, interactions, services.now_ms()) else None
        withdrawn = transcript.give_up(withdrawn)
    transcript.begin(withdrawn)
    if left.again is not None and not transcript.is_on_path(left.again[1]):
        left.again = None
    # What was approved and does not go on, as a message waited that would have overtaken it, will never run.
    stale = [group for group in interactions.ready if left.again is None or group != left.again[0]]
    for group in stale:
        await transcript.reach([], interactions.of(group)[0].message)
    left.operations += give_up(transcript, interactions.drop(stale, services.now_ms()))
    return left


def _close(turn: TurnRow, request: _Request, left: _Left, interactions: Interactions, now_ms: int) -> bool:
    """Close one turn. Whether it is a failure."""
    left.again = None
    is_ready = interactions.is_ready(turn.id)
    if is_ready or any(each.waits for each in interactions.of(turn.id)):
        # It had come to its end: somebody is asked, or has answered already.
        if is_ready:
            left.again = (turn.id, turn.message_id, 0)
        left.operations += [DropChunks(turn.id), CloseTurn(turn.id, "completed", None, now_ms)]
        return False
    if request.group is not None and request.tries(turn.status) < ATTEMPTS:
        left.again = (request.group, turn.message_id, request.tries(turn.status))
        left.operations += [DropChunks(turn.id), CloseTurn(turn.id, "interrupted", None, now_ms)]
        return False
    left.operations.append(CloseTurn(turn.id, "interrupted", INTERRUPTED_TURN, now_ms))
    return True


async def _read_what_they_need(requests: list[tuple[TurnRow, _Request]], transcript: Transcript) -> None:
    """Answers go behind messages that may be older than what is in memory."""
    on_path = [identifier for _, request in requests if not request.branches for identifier in request.needed]
    await transcript.extend(on_path)
    for turn, request in requests:
        if request.branches and request.parent is not None:
            await transcript.reach([], request.parent)
        if request.continuation and (extended := _extended(turn, request, transcript)) is not None:
            await transcript.extend([extended])
            await transcript.reach([extended], extended)


def _extended(turn: TurnRow, request: _Request, transcript: Transcript) -> str | None:
    """The message that a continuation goes on with."""
    return transcript.tip(None) if request.group is None else turn.message_id


def _written(turn: TurnRow, request: _Request, transcript: Transcript) -> str:
    """Id of the message that holds what a turn said."""
    return (_extended(turn, request, transcript) or "") if request.continuation else turn.message_id


def _keep_answer(
    turn: TurnRow,
    request: _Request,
    log: ChunkLog,
    transcript: Transcript,
    now_ms: int,
    interactions: Interactions,
) -> list[Operation]:
    """Store what a turn said before it was interrupted, and what was answered meanwhile."""
    operations: list[Operation] = []
    if request.group is not None:
        if request.tries(turn.status) >= ATTEMPTS:
            operations += give_up(transcript, interactions.drop([request.group], now_ms))
        # Whether these did anything is unknown: they are errors, and never run again.
        for interaction in [each for each in interactions.of(request.group) if each.state == "running"]:
            interactions.settle(interaction.call)
            operations.append(kept(interaction))
    last = transcript.known.get(_extended(turn, request, transcript) or "") if request.continuation else None
    extended = last.message.message if last is not None and last.message else None
    chunks = [codec.decode(codec.decode(body)) for body in log.bodies]
    message = rebuild(turn.message_id, chunks, extended, interactions.of(turn.id), left=interactions.unsettled)
    if message is None:
        return operations
    if extended is not None:
        return [*operations, *transcript.update(message)]
    parent = request.parent if request.parent in transcript.known else None
    if not request.branches or parent is None:
        parent = transcript.tip(parent)
    return [*operations, *transcript.answer(message, parent, now_ms)]


async def _last_failure(key: str, turn: TurnRow | None, transcript: Transcript, store: Store) -> Failure | None:
    if turn is None or turn.error is None:
        return None
    request = _request_of(turn)
    log = await _chunk_log(key, turn.id, store, continuation=request.continuation)
    return Failure(log, _written(turn, request, transcript), turn.error, request.origin)


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
