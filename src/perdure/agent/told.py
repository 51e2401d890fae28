"""Tells everybody how turns end."""

from __future__ import annotations

from collections.abc import Sequence

from perdure.agent.ending import Ending, terminal_frame
from perdure.agent.room import Room
from perdure.agent.services import PeerId
from perdure.agent.turn import Turn
from perdure.protocol import server_frames as frames

__all__ = ["Told"]


class Told:
    """What the connections of one agent know of its turns."""

    def __init__(self, room: Room) -> None:
        self._services = room.services
        self._handshake = room.handshake
        self.leaving: dict[str, Turn] = {}
        """Turns that are over and whose end has not been sent: it waits until it is stored."""

    def end(self, turn: Turn, ending: Ending, peers: Sequence[PeerId], *, failed: bool) -> None:
        """A turn is over: tell these, and let go of whoever waited for it. ``failed``: its error is kept for others."""
        self.leaving[turn.id] = turn
        self._services.send(peers, terminal_frame(turn, ending))
        self._services.then(lambda: self._sent(turn))
        for peer in self._handshake.settled(turn.id, failed=failed):
            # Whoever came while the turn was being prepared is shown why nothing came of it.
            self._services.send((peer,), frames.resuming(turn.id) if failed else frames.nothing_to_resume())

    def _sent(self, turn: Turn) -> None:
        del self.leaving[turn.id]
