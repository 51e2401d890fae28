"""A live agent, as its host drives it: who it is, and its conversation."""

from __future__ import annotations

from perdure.agent.conversation import Conversation
from perdure.agent.services import PeerId, Services
from perdure.agent.think import Think, bind
from perdure.agent.wake import wake
from perdure.protocol import server_frames as frames
from perdure.protocol.names import Address
from perdure.storage.contract import Store

__all__ = ["LiveAgent"]


class LiveAgent:
    """One agent in memory. Its methods are called one at a time, in the order in which things happen."""

    def __init__(self, address: Address, conversation: Conversation, services: Services) -> None:
        self.address = address
        self.conversation = conversation
        self._services = services

    @classmethod
    async def wake(cls, kind: type[Think], address: Address, store: Store, services: Services) -> LiveAgent:
        """Make the agent and give it back its conversation.

        Raises:
            StorageError: what is stored cannot be read.
        """
        think = kind()
        conversation = await wake(think, address.key, store, services)
        bind(think, address.name, conversation)
        return cls(address, conversation, services)

    def connected(self, peer: PeerId) -> None:
        """A connection comes. The conversation first, then who answers (reference: protocol §4.2)."""
        self.conversation.connected(peer)
        self._services.send((peer,), frames.identity(self.address.name, self.address.kind))
        self._services.send((peer,), frames.mcp_servers())

    def received(self, peer: PeerId, text: str) -> None:
        """A connection sends a frame."""
        self.conversation.received(peer, text)

    def disconnected(self, peer: PeerId) -> None:
        """A connection goes."""
        self.conversation.disconnected(peer)
