"""Puts tabs right that show a call otherwise than it is, when the turn is over that they keep to until its end.

Whoever builds a message out of its stream knows only of what the stream says, and a tab that answered a call shows its
own answer, also when another's was the first.
"""

from __future__ import annotations

from perdure.agent.room import Room
from perdure.agent.services import PeerId
from perdure.chat.builder import MessageBuilder

__all__ = ["Differing"]


class Differing:
    """The tabs of one agent that show an answer of their own."""

    def __init__(self) -> None:
        # A dict for its order.
        self._outrun: dict[tuple[PeerId, str], None] = {}

    def outrun(self, peer: PeerId, message: str) -> None:
        """A tab gave a result to a call in this message that had one."""
        self._outrun[peer, message] = None

    def put_right(self, room: Room, builder: MessageBuilder) -> None:
        """A turn is over, and everybody was told: show its message again, and those that tabs were outrun in."""
        if builder.amended:
            for frame in room.updated(builder.id):
                room.services.send(room.handshake.everyone, frame)
        connected = set(room.handshake.everyone)
        for peer, message in self._outrun:
            if peer in connected and not (builder.amended and message == builder.id):
                for frame in room.updated(message):
                    room.services.send((peer,), frame)
        self._outrun.clear()
