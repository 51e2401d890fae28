"""The conversation of one agent: what each event leads to.

Events come in synchronously and in order: a connection comes, sends a frame, goes. Deciding is left to the state
machines of ``chat``; running turns, to ``turns``. No event awaits between looking and acting, so each happens at once
for everybody. A request that names messages which are not in memory is the only one that reads before it looks; what
comes behind it waits in the ``lane``.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Coroutine, Iterable, Sequence
from typing import Any

import msgspec

from perdure.agent.driving import Driving
from perdure.agent.ending import Failure
from perdure.agent.interactions import Answering
from perdure.agent.lane import Lane
from perdure.agent.page import Page
from perdure.agent.room import Room
from perdure.agent.services import PeerId, Services
from perdure.agent.think import Think
from perdure.agent.turn import Turn
from perdure.agent.turns import Turns
from perdure.chat.answers import is_unseen
from perdure.chat.handshake import Greeting, Handshake, Idle, Pending, Resuming, Taken
from perdure.chat.interactions import Interactions
from perdure.chat.reconcile import Changes, reconcile
from perdure.chat.uploads import check_uploads
from perdure.errors import BadRequest, ConfigurationError, StorageError
from perdure.observability import emit
from perdure.protocol import client_frames
from perdure.protocol import server_frames as frames
from perdure.protocol.bounds import MAX_ID
from perdure.protocol.messages import UIMessage
from perdure.session.transcript import Transcript
from perdure.storage.contract import Operation

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
        page: Page | None = None,
        interactions: Interactions | None = None,
        upload: float = math.inf,
    ) -> None:
        """A conversation without connections and without turns.

        Args:
            think: The agent's class says what turns run with.
            services: The host's side.
            transcript: What was said so far.
            failure: The turn that failed last, if none was accepted since.
            finished: Ids of turns that are over; a request with one of these is a repetition.
            page: What the page sent last.
            interactions: The tool calls that wait for somebody.
            upload: Most bytes of one message that a client adds.
        """
        self.think = think
        """The agent."""
        self._services = services
        self._transcript = transcript
        self._upload = upload
        self._handshake: Handshake[PeerId] = Handshake(failure.log.turn if failure else None)
        self._page = page or Page()
        self._room = Room(think, services, transcript, self._handshake, self._page, interactions or Interactions())
        self._turns = Turns(self._room, failure, finished)
        self._lane = Lane(services.spawn)
        self.answering = Answering(self._room, self._turns)
        """Answers to tool calls that wait for somebody."""
        self.driving = Driving(self._room, self._turns)
        """Turns and messages that the server's own code asks for."""

    # ── reading ─────────────────────────────────────────────────────

    def messages(self) -> list[UIMessage]:
        """The newest stored messages of the active path, as clients are sent them. Shared: do not change them."""
        return self._transcript.messages()

    async def page(self, before: str | None, limit: int | None) -> list[UIMessage]:
        """Stored messages of the active path, however old, as copies (see :meth:`Transcript.page`)."""
        return await self._transcript.page(before, limit)

    async def stored_messages(self) -> str:
        """What :meth:`messages` gives, as a JSON list, once it is durable."""
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
        self._lane.enter(lambda: self._handshake.closed(peer))

    def received(self, peer: PeerId, frame: client_frames.ChatFrame | client_frames.Unusable, by: str) -> None:
        """A connection sends a frame. ``by`` is the connection's id for people to read."""
        self._lane.enter(lambda: self._handle(peer, frame, by))

    def refused(self, peer: PeerId, frame: client_frames.ChatFrame | client_frames.Unusable) -> None:
        """A connection sends a frame that the application does not let it send: nothing comes of it."""
        self._lane.enter(lambda: self._turn_away(peer, frame))

    def _turn_away(self, peer: PeerId, frame: client_frames.ChatFrame | client_frames.Unusable) -> None:
        logger.info("Refused a frame of a connection: %s", type(frame).__name__)
        if not isinstance(frame, client_frames.Cancel):
            # Pages show what they ask for at once; this takes it back.
            self._send(peer, frames.transcript(self._transcript.texts()))
        if isinstance(frame, client_frames.ChatRequest):
            self._fail(peer, frame.id, "You may not write in this conversation.", "refused")

    def _handle(
        self, peer: PeerId, frame: client_frames.ChatFrame | client_frames.Unusable, by: str
    ) -> Coroutine[Any, Any, None] | None:
        match frame:
            case client_frames.ChatRequest():
                return self._request(peer, frame)
            case client_frames.ToolResult():
                return self.answering.result(peer, by, frame)
            case client_frames.ToolApproval():
                return self.answering.decision(peer, by, frame)
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
        return None

    def _refuse(self, peer: PeerId, request: str | None, reason: str) -> None:
        if request is None:
            logger.info("Ignored a frame: %s", reason)
        else:
            self._send(peer, frames.terminal_error(request, f"Bad request: {reason}"))
            emit(
                "chat:request:failed", requestId=request[:MAX_ID], stage="parse", messagesPersisted=False, error=reason
            )

    def _greet(self, peer: PeerId, greeting: Greeting, probe: str | None = None) -> None:
        match greeting:
            case Resuming(id=stream):
                self._send(peer, frames.resuming(stream, probe))
            case Pending(id=request):
                self._send(peer, frames.pending(request, probe))
            case Taken():
                self._send(peer, frames.nothing_to_resume("continuation-owned", probe))
            case Idle():
                self._send(peer, frames.nothing_to_resume("idle", probe))

    def _replay(self, peer: PeerId, stream: str) -> Iterable[str]:
        """What a connection that takes up an offer is sent."""
        match self._handshake.acked(peer, stream):
            case "live" if log := self._turns.log:
                return [*log.replay(), log.frames.replay_complete()]
            case "failed" if failure := self._turns.failure:
                error = failure.log.frames.terminal_error(failure.text, failure.origin_ids)
                # How its calls ended was said outside the stream.
                return [*failure.log.replay(), error, *self._room.updated(failure.message)]
            case "over":
                return [frames.ChunkFrames(stream).replay_done()]
            case _:
                return []

    def _send(self, peer: PeerId, frame: str) -> None:
        self._services.send((peer,), frame)

    def _others(self, peer: PeerId | None) -> list[PeerId]:
        return [other for other in self._handshake.everyone if other != peer]

    # ── requests ────────────────────────────────────────────────────

    def _request(self, peer: PeerId, frame: client_frames.ChatRequest) -> Coroutine[Any, Any, None] | None:
        if self._turns.delivered_again(frame.id, peer):
            logger.info("Ignored a chat request that was delivered twice: %s", frame.id)
            return None
        try:
            body = client_frames.parse_chat_body(frame.init)
            self._page.check(body.client_tools)
            missing = self._missing(body)
            if missing is not None:
                return self._admit_after_reading(peer, frame.id, body, missing)
            self._admit(peer, frame.id, body)
        except (BadRequest, ConfigurationError) as error:
            self._fail(peer, frame.id, str(error), "parse")
        return None

    async def _admit_after_reading(
        self, peer: PeerId, request: str, body: client_frames.ChatBody, missing: Coroutine[Any, Any, None] | None
    ) -> None:
        try:
            while missing is not None:
                await missing
                missing = self._missing(body)
            # Nothing is awaited between that look and this act.
            self._admit(peer, request, body)
        except (BadRequest, ConfigurationError) as error:
            self._fail(peer, request, str(error), "parse")
        except StorageError as error:
            logger.error("The chat request %s could not be admitted: %s", request, error)
            self._fail(peer, request, "The conversation could not be read.", "persist")
        if self._turns.active is None:
            self._transcript.shrink()

    def _fail(self, peer: PeerId, request: str, text: str, stage: str) -> None:
        """A request was not accepted."""
        self._send(peer, frames.terminal_error(request, text))
        emit("chat:request:failed", requestId=request, stage=stage, messagesPersisted=False, error=text)

    def _missing(self, body: client_frames.ChatBody) -> Coroutine[Any, Any, None] | None:
        """What must be read before it can be said what the request changes; ``None`` when all is in memory."""
        transcript = self._transcript
        if transcript.is_all_here or not body.messages:
            return None
        last = body.messages[-1].id
        unknown = transcript.unknown([last, *(message.id for message in body.messages if message.role == "user")])
        if unknown:
            return transcript.recall(unknown)
        parent = self._reconcile(body).parent
        for identifier in (last, parent):
            if identifier is not None and identifier in transcript.known and transcript.lacks(identifier):
                return transcript.load(identifier)
        return None

    def _admit(self, peer: PeerId, request: str, body: client_frames.ChatBody) -> None:
        """Decide and act, from what is in memory."""
        changes = self._reconcile(body)
        outcome = self._without_question(body, changes)
        if outcome is not None:
            self._end_at_once(peer, request, outcome, changes)
            return
        if not changes.append:
            self._transcript.aim_at(changes.parent)
        decision = self._turns.decide(request, submit=body.trigger != "regenerate-message")
        if decision is None:
            return
        if decision.drops:
            self._end_at_once(peer, request, "skipped", changes)
            return
        page = self._page.asked(body.client_tools, body.custom)
        self._turns.accept(peer, request, changes, decision, page)
        if changes.append and (others := self._others(peer)):
            self._services.send(others, frames.transcript(self._transcript.texts()))

    def _end_at_once(self, peer: PeerId, request: str, outcome: frames.Outcome, changes: Changes) -> None:
        """The sender is told what the conversation is, then that its request is over."""
        self._send(peer, frames.transcript(self._transcript.texts()))
        self._send(peer, frames.terminal(request, outcome, changes.origin_ids))

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
        if not changes.append and (extends := self._unseen(body)) is not None:
            changes = msgspec.structs.replace(changes, extends=extends)
        check_uploads(changes.append, self._upload)
        if taken := self._turns.answers.intersection(message.id for message in changes.append):
            raise BadRequest(f"The id {taken.pop()!r} is that of an answer: a new message needs another.")
        return changes

    def _without_question(self, body: client_frames.ChatBody, changes: Changes) -> frames.Outcome | None:
        """How a request ends at once that asks nothing new: the conversation ends with an answer, or with a question
        that is being answered. ``None`` for a request that is to be answered."""
        if body.trigger == "regenerate-message" or changes.append:
            return None
        leaf = self._transcript.known[self._transcript.leaf or ""]
        if leaf.role != "user":
            return None if changes.extends is not None else "completed"
        return "skipped" if self._turns.answering(leaf.id) else None

    def _unseen(self, body: client_frames.ChatBody) -> str | None:
        """The answer that a conversation posted as it is wants to be gone on with: its last one, of whose results the
        model knows nothing yet. Nothing must be about to tell it."""
        leaf, interactions = self._transcript.known.get(self._transcript.leaf or ""), self._room.interactions
        if body.trigger == "regenerate-message" or not body.messages or body.messages[-1].role != "assistant":
            return None
        if leaf is None or leaf.role != "assistant" or leaf.message is None or self._turns.active is not None:
            return None
        group = interactions.group_of(leaf.id)
        approved = set[str]() if group is None else {each.call for each in interactions.to_run(group)}
        return leaf.id if is_unseen(leaf.message.message, approved) else None

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
        self._services.write([*self._transcript.clear(), *self._page.clear()])
        for peer in self._handshake.cleared():
            self._send(peer, frames.nothing_to_resume())
        self._services.send(self._others(sender), frames.cleared())
        for turn in skipped:
            self._services.send(self._handshake.everyone, frames.terminal(turn.id, "skipped", turn.origin_ids))

    def take_up(self, group: str, message: str, attempts: int, operations: Sequence[Operation]) -> None:
        """The agent wakes up, and the answers to a turn's calls were not taken up yet (see :meth:`Turns.take_up`)."""
        self._turns.take_up(group, message, attempts, operations)

    def begin(self) -> None:
        """The agent is awake: what it woke up with may start."""
        self._turns.begin()

    async def put_off(self) -> None:
        """The agent could not be woken: what it woke up with has not begun. Returns when that is stored.

        Raises:
            StorageError: it could not be.
        """
        await self._turns.put_off()

    # ── the host's side ─────────────────────────────────────────────

    def reattached(self, peer: PeerId) -> None:
        """A connection that stayed open while the agent was not in memory. It is told nothing."""
        self._handshake.connected(peer)

    def farewell(self, text: str) -> list[str]:
        """The error frames of the turns that are not over, for when the agent is dropped from memory."""
        return [frames.terminal_error(turn.id, text, turn.origin_ids) for turn in self._turns.unfinished]
