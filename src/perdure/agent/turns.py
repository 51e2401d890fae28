"""The life of turns: accepted, started when it is their turn, run, settled.

Owns the queue, the turn that runs with its stream, and the last failure. Deciding which turns there are to be is the
conversation's business; answering, ``attempt``'s.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from perdure.agent.answer import Answer
from perdure.agent.attempt import Ending, attempt
from perdure.agent.hooks import call, overridden
from perdure.agent.nesting import Nesting
from perdure.agent.room import Room
from perdure.agent.services import PeerId
from perdure.agent.stopping import is_stopping
from perdure.agent.stream import ChunkLog
from perdure.agent.submits import ClientSubmits
from perdure.agent.think import Think
from perdure.agent.turn import Turn
from perdure.agent.turn_config import ChatResponse, TurnResult
from perdure.chat.reconcile import Changes
from perdure.chat.repair import settle_open_calls
from perdure.chat.turns import TurnQueue
from perdure.observability import emit, in_turn
from perdure.observability.tracing import turn_span
from perdure.protocol import server_frames as frames
from perdure.storage.contract import CloseTurn, DropChunks, OpenTurn, Operation, UpdateTurn

__all__ = ["Failure", "Turns"]

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Failure:
    """The turn that failed last, kept for clients that were away."""

    log: ChunkLog
    text: str
    origin_ids: Sequence[str]


class Turns:
    """All turns of one agent: at most one runs."""

    def __init__(self, room: Room, failure: Failure | None, finished: Sequence[str]) -> None:
        self._room = room
        self._services = room.services
        self._transcript = room.transcript
        self._handshake = room.handshake
        self._queue = TurnQueue(finished)
        self._open: dict[str, Turn] = {}
        self._submits = ClientSubmits(room, self._open)
        self._leaving: dict[str, Turn] = {}
        """Turns that are over and whose end has not been sent: it waits until it is stored."""
        self._withdrawn: list[str] = []
        """Messages whose turn was cancelled while it waited; they keep their place behind the answer that runs."""
        self._generation = 0
        self._answer: Answer | None = None
        self._ended: asyncio.Event | None = None
        self.nesting = Nesting(lambda turn: self._queue.active == turn)
        """What waits for turns of this agent."""
        self.failure = failure
        """The turn that failed last, unless another was accepted since."""

    @property
    def log(self) -> ChunkLog | None:
        """The chunks of the turn that runs."""
        return self._answer.stream if self._answer is not None else None

    @property
    def active(self) -> Turn | None:
        """The turn that runs."""
        return self._open.get(self._queue.active or "")

    @property
    def streaming(self) -> bool:
        """Whether an answer is being made."""
        return self._answer is not None and self._answer.opened

    # ── accepting ───────────────────────────────────────────────────

    def accept(
        self, peer: PeerId, request: str, changes: Changes, body: Mapping[str, Any], *, submit: bool
    ) -> Literal["accepted", "dropped", "duplicate"]:
        """Take a client's request, with the messages that came with it.

        Not when it was taken or dropped before; and a ``submit`` (all but the wish for another answer) not when the
        class drops what comes while a turn runs or waits.

        Raises:
            ConfigurationError: the agent's ``message_concurrency`` is none.
        """
        if self._queue.knows(request):
            logger.info("Ignored a chat request that was delivered twice: %s", request)
            return "duplicate"
        decision = self._submits.decide(request, self._generation) if submit else None
        if decision is not None and decision.drops:
            self._queue.refuse(request)
            return "dropped"
        own = [message.id for message in changes.append]
        turn = Turn(
            id=request,
            trigger="ws-chat",
            message_id=self._services.new_id(),
            generation=self._generation,
            parent=own[-1] if own else changes.parent,
            branches=not own and changes.parent != self._transcript.leaf,
            own_messages=own,
            origin_ids=changes.origin_ids,
            body=body,
            sender=peer,
            not_before=None if decision is None else decision.quiet_until,
        )
        superseding = [] if decision is None else self._submits.supersede(decision, self._queue.active)
        self._admit(turn, changes, superseding)
        return "accepted"

    def submit(self, trigger: str, *, inputs: Any = None, continuation: bool = False, body: Any = None) -> Turn:
        """Take a turn that the server's own code asks for. It has a result to wait for."""
        turn = Turn(
            id=self._services.new_id(),
            trigger=trigger,
            message_id=self._services.new_id(),
            generation=self._generation,
            continuation=continuation,
            body=body or {},
            inputs=inputs,
            result=asyncio.get_running_loop().create_future(),
        )
        self._admit(turn, Changes([], None, []))
        return turn

    def is_open(self, request: str) -> bool:
        """Whether this request runs or waits."""
        return request in self._open

    @property
    def answers(self) -> set[str]:
        """Ids of the messages that open turns will write: clients know them, and may not use them for their own."""
        return {turn.message_id for turn in self._open.values()}

    def answering(self, message: str) -> bool:
        """Whether a turn runs or waits that answers this message."""
        return any(turn.parent == message for turn in self._open.values())

    def _admit(self, turn: Turn, changes: Changes, operations: Sequence[Operation] = ()) -> None:
        admission = self._queue.admit(turn.id)
        self._open[turn.id] = turn
        self._services.write([*operations, *self._opening(turn, changes, waiting=admission == "queue")])
        self._handshake.accepted(turn.id)
        if admission == "run":
            self._start(turn)

    def _opening(self, turn: Turn, changes: Changes, *, waiting: bool) -> list[Operation]:
        """One transaction: the messages and the turn that is to answer them."""
        now = self._services.now_ms()
        operations: list[Operation] = []
        parent = changes.parent
        for message in changes.append:
            operations += self._transcript.append(message.id, message.role, message.text, parent, now, waiting=waiting)
            parent = message.id
        if self.failure is not None:
            operations.append(DropChunks(self.failure.log.turn))
            self.failure = None
        status = "queued" if waiting else "running"
        operations.append(OpenTurn(turn.id, status, turn.trigger, turn.to_json(), turn.message_id, now))
        return operations

    # ── ending from outside ─────────────────────────────────────────

    def cancel(self, request: str) -> None:
        """Stop a turn, whether it runs or waits. One that is not there is none."""
        turn = self._open.get(request)
        if turn is None:
            return
        if turn.inputs is None and self._queue.withdraw(request):
            self._withdrawn += turn.own_messages
            self._services.write([CloseTurn(turn.id, "aborted", None, self._services.now_ms())])
            self._end(turn, Ending("aborted"))
            self._report(turn, Ending("aborted"))
        else:
            turn.scope.cancel()

    def cancel_all(self) -> None:
        """Stop every turn."""
        for request in [*self._queue.waiting, self._queue.active]:
            if request is not None:
                self.cancel(request)

    async def stop(self) -> None:
        """Stop every turn, and wait until all are over."""
        while self._queue.active is not None:
            self._ended = asyncio.Event()
            self.cancel_all()
            await self._ended.wait()

    def clear(self) -> list[Turn]:
        """The conversation is forgotten: the turn that runs ends without a trace. Gives the turns that waited."""
        self._generation += 1
        skipped = [self._open.pop(request) for request in self._queue.clear()]
        if self._answer is not None:
            self._answer.discard()
        for turn in self._open.values():
            turn.scope.cancel()
        for turn in skipped:
            self._report(turn, Ending("skipped"))
        self.failure = None
        self._withdrawn.clear()
        self._submits.clear()
        return skipped

    # ── the turn that runs ──────────────────────────────────────────

    def _start(self, turn: Turn) -> None:
        self._transcript.begin(turn.own_messages)
        self._services.spawn(self._run(turn), f"turn {turn.id}", turn.context)

    async def _run(self, turn: Turn) -> None:
        think = self._room.think
        with (
            in_turn(turn.id, store_messages=think.store_messages, store_tools=think.store_tools),
            turn_span(turn.trigger) as span,
        ):
            emit("chat:turn:start", requestId=turn.id, trigger=turn.trigger, continuation=turn.continuation)
            ending = await self._carry_out(turn)
            span.ended(ending.outcome)
            emit("chat:turn:finish", requestId=turn.id, status=ending.outcome)

    async def _carry_out(self, turn: Turn) -> Ending:
        self.nesting.enter(turn.id)
        answer = self._answer = Answer(turn, self._room)
        try:
            ending = await self._reach_an_end(turn, answer)
        except asyncio.CancelledError:
            # The server stops: what was said so far is kept, and the turn stays open for the next start.
            if turn.generation == self._generation:
                self._services.checkpoint(answer.stream.unstored())
            for unfinished in self._open.values():
                if unfinished.result is not None:
                    unfinished.result.cancel()
            raise
        self._settle(turn, answer, ending)
        if ending.outcome == "error":
            stage = "stream" if answer.opened else "turn"
            emit("message:error", requestId=turn.id, error=ending.error)
            emit("chat:request:failed", requestId=turn.id, stage=stage, messagesPersisted=True, error=ending.error)
        if answer.opened:
            await self._tell_application(turn, ending)
        self._report(turn, ending)
        self._go_on(turn)
        return ending

    async def _reach_an_end(self, turn: Turn, answer: Answer) -> Ending:
        if turn.generation != self._generation:
            return Ending("skipped")
        ending = Ending("aborted")
        begun = False
        with turn.scope:
            await self._wait(turn)
            begun = self._submits.begin(turn)
            if begun:
                ending = await attempt(turn, answer, self._room)
        lost = not begun and (self._submits.is_superseded(turn) or turn.generation != self._generation)
        return Ending("skipped") if lost else ending

    async def _wait(self, turn: Turn) -> None:
        """Until the turn may begin. It can be stopped, cleared or superseded meanwhile."""
        if turn.not_before is not None and (ms := turn.not_before - self._services.now_ms()) > 0:
            await self._services.sleep(ms / 1000)

    def _settle(self, turn: Turn, answer: Answer, ending: Ending) -> None:
        """The turn is over: store, then show, then say so."""
        self._answer = None
        self._handshake.stream_ended()
        if turn.generation == self._generation:
            turn.builder.close()
            if repaired := settle_open_calls(turn.builder.parts):
                emit("chat:transcript:repaired", requestId=turn.id, toolCallIds=repaired)
            self._services.write(self._closing(turn, answer, ending))
            self._transcript.begin(self._withdrawn)
            self._withdrawn.clear()
            if turn.builder.changed:
                self._room.show()
        self._end(turn, ending)

    def _closing(self, turn: Turn, answer: Answer, ending: Ending) -> list[Operation]:
        """One transaction: the message, the turn's end, and what becomes of its chunks."""
        now = self._services.now_ms()
        operations: list[Operation] = []
        if turn.builder.changed:
            message = turn.builder.message()
            if turn.continuation:
                operations += self._transcript.update(message)
            else:
                parent = turn.parent if turn.branches else self._transcript.tip(turn.parent)
                operations += self._transcript.answer(message, parent, now)
        if ending.error is None:
            answer.stream.stop()
            operations.append(DropChunks(turn.id))
        else:
            # Clients that were away are shown what was said and then the error, until the next request.
            operations += answer.stream.unstored()
            self.failure = Failure(answer.stream, ending.error, turn.origin_ids)
        operations.append(CloseTurn(turn.id, ending.outcome, ending.error, now))
        return operations

    def _end(self, turn: Turn, ending: Ending) -> None:
        """Tell everybody that a turn is over, and let go of whoever waited for it."""
        self._leaving[turn.id] = self._open.pop(turn.id)
        end = frames.ChunkFrames(turn.id, continuation=turn.continuation)
        if ending.error is None or ending.told:
            frame = end.terminal(ending.outcome, turn.origin_ids)
        else:
            frame = end.terminal_error(ending.error, turn.origin_ids)
        self._services.send(self._submits.end(turn, ending), frame)
        self._services.then(lambda: self._told(turn))
        failed = self.failure is not None and self.failure.log.turn == turn.id
        for peer in self._handshake.settled(turn.id, failed=failed):
            # Whoever came while the turn was being prepared is shown why nothing came of it.
            self._services.send((peer,), frames.resuming(turn.id) if failed else frames.nothing_to_resume())

    async def _tell_application(self, turn: Turn, ending: Ending) -> None:
        think = self._room.think
        if not overridden(think, Think.on_chat_response):
            return
        response = ChatResponse(
            request_id=turn.id,
            status=_status(ending),
            message=turn.builder.message(),
            continuation=turn.continuation,
            error=ending.error,
        )
        try:
            await call(think.on_chat_response, response)
        except (Exception, asyncio.CancelledError) as error:
            if isinstance(error, asyncio.CancelledError) and is_stopping():
                raise
            # The turn is over and stored: what the application makes of it changes nothing.
            logger.exception("on_chat_response failed for turn %s", turn.id)

    def _report(self, turn: Turn, ending: Ending) -> None:
        """Whoever waits for the turn learns how it ended."""
        if turn.result is None or turn.result.done():
            return
        stale = turn.generation != self._generation
        completed = ending.outcome == "completed" and not stale
        turn.result.set_result(
            TurnResult(
                request_id=turn.id,
                status="skipped" if ending.outcome == "completed" and stale else _status(ending),
                error=ending.error,
                message=turn.builder.message() if completed and turn.builder.has_content else None,
                continuation=turn.continuation,
            )
        )

    def _go_on(self, turn: Turn) -> None:
        following = self._queue.finish(turn.id)
        while following is not None and self._submits.is_superseded(self._open[following]):
            following = self._skip(self._open[following])
        if self._ended is not None:
            self._ended.set()
        if following is not None:
            self._services.write([UpdateTurn(following, "running")])
            self._start(self._open[following])
        else:
            self._transcript.shrink()

    def _skip(self, turn: Turn) -> str | None:
        """A turn does not begin, as it was superseded. Gives the one whose turn it is instead."""
        self._transcript.begin(turn.own_messages)
        self._services.write([CloseTurn(turn.id, "skipped", None, self._services.now_ms())])
        self._end(turn, Ending("skipped"))
        return self._queue.finish(turn.id)

    def _told(self, turn: Turn) -> None:
        del self._leaving[turn.id]

    @property
    def unfinished(self) -> list[Turn]:
        """The turns whose end nobody was told, in the order in which they were accepted."""
        return [*self._leaving.values(), *self._open.values()]


def _status(ending: Ending) -> Any:
    return "aborted" if ending.outcome == "recovering" else ending.outcome
