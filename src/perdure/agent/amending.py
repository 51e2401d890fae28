"""Puts an answer into the message that holds the call, be it stored or in the making."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from perdure.agent.overtaking import changed_message
from perdure.agent.room import Room, kept
from perdure.agent.services import PeerId
from perdure.agent.turns import Turns
from perdure.chat.interactions import Interaction
from perdure.models.contract import Chunk
from perdure.protocol import codec
from perdure.protocol.messages import Part, UIMessage
from perdure.storage.contract import Operation

__all__ = ["amend", "audience", "holder"]


def holder(room: Room, turns: Turns, interaction: Interaction) -> UIMessage | None:
    """The message that holds a call, as it is now; ``None`` when it is not in memory."""
    turn = turns.active
    if turn is not None and turn.builder.tool_part(interaction.call) is not None:
        return turn.builder.message()
    node = room.transcript.known.get(interaction.message)
    return None if node is None or node.message is None else node.message.message


def amend(
    room: Room,
    turns: Turns,
    interaction: Interaction,
    change: Callable[[Part], Part],
    chunk: Chunk | None,
    operations: list[Operation],
) -> tuple[str | None, Callable[[], None]]:
    """Change the part of a call.

    Args:
        room: The conversation.
        turns: Its turns: the one that runs may hold the call.
        interaction: The call.
        change: What the answer does to its part.
        chunk: The same for those who build the message out of its stream, if there is one.
        operations: What stores it is added here.

    Returns:
        The message as JSON text, ``None`` when there is no such message any more; and what shows the answer in the
        stream, to be called when the operations were handed over.
    """
    answer, turn = turns.answer, turns.active
    text: str | None = None
    show = _nothing
    streams = answer is not None and answer.opened
    if answer is not None and turn is not None and turn.builder.tool_part(interaction.call) is not None:
        if streams and chunk is not None:
            answer.stream.along(kept(interaction))  # the chunk may fill a segment, which is stored at once
            show = answer.take(chunk)
        else:
            turn.builder.change(interaction.call, change)
        operations += answer.stream.unstored()
        text = codec.encode_text(turn.builder.message())
    if text is None or not streams:
        stored = changed_message(room.transcript, interaction, change)
        if stored is not None:
            operations += room.transcript.update(stored)
            text = room.transcript.known[interaction.message].text
    return text, show


def audience(room: Room, turns: Turns, message: str) -> Sequence[PeerId]:
    """Who is shown a change of this message. While it streams, not those with an offer to take up: the replay brings
    the change, and would be put on top of a message that has what is replayed already."""
    streams = turns.streaming and turns.active is not None and turns.active.builder.id == message
    return room.handshake.listeners if streams else room.handshake.everyone


def _nothing() -> None:
    pass
