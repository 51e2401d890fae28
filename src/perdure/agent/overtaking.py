"""Gives up the tool calls that nobody will answer any more, because the conversation went another way.

They become errors that the model and the people see: no model must be shown a call without a result.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial

from perdure.agent.room import Room, kept
from perdure.agent.turn import Turn
from perdure.chat.answers import NOT_RUN, failed, with_part
from perdure.chat.interactions import Interaction
from perdure.chat.repair import INTERRUPTED
from perdure.protocol import server_frames as frames
from perdure.protocol.messages import Part, UIMessage, is_settled, is_tool_part
from perdure.session.transcript import Transcript
from perdure.storage.contract import Operation

__all__ = ["GivenUp", "changed_message", "give_up", "overtake", "reason_of", "settled_in"]


async def overtake(room: Room, turn: Turn) -> None:
    """A turn begins: nobody is waited for any more, unless it goes on after these very answers (reference: README 6).
    All that was answered is durable when this returns: the model may see it."""
    if not room.interactions.groups:
        return
    groups = [group for group in room.interactions.groups if group != turn.group]
    if groups:
        await _give_up(room, turn, groups)
    await room.services.settled()


async def _give_up(room: Room, turn: Turn, groups: Sequence[str]) -> None:
    for message in dict.fromkeys(each.message for group in groups for each in room.interactions.of(group)):
        await room.transcript.reach([], message)
    if turn.group is None:
        for peer in room.handshake.not_continued():
            room.services.send((peer,), frames.nothing_to_resume())
    given_up = GivenUp.of(room, room.interactions.drop(groups, room.services.now_ms()))
    if given_up.operations:
        room.services.write(given_up.operations)
        given_up.tell()


@dataclass(frozen=True, slots=True)
class GivenUp:
    """Calls that were given up: errors that the model and the people see."""

    room: Room
    operations: list[Operation]
    """Store it."""
    messages: list[str]
    """Ids of the messages that held them."""

    @classmethod
    def of(cls, room: Room, dropped: Iterable[Interaction]) -> GivenUp:
        """Settle these calls in the stored messages that hold them."""
        dropped = list(dropped)
        operations = give_up(room.transcript, dropped)
        return cls(room, operations, list(dict.fromkeys(each.message for each in dropped)))

    def tell(self) -> None:
        """Show them to everybody. After they were handed over to be stored."""
        for message in self.messages:
            for frame in self.room.updated(message):
                self.room.services.send(self.room.handshake.everyone, frame)


def give_up(transcript: Transcript, dropped: Iterable[Interaction]) -> list[Operation]:
    """Settle calls that nobody will answer any more in the stored messages that hold them, as far as those are in
    memory. Store this."""
    operations: list[Operation] = []
    for interaction in dropped:
        operations.append(kept(interaction))
        message = changed_message(transcript, interaction, partial(failed, text=reason_of(interaction)))
        if message is not None:
            operations += transcript.update(message)
    return operations


def changed_message(
    transcript: Transcript, interaction: Interaction, change: Callable[[Part], Part]
) -> UIMessage | None:
    """The stored message of a call with its part changed; ``None`` when there is none in memory that holds it open."""
    node = transcript.known.get(interaction.message)
    if node is None or node.message is None:
        return None
    return with_part(node.message.message, interaction.call, change)


def settled_in(room: Room, message: UIMessage) -> list[Operation]:
    """The application replaced a message: it has answered the calls that are not open in it any more. Store this."""
    opened = {part["toolCallId"] for part in message["parts"] if is_tool_part(part) and not is_settled(part)}
    answered = [call for call in room.interactions.calls_in(message["id"]) if call not in opened]
    now = room.services.now_ms()
    taken = [room.interactions.answer(call, tool="", by="agent", at_ms=now, go_on=False) for call in answered]
    return [kept(interaction) for interaction in taken if interaction is not None]


def reason_of(interaction: Interaction) -> str:
    """Why a call that was given up has no result."""
    return NOT_RUN if interaction.decision == "approved" and not interaction.begun else INTERRUPTED
