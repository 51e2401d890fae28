"""The conversation of one agent: what each event leads to.

Events come in synchronously and in order: a connection comes, sends a frame, goes. Deciding is left to the state
machines of ``chat``; this module does what they say: stores, sends, starts and settles turns. Everything between two
``await`` happens at once for everybody.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence
from dataclasses import dataclass

from perdure.agent.answer import Answer
from perdure.agent.hooks import prepare
from perdure.agent.loop import run_steps
from perdure.agent.services import PeerId, Services
from perdure.agent.stream import ChunkLog
from perdure.agent.think import Think
from perdure.agent.turn import Turn
from perdure.chat.handshake import Handshake, Idle, Pending, Resuming
from perdure.chat.reconcile import Changes, reconcile
from perdure.chat.repair import settle_open_calls
from perdure.chat.turns import TurnQueue
from perdure.errors import BadRequest, ModelError, PerdureError
from perdure.protocol import client_frames
from perdure.protocol import server_frames as frames
from perdure.protocol.messages import UIMessage
from perdure.session.transcript import Transcript
from perdure.storage.contract import CloseTurn, DropChunks, OpenTurn, Operation, UpdateTurn

__all__ = ["Conversation", "Failure"]

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


class Conversation:
    """One agent's transcript, queue of turns, and connections."""

    def __init__(
        self,
        think: Think,
        services: Services,
        transcript: Transcript,
        failure: Failure | None = None,
        finished: Sequence[str] = (),
    ) -> None:
        """A conversation without connections and without turns.

        Args:
            think: The agent's class says what turns run with.
            services: The host's side.
            transcript: What was said so far.
            failure: The turn that failed last, if none was accepted since.
            finished: Ids of turns that are over; a request with one of these is a repetition.
        """
        self._think = think
        self._services = services
        self._transcript = transcript
        self._failure = failure
        self._handshake: Handshake[PeerId] = Handshake(failure.log.turn if failure else None)
        self._queue = TurnQueue(finished)
        self._turns: dict[str, Turn] = {}
        self._answer: Answer | None = None
        self._withdrawn: list[str] = []
        self._generation = 0

    # ── reading ─────────────────────────────────────────────────────

    def messages(self) -> list[UIMessage]:
        """The stored messages of the active path. Shared: do not change them."""
        return self._transcript.messages()

    async def stored_messages(self) -> str:
        """The same as a JSON list, once it is durable."""
        texts = self._transcript.texts()
        await self._services.settled()
        return f"[{','.join(texts)}]"

    # ── connections ─────────────────────────────────────────────────

    def connected(self, peer: PeerId) -> None:
        """A connection comes: it gets the conversation, or the offer of the stream that runs."""
        greeting = self._handshake.connected(peer)
        if not isinstance(greeting, Idle):
            self._answer_probe(peer, greeting, None)
        if not isinstance(greeting, Resuming):
            self._services.send((peer,), frames.transcript(self._transcript.texts(), connect=True))

    def disconnected(self, peer: PeerId) -> None:
        """A connection goes. Turns go on."""
        self._handshake.closed(peer)

    def received(self, peer: PeerId, text: str) -> None:
        """A connection sends a frame."""
        frame = client_frames.parse(text)
        match frame:
            case client_frames.ChatRequest():
                self._request(peer, frame)
            case client_frames.Cancel(id=request):
                self._cancel(request)
            case client_frames.Clear():
                self._clear(peer)
            case client_frames.Probe(probeId=probe):
                self._answer_probe(peer, self._handshake.probed(peer), probe)
            case client_frames.Ack(id=stream):
                self._replay(peer, stream)
            case client_frames.Upload():
                logger.debug("Ignored a conversation that a client uploaded: the server keeps the history.")
            case client_frames.Unusable(reason=reason, request_id=request):
                self._refuse(peer, request, reason)

    def _refuse(self, peer: PeerId, request: str | None, reason: str) -> None:
        if request is None:
            logger.info("Ignored a frame: %s", reason)
        else:
            self._services.send((peer,), frames.terminal_error(request, f"Bad request: {reason}"))

    def _answer_probe(self, peer: PeerId, greeting: Resuming | Pending | Idle, probe: str | None) -> None:
        match greeting:
            case Resuming(id=stream):
                frame = frames.resuming(stream, probe)
            case Pending(id=request):
                frame = frames.pending(request, probe)
            case Idle():
                frame = frames.nothing_to_resume("idle", probe)
        self._services.send((peer,), frame)

    def _replay(self, peer: PeerId, stream: str) -> None:
        replay = self._handshake.acked(peer, stream)
        if replay == "live" and self._answer is not None:
            log = self._answer.stream
            sent = [*log.replay(), log.frames.replay_complete()]
        elif replay == "failed" and self._failure is not None:
            log = self._failure.log
            sent = [*log.replay(), log.frames.terminal_error(self._failure.text, self._failure.origin_ids)]
        elif replay == "over":
            sent = [frames.ChunkFrames(stream).replay_done()]
        else:
            sent = []
        for frame in sent:
            self._services.send((peer,), frame)

    def _send_others(self, peer: PeerId | None, frame: str) -> None:
        self._services.send([other for other in self._handshake.everyone if other != peer], frame)

    # ── requests ────────────────────────────────────────────────────

    def _request(self, peer: PeerId, frame: client_frames.ChatRequest) -> None:
        try:
            body = client_frames.parse_chat_body(frame.init)
            regenerate = body.trigger == "regenerate-message"
            changes = reconcile(
                body.messages,
                regenerate=regenerate,
                known=self._transcript.known,
                leaf=self._transcript.leaf,
                new_id=self._services.new_id,
            )
            if not changes.append and changes.parent is None:
                raise BadRequest("The chat request has no message to answer.")
        except BadRequest as error:
            self._services.send((peer,), frames.terminal_error(frame.id, str(error)))
            return
        if not regenerate and not changes.append and self._is_answered(body.messages):
            self._services.send((peer,), frames.transcript(self._transcript.texts()))
            self._services.send((peer,), frames.terminal(frame.id, "completed", changes.origin_ids))
            return
        self._admit(peer, frame.id, changes, body)

    def _is_answered(self, posted: Sequence[client_frames.PostedMessage]) -> bool:
        """Whether a request repeats one that was answered: its last message is a question with something after it."""
        last = posted[-1] if posted else None
        return last is not None and last.role == "user" and last.id != self._transcript.leaf

    def _admit(self, peer: PeerId, request: str, changes: Changes, body: client_frames.ChatBody) -> None:
        admission = self._queue.admit(request)
        if admission == "duplicate":
            logger.info("Ignored a chat request that was delivered twice: %s", request)
            return
        own = [message.id for message in changes.append]
        turn = Turn(
            id=request,
            trigger="ws-chat",
            message_id=self._services.new_id(),
            parent=own[-1] if own else changes.parent,
            own_messages=own,
            origin_ids=changes.origin_ids,
            generation=self._generation,
            body=body.custom,
        )
        self._turns[request] = turn
        self._services.write(self._accept(turn, changes, waiting=admission == "queue"))
        self._handshake.accepted(request)
        if own:
            self._send_others(peer, frames.transcript(self._transcript.texts()))
        if admission == "run":
            self._start(turn)

    def _accept(self, turn: Turn, changes: Changes, *, waiting: bool) -> list[Operation]:
        now = self._services.now_ms()
        operations: list[Operation] = []
        parent = changes.parent
        for message in changes.append:
            operations += self._transcript.append(message.id, message.role, message.text, parent, now, waiting=waiting)
            parent = message.id
        if self._failure is not None:
            operations.append(DropChunks(self._failure.log.turn))
            self._failure = None
        status = "queued" if waiting else "running"
        operations.append(OpenTurn(turn.id, status, turn.trigger, turn.to_json(), turn.message_id, now))
        return operations

    def _cancel(self, request: str) -> None:
        turn = self._turns.get(request)
        if turn is None:
            return
        if self._queue.withdraw(request):
            # Its messages keep their place behind the answer that is being made.
            self._withdrawn += turn.own_messages
            self._services.write([CloseTurn(turn.id, "aborted", None, self._services.now_ms())])
            self._end(turn, _Ending("aborted"))
        else:
            turn.scope.cancel()

    def _clear(self, sender: PeerId | None) -> None:
        self._generation += 1
        skipped = [self._turns.pop(request) for request in self._queue.clear()]
        if self._answer is not None:
            self._answer.discard()
        for turn in self._turns.values():
            turn.scope.cancel()
        self._failure = None
        self._withdrawn.clear()
        self._services.write(self._transcript.clear())
        for peer in self._handshake.cleared():
            self._services.send((peer,), frames.nothing_to_resume())
        self._send_others(sender, frames.cleared())
        for turn in skipped:
            self._services.send(self._handshake.everyone, frames.terminal(turn.id, "skipped", turn.origin_ids))

    # ── turns ───────────────────────────────────────────────────────

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
            self._start(self._turns[following])

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
            self._failure = Failure(answer.stream, ending.error, turn.origin_ids)
        operations.append(CloseTurn(turn.id, ending.outcome, ending.error, now))
        return operations

    def _end(self, turn: Turn, ending: _Ending) -> None:
        """Tell everybody that a turn is over, and let go of whoever waited for it."""
        del self._turns[turn.id]
        if ending.error is None or ending.told:
            frame = frames.terminal(turn.id, ending.outcome, turn.origin_ids)
        else:
            frame = frames.terminal_error(turn.id, ending.error, turn.origin_ids)
        self._services.send(self._handshake.listeners, frame)
        failed = self._failure is not None and self._failure.log.turn == turn.id
        for peer in self._handshake.settled(turn.id, failed=failed):
            # Whoever came while the turn was being prepared is shown why nothing came of it.
            self._services.send((peer,), frames.resuming(turn.id) if failed else frames.nothing_to_resume())
