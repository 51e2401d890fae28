"""What the parts of a conversation share: one transcript, one handshake, one agent, one host. Data only."""

from __future__ import annotations

from dataclasses import dataclass

from perdure.agent.services import PeerId, Services
from perdure.agent.think import Think
from perdure.chat.handshake import Handshake
from perdure.protocol import server_frames as frames
from perdure.session.transcript import Transcript

__all__ = ["Room"]


@dataclass(frozen=True, slots=True)
class Room:
    """The collaborators of one conversation."""

    think: Think
    services: Services
    transcript: Transcript
    handshake: Handshake[PeerId]

    def show(self) -> None:
        """Send the conversation to everybody."""
        everyone = self.handshake.everyone
        if everyone:
            self.services.send(everyone, frames.transcript(self.transcript.texts()))
