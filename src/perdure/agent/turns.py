"""The life of turns: accepted, started when it is their turn, run, settled.

Owns the queue, the turn that runs with its stream, and the last failure. Deciding which turns there are to be is the
conversation's business.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from perdure.agent.answer import Answer
from perdure.agent.hooks import prepare
from perdure.agent.loop import run_steps
from perdure.agent.services import PeerId, Services
from perdure.agent.stream import ChunkLog
from perdure.agent.think import Think
from perdure.agent.turn import Turn
from perdure.chat.handshake import Handshake
from perdure.chat.reconcile import Changes
from perdure.chat.repair import settle_open_calls
from perdure.chat.turns import TurnQueue
from perdure.errors import ModelError, PerdureError
from perdure.protocol import server_frames as frames
from perdure.session.transcript import Transcript
from perdure.storage.contract import CloseTurn, DropChunks, OpenTurn, Operation, UpdateTurn

__all__ = ["Failure", "Turns"]

logger = logging.getLogger(__name__)

INTERNAL_ERROR = "Something went wrong on the server. The details are in its log."


@dataclass(frozen=True, slots=True)
class Failure:
    """The turn that failed last, kept for clients that were away."""

    log: ChunkLog
    text: str
    origin_ids: Sequence[str]


@dataclass(frozen=True, slots=True)
class _Ending:
    outcome: frames.Outcome
    error: str | None = None
    told: bool = False
    """Whether the error was said in the stream already."""


class Turns:
    """All turns of one agent: at most one runs."""

    def __init__(
        self,
        think: Think,
        services: Services,
        transcript: Transcript,
        handshake: Handshake[PeerId],
        failure: Failure | None,
        finished: Sequence[str],
    ) -> None:
        self._think = think
        self._services = services
        self._transcript = transcript
        self._handshake = handshake
        self._queue = TurnQueue(finished)
        self._open: dict[str, Turn] = {}
        self._leaving: dict[str, Turn] = {}
        """Turns that are over and whose end has not been sent: it waits until it is stored."""
        self._withdrawn: list[str] = []
        """Messages whose turn was cancelled while it waited; they keep their place behind the answer that runs."""
        self._generation = 0
        self._answer: Answer | None = None
        self.failure = failure
        """The turn that failed last, unless another was accepted since."""

    @property
    def log(self) -> ChunkLog | None:
        """The chunks of the turn that runs."""
        return self._answer.stream if self._answer is not None else None

    def accept(self, request: str, changes: Changes, body: Mapping[str, Any]) -> bool:
        """Take a turn, with the messages that came with it. False when this request was accepted before."""
        admission = self._queue.admit(request)
        if admission == "duplicate":
            logger.info("Ignored a chat request that was delivered twice: %s", request)
            return False
        own = [message.id for message in changes.append]
        turn = Turn(
            id=request,
            trigger="ws-chat",
            message_id=self._services.new_id(),
            parent=own[-1] if own else changes.parent,
            own_messages=own,
            origin_ids=changes.origin_ids,
            generation=self._generation,
            body=body,
        )
        self._open[request] = turn
        self._services.write(self._opening(turn, changes, waiting=admission == "queue"))
        self._handshake.accepted(request)
        if admission == "run":
            self._start(turn)
        return True

    def cancel(self, request: str) -> None:
        """Stop a turn, whether it runs or waits. One that is not there is none."""
        turn = self._open.get(request)
        if turn is None:
            return
        if self._queue.withdraw(request):
            self._withdrawn += turn.own_messages
            self._services.write([CloseTurn(turn.id, "aborted", None, self._services.now_ms())])
            self._end(turn, _Ending("aborted"))
        else:
            turn.scope.cancel()

    def clear(self) -> list[Turn]:
        """The conversation is forgotten: the turn that runs ends without a trace. Gives the turns that waited."""
        self._generation += 1
        skipped = [self._open.pop(request) for request in self._queue.clear()]
        if self._answer is not None:
            self._answer.discard()
        for turn in self._open.values():
            turn.scope.cancel()
        self.failure = None
        self._withdrawn.clear()
        return skipped

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

    # ── the turn that runs ──────────────────────────────────────────

    def _start(self, turn: Turn) -> None:
        self._transcript.begin(turn.own_messages)
        self._services.spawn(self._run(turn), f"turn {turn.id}")

    async def _run(self, turn: Turn) -> None:
        answer = self._answer = Answer(turn, self._services, self._handshake)
        ending = _Ending("aborted")
        try:
            with turn.scope:
                ending = await self._attempt(turn, answer)
        except asyncio.CancelledError:
            # The server stops: what was said so far is kept, and the turn stays open for the next start.
            if turn.generation == self._generation:
                self._services.checkpoint(answer.stream.unstored())
            raise
        self._settle(turn, answer, ending)

    async def _attempt(self, turn: Turn, answer: Answer) -> _Ending:
        try:
            job = await prepare(self._think, turn, self._transcript.history(turn.parent))
            answer.open()
            await run_steps(job, answer)
        except ModelError as error:
            if answer.opened:
                answer.fail(str(error))
            return _Ending("error", str(error), told=answer.opened)
        except PerdureError as error:
            logger.warning("Turn %s failed: %s", turn.id, error)
            return _Ending("error", str(error))
        except Exception:
            # The user's own code ran in there: whatever it raises ends this turn and nothing else.
            logger.exception("Turn %s failed", turn.id)
            return _Ending("error", INTERNAL_ERROR)
        return _Ending("completed")

    def _settle(self, turn: Turn, answer: Answer, ending: _Ending) -> None:
        """The turn is over: store, then show, then say so."""
        self._answer = None
        self._handshake.stream_ended()
        if turn.generation == self._generation:
            turn.builder.close()
            settle_open_calls(turn.builder.parts)
            self._services.write(self._closing(turn, answer, ending))
            self._transcript.begin(self._withdrawn)
            self._withdrawn.clear()
            if turn.builder.has_content:
                self._services.send(self._handshake.everyone, frames.transcript(self._transcript.texts()))
        self._end(turn, ending)
        following = self._queue.finish(turn.id)
        if following is not None:
            self._services.write([UpdateTurn(following, "running")])
            self._start(self._open[following])

    def _closing(self, turn: Turn, answer: Answer, ending: _Ending) -> list[Operation]:
        """One transaction: the message, the turn's end, and what becomes of its chunks."""
        now = self._services.now_ms()
        operations: list[Operation] = []
        if turn.builder.has_content:
            operations += self._transcript.answer(turn.builder.message(), turn.parent, now)
        if ending.error is None:
            answer.stream.stop()
            operations.append(DropChunks(turn.id))
        else:
            # Clients that were away are shown what was said and then the error, until the next request.
            operations += answer.stream.unstored()
            self.failure = Failure(answer.stream, ending.error, turn.origin_ids)
        operations.append(CloseTurn(turn.id, ending.outcome, ending.error, now))
        return operations

    def _end(self, turn: Turn, ending: _Ending) -> None:
        """Tell everybody that a turn is over, and let go of whoever waited for it."""
        self._leaving[turn.id] = self._open.pop(turn.id)
        if ending.error is None or ending.told:
            frame = frames.terminal(turn.id, ending.outcome, turn.origin_ids)
        else:
            frame = frames.terminal_error(turn.id, ending.error, turn.origin_ids)
        self._services.send(self._handshake.listeners, frame)
        self._services.then(lambda: self._told(turn))
        failed = self.failure is not None and self.failure.log.turn == turn.id
        for peer in self._handshake.settled(turn.id, failed=failed):
            # Whoever came while the turn was being prepared is shown why nothing came of it.
            self._services.send((peer,), frames.resuming(turn.id) if failed else frames.nothing_to_resume())

    def _told(self, turn: Turn) -> None:
        del self._leaving[turn.id]

    @property
    def unfinished(self) -> list[Turn]:
        """The turns whose end nobody was told, in the order in which they were accepted."""
        return [*self._leaving.values(), *self._open.values()]
