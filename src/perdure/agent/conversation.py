"""The conversation of one agent: what each event leads to.

Events come in synchronously and in order: a connection comes, sends a frame, goes. Deciding is left to the state
machines of ``chat``; running turns, to ``turns``. No event awaits, so each happens at once for everybody.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Sequence

from perdure.agent.driving import Driving
from perdure.agent.room import Room
from perdure.agent.services import PeerId, Services
from perdure.agent.think import Think
from perdure.agent.turn import Turn
from perdure.agent.turns import Failure, Turns
from perdure.chat.handshake import Greeting, Handshake, Idle, Pending, Resuming
from perdure.chat.reconcile import Changes, reconcile
from perdure.errors import BadRequest
from perdure.observability import emit
from perdure.protocol import client_frames
from perdure.protocol import server_frames as frames
from perdure.protocol.messages import UIMessage
from perdure.session.transcript import Transcript

__all__ = ["Conversation"]

logger = logging.getLogger(__name__)


class Conversation:
    """One agent's transcript, turns, and connections."""

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
        self._services = services
        self._transcript = transcript
        self._handshake: Handshake[PeerId] = Handshake(failure.log.turn if failure else None)
        self._room = Room(think, services, transcript, self._handshake)
        self._turns = Turns(self._room, failure, finished)
        self.driving = Driving(self._room, self._turns)
        """Turns and messages that the server's own code asks for."""

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
            self._greet(peer, greeting)
        if not isinstance(greeting, Resuming):
            self._send(peer, frames.transcript(self._transcript.texts(), connect=True))

    def disconnected(self, peer: PeerId) -> None:
        """A connection goes. Turns go on."""
        self._handshake.closed(peer)

    def received(self, peer: PeerId, frame: client_frames.ChatFrame | client_frames.Unusable) -> None:
        """A connection sends a frame."""
        match frame:
            case client_frames.ChatRequest():
                self._request(peer, frame)
            case client_frames.Cancel(id=request):
                self._turns.cancel(request)
            case client_frames.Clear():
                self.clear(peer)
            case client_frames.Probe(probeId=probe):
                self._greet(peer, self._handshake.probed(peer), probe)
            case client_frames.Ack(id=stream):
                for replayed in self._replay(peer, stream):
                    self._send(peer, replayed)
            case client_frames.Upload():
                logger.debug("Ignored a conversation that a client uploaded: the server keeps the history.")
            case client_frames.Unusable(reason=reason, request_id=request):
                self._refuse(peer, request, reason)

    def _refuse(self, peer: PeerId, request: str | None, reason: str) -> None:
        if request is None:
            logger.info("Ignored a frame: %s", reason)
        else:
            self._send(peer, frames.terminal_error(request, f"Bad request: {reason}"))
            emit("chat:request:failed", requestId=request, stage="parse", messagesPersisted=False, error=reason)

    def _greet(self, peer: PeerId, greeting: Greeting, probe: str | None = None) -> None:
        match greeting:
            case Resuming(id=stream):
                self._send(peer, frames.resuming(stream, probe))
            case Pending(id=request):
                self._send(peer, frames.pending(request, probe))
            case Idle():
                self._send(peer, frames.nothing_to_resume("idle", probe))

    def _replay(self, peer: PeerId, stream: str) -> Iterable[str]:
        """What a connection that takes up an offer is sent."""
        match self._handshake.acked(peer, stream):
            case "live" if log := self._turns.log:
                return [*log.replay(), log.frames.replay_complete()]
            case "failed" if failure := self._turns.failure:
                return [*failure.log.replay(), failure.log.frames.terminal_error(failure.text, failure.origin_ids)]
            case "over":
                return [frames.ChunkFrames(stream).replay_done()]
            case _:
                return []

    def _send(self, peer: PeerId, frame: str) -> None:
        self._services.send((peer,), frame)

    def _others(self, peer: PeerId | None) -> list[PeerId]:
        return [other for other in self._handshake.everyone if other != peer]

    # ── requests ────────────────────────────────────────────────────

    def _request(self, peer: PeerId, frame: client_frames.ChatRequest) -> None:
        if self._turns.is_open(frame.id):
            logger.info("Ignored a chat request that was delivered twice: %s", frame.id)
            return
        try:
            body = client_frames.parse_chat_body(frame.init)
            changes = self._reconcile(body)
        except BadRequest as error:
            self._send(peer, frames.terminal_error(frame.id, str(error)))
            emit("chat:request:failed", requestId=frame.id, stage="parse", messagesPersisted=False, error=str(error))
            return
        outcome = self._without_question(body, changes)
        if outcome is not None:
            self._send(peer, frames.transcript(self._transcript.texts()))
            self._send(peer, frames.terminal(frame.id, outcome, changes.origin_ids))
        elif self._turns.accept(frame.id, changes, body.custom) and changes.append and (others := self._others(peer)):
            self._services.send(others, frames.transcript(self._transcript.texts()))

    def _reconcile(self, body: client_frames.ChatBody) -> Changes:
        changes = reconcile(
            body.messages,
            regenerate=body.trigger == "regenerate-message",
            known=self._transcript.known,
            leaf=self._transcript.leaf,
            new_id=self._services.new_id,
        )
        if not changes.append and changes.parent is None:
            raise BadRequest("The chat request has no message to answer.")
        return changes

    def _without_question(self, body: client_frames.ChatBody, changes: Changes) -> frames.Outcome | None:
        """How a request ends at once that asks nothing new: the conversation ends with an answer, or with a question
        that is being answered. ``None`` for a request that is to be answered."""
        if body.trigger == "regenerate-message" or changes.append:
            return None
        leaf = self._transcript.known[self._transcript.leaf or ""]
        if leaf.role != "user":
            return "completed"
        return "skipped" if self._turns.answering(leaf.id) else None

    @property
    def active(self) -> Turn | None:
        """The turn that runs."""
        return self._turns.active

    def cancel(self, request: str) -> None:
        """Stop a turn, whether it runs or waits."""
        self._turns.cancel(request)

    def cancel_all(self) -> None:
        """Stop every turn."""
        self._turns.cancel_all()

    async def stop(self) -> None:
        """Stop every turn, and wait until all are over."""
        await self._turns.stop()

    def clear(self, sender: PeerId | None = None) -> None:
        """Forget the conversation and stop every turn. ``sender`` is not told."""
        skipped = self._turns.clear()
        self._services.write(self._transcript.clear())
        for peer in self._handshake.cleared():
            self._send(peer, frames.nothing_to_resume())
        self._services.send(self._others(sender), frames.cleared())
        for turn in skipped:
            self._services.send(self._handshake.everyone, frames.terminal(turn.id, "skipped", turn.origin_ids))

    # ── the host's side ─────────────────────────────────────────────

    def reattached(self, peer: PeerId) -> None:
        """A connection that stayed open while the agent was not in memory. It is told nothing."""
        self._handshake.connected(peer)

    def farewell(self, text: str) -> list[str]:
        """The error frames of the turns that are not over, for when the agent is dropped from memory."""
        return [frames.terminal_error(turn.id, text, turn.origin_ids) for turn in self._turns.unfinished]
