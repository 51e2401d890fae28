"""Puts an answer into the message that holds the call, be it stored or in the making, and says who is to see it."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from perdure.agent.overtaking import changed_message
from perdure.agent.room import Room
from perdure.agent.services import PeerId
from perdure.agent.turns import Turns
from perdure.chat.interactions import Interaction
from perdure.models.contract import Chunk
from perdure.protocol import codec
from perdure.protocol.messages import Part
from perdure.storage.contract import Operation

__all__ = ["amend", "audience"]


def amend(
    room: Room,
    turns: Turns,
    interaction: Interaction,
    change: Callable[[Part], Part],
    chunk: Chunk | None,
    operations: list[Operation],
) -> str | None:
    """Change the part of a call.

    Args:
        room: The conversation.
        turns: Its turns: the one that runs may hold the call.
        interaction: The call.
        change: What the answer does to its part.
        chunk: The same for those who build the message out of its stream, if there is one.
        operations: What stores it is added here.

    Returns:
        The message as JSON text; ``None`` when there is no such message any more.
    """
    answer, turn = turns.answer, turns.active
    text: str | None = None
    streams = answer is not None and answer.opened
    if answer is not None and turn is not None and turn.builder.tool_part(interaction.call) is not None:
        if streams and chunk is not None:
            answer.emit(chunk)
        else:
            turn.builder.change(interaction.call, change)
        operations += answer.stream.unstored()
        text = codec.encode_text(turn.builder.message())
    if text is None or not streams:
        stored = changed_message(room, interaction, change)
        if stored is not None:
            operations += room.transcript.update(stored)
            text = room.transcript.known[interaction.message].text
    return text


def audience(room: Room, turns: Turns, message: str) -> Sequence[PeerId]:
    """Who is shown a change of this message. While it streams, whoever has an offer to take up is not: the replay
    brings the change, and would be put on top of a message that has what is replayed already."""
    streams = turns.streaming and turns.active is not None and turns.active.builder.id == message
    return room.handshake.listeners if streams else room.handshake.everyone
