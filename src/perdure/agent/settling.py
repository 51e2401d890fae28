"""What is stored of a turn that is over: its calls settled, its message, its end."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from perdure.agent.answer import Answer
from perdure.agent.ending import Ending
from perdure.agent.overtaking import GivenUp, reason_of
from perdure.agent.room import Room
from perdure.agent.turn import Turn
from perdure.chat.answers import failed
from perdure.chat.repair import settle_open_calls
from perdure.observability import emit
from perdure.protocol import server_frames as frames
from perdure.storage.contract import CloseTurn, DropChunks, Operation

__all__ = ["closing", "give_up_calls", "settle_calls"]


def settle_calls(room: Room, turn: Turn, ending: Ending) -> GivenUp:
    """Of the calls that are open only those stay that somebody is asked to answer, or that nobody could."""
    room.interactions.close(turn.id)
    # Who stops a turn wants no other one: a page that answers by itself would set it off at once.
    given_up = give_up_calls(room, turn, [turn.id] if ending.outcome == "aborted" else [])
    left = {each.call for each in room.interactions.of(turn.id) if each.state != "settled"}
    if ending.outcome == "completed":
        left |= turn.builder.open_calls_of(turn.unanswered)
    if repaired := settle_open_calls(turn.builder.parts, left=left):
        turn.builder.amended = True
        emit("chat:transcript:repaired", requestId=turn.id, toolCallIds=repaired)
    return given_up


def give_up_calls(room: Room, turn: Turn, more: Sequence[str] = ()) -> GivenUp:
    """Approved calls that this turn was to run, and has not; and those of ``more`` turns."""
    if any(room.interactions.next_id(group) is not None for group in more):
        for peer in room.handshake.not_continued():
            room.services.send((peer,), frames.nothing_to_resume())
    groups = [*more, *([] if turn.group is None else [turn.group])]
    dropped = room.interactions.drop(groups, room.services.now_ms())
    for interaction in dropped:
        turn.builder.change(interaction.call, partial(failed, text=reason_of(interaction)))
    return GivenUp.of(room, dropped)


def closing(room: Room, turn: Turn, answer: Answer, ending: Ending) -> list[Operation]:
    """One transaction: the message, the turn's end, and what becomes of its chunks."""
    now = room.services.now_ms()
    operations: list[Operation] = []
    if turn.builder.changed:
        message = turn.builder.message()
        if turn.continuation:
            operations += room.transcript.update(message)
        else:
            parent = turn.parent if turn.branches else room.transcript.tip(turn.parent)
            operations += room.transcript.answer(message, parent, now)
    if ending.error is None:
        operations += [*answer.stream.forget(), DropChunks(turn.id)]
    else:
        # Clients that were away are shown what was said and then the error, until the next request.
        operations += answer.stream.unstored()
    operations.append(CloseTurn(turn.id, ending.outcome, ending.error, now))
    return operations
