"""The life of turns: accepted, started when it is their turn, run, settled.

Owns the queue, the turn that runs with its stream, and the last failure. Deciding which turns there are to be is the
conversation's business; answering, ``attempt``'s.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping, Sequence
from typing import Any

from perdure.agent.answer import Answer
from perdure.agent.attempt import attempt
from perdure.agent.differing import Differing
from perdure.agent.ending import Ending, Failure, report, tell_application
from perdure.agent.making import asked_by_client, asked_by_server, going_on
from perdure.agent.nesting import Nesting
from perdure.agent.opening import opening
from perdure.agent.room import Room
from perdure.agent.services import PeerId
from perdure.agent.settling import closing, give_up_calls, settle_calls
from perdure.agent.stream import ChunkLog
from perdure.agent.submits import ClientSubmits
from perdure.agent.told import Told
from perdure.agent.turn import Turn
from perdure.chat.concurrency import Decision
from perdure.chat.reconcile import Changes
from perdure.chat.turns import TurnQueue
from perdure.observability import emit, in_turn
from perdure.observability.tracing import turn_span
from perdure.storage.contract import CloseTurn, Operation, UpdateTurn
from perdure.tools import ToolSet

__all__ = ["Turns"]

logger = logging.getLogger(__name__)

_NOTHING_NEW = Changes([], None, [])


class Turns:
    """All turns of one agent: at most one runs."""

    def __init__(self, room: Room, failure: Failure | None, finished: Sequence[str]) -> None:
        self._room = room
        self._services = room.services
        self._transcript = room.transcript
        self._handshake = room.handshake
        self._interactions = room.interactions
        self._queue = TurnQueue(finished)
        self._open: dict[str, Turn] = {}
        self._submits = ClientSubmits(room, self._open)
        self.told = Told(room)
        """What everybody was told of them."""
        self.differing = Differing()
        """Tabs to be put right when the turn is over."""
        self._withdrawn: list[str] = []
        """Messages whose turn was cancelled while it waited; they stay behind the answers to those before them."""
        self._held: Turn | None = None
        """The turn that begins as soon as the agent is awake."""
        self._generation = 0
        self._answer: Answer | None = None
        self.nesting = Nesting(lambda turn: self._queue.active == turn)
        """What waits for turns of this agent."""
        self.failure = failure
        """The turn that failed last, unless another was accepted since."""

    @property
    def log(self) -> ChunkLog | None:
        """The chunks of the turn that runs."""
        return self._answer.stream if self._answer is not None else None

    @property
    def answer(self) -> Answer | None:
        """What the turn that runs has said."""
        return self._answer

    @property
    def active(self) -> Turn | None:
        """The turn that runs."""
        return self._open.get(self._queue.active or "")

    @property
    def streaming(self) -> bool:
        """Whether an answer is being made."""
        return self._answer is not None and self._answer.opened

    # ── accepting ───────────────────────────────────────────────────

    def decide(self, request: str, *, submit: bool) -> Decision | None:
        """What becomes of a client's request; ``None`` for one that came before. What is not dropped must be accepted
        at once. A ``submit`` is every request but the wish for another answer.

        Raises:
            ConfigurationError: the agent's ``message_concurrency`` is none.
        """
        if self._queue.knows(request):
            logger.info("Ignored a chat request that was delivered twice: %s", request)
            return None
        decision = self._submits.decide(request, self._generation) if submit else Decision()
        if decision.drops:
            self._queue.refuse(request)
        return decision

    def accept(
        self, peer: PeerId, request: str, changes: Changes, decision: Decision, also: Sequence[Operation] = ()
    ) -> None:
        """Take a client's new request, with the messages that came with it. ``also`` is stored in the same write."""
        turn = asked_by_client(self._room, self._generation, peer, request, changes, decision)
        self._admit(turn, changes, [*also, *self._submits.supersede(decision, self._queue.active)])

    def submit(
        self,
        trigger: str,
        *,
        inputs: Any = None,
        continuation: bool = False,
        body: Mapping[str, Any] | None = None,
        client_tools: ToolSet | None = None,
        unanswered: frozenset[str] = frozenset(),
    ) -> Turn:
        """Take a turn that the server's own code asks for. It has a result to wait for.

        Without a body and client tools of its own it runs with the page's.
        """
        turn = asked_by_server(
            self._room,
            self._generation,
            trigger,
            inputs=inputs,
            continuation=continuation,
            body=body,
            client_tools=client_tools,
            unanswered=unanswered,
        )
        self._admit(turn, _NOTHING_NEW)
        return turn

    # ── going on after answers ──────────────────────────────────────

    def is_overtaken(self, group: str) -> bool:
        """Whether no turn has to go on with the answers to this turn's calls: another waits that will see them, or the
        conversation has taken another way."""
        return self._is_awaited or self._queue.active not in {None, group} or self._is_left(group)

    def _is_left(self, group: str) -> bool:
        """Whether the message that holds this turn's calls is stored, and people are not shown it any more."""
        return any(
            each.message in self._transcript.known and not self._transcript.is_on_path(each.message)
            for each in self._interactions.of(group)
        )

    @property
    def _is_awaited(self) -> bool:
        """Whether a turn waits that will run."""
        return any(not self._submits.is_superseded(self._open[request]) for request in self._queue.waiting)

    def store(self, operations: Sequence[Operation]) -> None:
        """Store this, and in the same write the turn that goes on, if all calls of a turn are answered now."""
        self._room.moved.give()
        for group in self._interactions.ready:
            if not self.is_overtaken(group):
                self._admit(going_on(self._room, self._generation, group), _NOTHING_NEW, operations)
                return
        self._services.write(operations)

    def take_up(self, group: str, message: str, attempts: int, operations: Sequence[Operation]) -> None:
        """Go on after the answers to this turn's calls in ``message``: the agent wakes up and finds that it has not
        been done, or was cut off. :meth:`begin` starts it."""
        self._held = going_on(self._room, self._generation, group, message, attempts)
        self._admit(self._held, _NOTHING_NEW, operations)

    def begin(self) -> None:
        """The agent is awake, or somebody waits for a turn on its way there: start the turn that it woke up with."""
        if (turn := self._held) is not None:
            self._held = None
            self._start(turn)

    async def put_off(self) -> None:
        """The agent could not be woken: the turn that it woke up with has not begun. Returns when all is stored: the
        next wake reads it."""
        if self._held is not None:
            self._services.write([UpdateTurn(self._held.id, "queued")])
        await self._services.settled()

    def rest(self) -> None:
        """Let go of what was read, unless a turn runs: it may need that."""
        if self._queue.active is None:
            self._transcript.shrink()

    def delivered_again(self, request: str, peer: PeerId) -> bool:
        """Whether this request runs or waits. Its end is then told to this connection, too."""
        turn = self._open.get(request)
        if turn is not None and peer not in turn.senders:
            turn.senders.append(peer)
        return turn is not None

    @property
    def answers(self) -> set[str]:
        """Ids of the messages that open turns will write: clients know them, and may not use them for their own."""
        return {turn.message_id for turn in self._open.values()}

    def answering(self, message: str) -> bool:
        """Whether a turn runs or waits that answers this message."""
        return any(turn.parent == message for turn in self._open.values())

    def _admit(self, turn: Turn, changes: Changes, also: Sequence[Operation] = ()) -> None:
        admission = self._queue.admit(turn.id)
        if admission == "duplicate":
            logger.info("Ignored a turn that was admitted before: %s", turn.id)
            return
        self._open[turn.id] = turn
        self._services.write([*also, *self._opening(turn, changes, waiting=admission == "queue")])
        self._expect(turn)
        if admission == "queue":
            self.begin()
        elif turn is not self._held:
            self._start(turn)

    def _expect(self, turn: Turn) -> None:
        if turn.group is None:
            self._handshake.accepted(turn.id)
        else:
            self._handshake.admitted(turn.id)

    def _opening(self, turn: Turn, changes: Changes, *, waiting: bool) -> list[Operation]:
        failure, self.failure = self.failure, None
        return opening(self._room, turn, changes, failure, waiting=waiting)

    # ── ending from outside ─────────────────────────────────────────

    def cancel(self, request: str) -> None:
        """Stop a turn, whether it runs or waits. One that is not there is none."""
        turn = self._open.get(request)
        if turn is None:
            return
        if turn.inputs is None and self._queue.withdraw(request):
            self._withdrawn += turn.own_messages
            given_up = give_up_calls(self._room, turn)
            closing = CloseTurn(turn.id, "aborted", None, self._services.now_ms())
            self.store([*given_up.operations, closing])
            given_up.tell()
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
            self.cancel_all()
            await self._room.moved.next()

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
        self._interactions.clear()
        self._submits.clear()
        self._room.moved.give()
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
            await tell_application(self._room.think, turn, ending)
        self._report(turn, ending)
        self._go_on(turn)
        return ending

    async def _reach_an_end(self, turn: Turn, answer: Answer) -> Ending:
        if turn.generation != self._generation:
            return Ending("skipped")
        ending = Ending("aborted")
        begun = False
        with turn.scope:
            if (wait := turn.not_before_ms - self._services.now_ms()) > 0:
                await self._services.sleep(wait / 1000)
            begun = self._submits.begin(turn)
            if begun:
                ending = await attempt(turn, answer, self._room)
        lost = not begun and (self._submits.is_superseded(turn) or turn.generation != self._generation)
        return Ending("skipped") if lost else ending

    def _settle(self, turn: Turn, answer: Answer, ending: Ending) -> None:
        """The turn is over: store, then show, then say so."""
        self._answer = None
        self._handshake.stream_ended()
        if turn.generation == self._generation:
            turn.builder.close()
            given_up = settle_calls(self._room, turn, ending)
            operations = [*given_up.operations, *closing(self._room, turn, answer, ending)]
            if ending.error is not None:
                self.failure = Failure(answer.stream, turn.builder.id, ending.error, turn.origin_ids)
            following = self._following()
            if following is not None:
                operations += self._opening(following, _NOTHING_NEW, waiting=True)
            self._services.write(operations)
            self._withdrawn = self._transcript.give_up(self._withdrawn)
            given_up.tell()
            if turn.builder.changed:
                self._room.show()
        self._end(turn, ending)
        self.differing.put_right(self._room, turn.builder)

    def _following(self) -> Turn | None:
        """The turn that goes on at once, as all calls of the one that ends were answered while it ran; or those of an
        earlier one, if this one was stopped before it had overtaken them."""
        group = next((group for group in self._interactions.ready if not self._is_left(group)), None)
        if group is None or self._is_awaited:
            return None
        following = going_on(self._room, self._generation, group)
        self._queue.admit(following.id)
        self._open[following.id] = following
        self._handshake.admitted(following.id)
        return following

    def _end(self, turn: Turn, ending: Ending) -> None:
        del self._open[turn.id]
        failed = self.failure is not None and self.failure.log.turn == turn.id
        self.told.end(turn, ending, self._submits.end(turn, ending), failed=failed)

    def _report(self, turn: Turn, ending: Ending) -> None:
        report(turn, ending, stale=turn.generation != self._generation)

    def _go_on(self, turn: Turn) -> None:
        following = self._queue.finish(turn.id)
        while following is not None and self._submits.is_superseded(self._open[following]):
            following = self._skip(self._open[following])
        self._room.moved.give()
        if following is not None:
            self._services.write([UpdateTurn(following, "running")])
            self._start(self._open[following])
        else:
            self.rest()

    def _skip(self, turn: Turn) -> str | None:
        """A turn does not begin, as it was superseded. Gives the one whose turn it is instead."""
        self._transcript.begin(turn.own_messages)
        self._services.write([CloseTurn(turn.id, "skipped", None, self._services.now_ms())])
        self._end(turn, Ending("skipped"))
        return self._queue.finish(turn.id)

    @property
    def unfinished(self) -> list[Turn]:
        """The turns whose end nobody was told, in the order in which they were accepted."""
        return [*self.told.leaving.values(), *self._open.values()]
