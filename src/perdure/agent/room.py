"""What the parts of a conversation share: one transcript, one handshake, one agent, one host. Data, mostly."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field

from perdure.agent.page import Page
from perdure.agent.services import PeerId, Services
from perdure.agent.think import Think
from perdure.chat.handshake import Handshake
from perdure.chat.interactions import Interaction, Interactions
from perdure.protocol import codec
from perdure.protocol import server_frames as frames
from perdure.protocol.messages import is_tool_part
from perdure.session.transcript import Transcript
from perdure.storage.contract import Operation
from perdure.storage.interactions import InteractionRow, PutInteraction

__all__ = ["Room", "Signal", "kept"]


class Signal:
    """Something that happens now and then, for those who wait for the next time."""

    def __init__(self) -> None:
        self._event: asyncio.Event | None = None

    async def next(self) -> None:
        """Returns when it happens again."""
        self._event = self._event or asyncio.Event()
        await self._event.wait()

    def give(self) -> None:
        """It happens."""
        if self._event is not None:
            self._event.set()
            self._event = None


@dataclass(frozen=True, slots=True)
class Room:
    """The collaborators of one conversation."""

    think: Think
    services: Services
    transcript: Transcript
    handshake: Handshake[PeerId]
    page: Page = field(default_factory=Page)
    interactions: Interactions = field(default_factory=Interactions)
    moved: Signal = field(default_factory=Signal)
    """A turn has ended, or calls may have been answered."""

    def show(self) -> None:
        """Send the conversation to everybody."""
        everyone = self.handshake.everyone
        if everyone:
            self.services.send(everyone, frames.transcript(self.transcript.texts()))

    def updated(self, message: str) -> list[str]:
        """The frame that shows a message whose tool calls have changed; none when it has no calls, or is not in
        memory."""
        node = self.transcript.known.get(message)
        if node is None or node.message is None or not any(map(is_tool_part, node.message.message["parts"])):
            return []
        return [frames.message_updated(node.message.text)]


def kept(interaction: Interaction) -> Operation:
    """The operation that stores an interaction as it is now."""
    row = InteractionRow(interaction.call, interaction.turn, interaction.state, codec.encode_text(interaction))
    return PutInteraction(row)
