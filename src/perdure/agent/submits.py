"""What clients send while a turn runs or waits: asks ``chat.concurrency`` what becomes of it, and carries that out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from perdure.agent.ending import Ending
from perdure.agent.room import Room
from perdure.agent.services import PeerId
from perdure.agent.turn import Turn
from perdure.chat.concurrency import Decision, Submits, strategy_of
from perdure.storage.contract import Operation, UpdateTurn

__all__ = ["ClientSubmits"]


class ClientSubmits:
    """The submits of one agent that may lose their turn."""

    def __init__(self, room: Room, turns: Mapping[str, Turn]) -> None:
        """None so far. ``turns`` are those that are not over, and stay the caller's."""
        self._room = room
        self._turns = turns
        self._submits = Submits()

    def decide(self, request: str, generation: int) -> Decision:
        """What becomes of a new submit. Turns of another generation than this are not in its way.

        Raises:
            ConfigurationError: the agent's ``message_concurrency`` is none.
        """
        think = self._room.think
        strategy = strategy_of(think.message_concurrency, type(think).__name__)
        overlaps = any(turn.generation == generation for turn in self._turns.values())
        return self._submits.decide(request, strategy, overlaps=overlaps, now_ms=self._room.services.now_ms())

    def supersede(self, decision: Decision, active: str | None) -> list[Operation]:
        """Another submit loses its turn to the new one; store it with that. It ends when its turn would begin."""
        if decision.supersedes is None:
            return []
        turn = self._turns[decision.supersedes]
        if turn.id == active:
            turn.scope.cancel()  # it was its turn, and it waited for quiet
        lost = turn.own_messages or ([] if turn.parent is None else [turn.parent])
        left_out = self._room.transcript.leave_out(lost) if decision.leaves_out else []
        return [UpdateTurn(turn.id, "superseded"), *left_out]

    def is_superseded(self, turn: Turn) -> bool:
        """Whether it has lost its turn."""
        return self._submits.is_superseded(turn.id)

    def begin(self, turn: Turn) -> bool:
        """It is about to ask the model. False when it has lost its turn."""
        return self._submits.begin(turn.id)

    def end(self, turn: Turn, ending: Ending) -> Sequence[PeerId]:
        """It is over. Gives the connections to tell: of one that lost its turn, only those that sent it."""
        # Also those that have the offer of a stream to take up: if it is this one it has ended, and the replay of
        # another says nothing of this one.
        everyone = self._room.handshake.everyone
        lost = ending.outcome == "skipped" and self.is_superseded(turn)
        self._submits.end(turn.id)
        return [peer for peer in everyone if peer in turn.senders] if lost else everyone

    def clear(self) -> None:
        """The conversation was forgotten."""
        self._submits.clear()
