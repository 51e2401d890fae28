"""Puts an answer into the message that holds the call, be it stored or in the making; gives such a message."""

from __future__ import annotations

from collections.abc import Callable

from perdure.agent.overtaking import changed_message
from perdure.agent.room import Room
from perdure.agent.turns import Turns
from perdure.chat.interactions import Interaction
from perdure.models.contract import Chunk
from perdure.protocol import codec
from perdure.protocol.messages import Part
from perdure.storage.contract import Operation

__all__ = ["amend", "text_of"]


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


def text_of(room: Room, turns: Turns, message: str) -> str | None:
    """A message as JSON text, as it is now; ``None`` when it is not in memory."""
    turn = turns.active
    if turns.answer is not None and turn is not None and turn.builder.id == message:
        return codec.encode_text(turn.builder.message())
    node = room.transcript.known.get(message)
    return None if node is None else node.text
