"""What is stored of a turn that is accepted: the messages that came with it, and the turn itself."""

from __future__ import annotations

from perdure.agent.ending import Failure
from perdure.agent.room import Room
from perdure.agent.turn import Turn
from perdure.chat.reconcile import Changes
from perdure.storage.contract import DropChunks, OpenTurn, Operation

__all__ = ["opening"]


def opening(room: Room, turn: Turn, changes: Changes, failure: Failure | None, *, waiting: bool) -> list[Operation]:
    """One transaction: the messages and the turn that is to answer them. ``failure`` is not shown any more then."""
    now = room.services.now_ms()
    operations: list[Operation] = []
    parent = changes.parent
    for message in changes.append:
        operations += room.transcript.append(message.id, message.role, message.text, parent, now, waiting=waiting)
        parent = message.id
    if failure is not None:
        operations.append(DropChunks(failure.log.turn))
    status = "queued" if waiting else "running"
    operations.append(OpenTurn(turn.id, status, turn.trigger, turn.to_json(), turn.message_id, now))
    return operations
