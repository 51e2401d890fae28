"""What is remembered of a connection while its agent is not in memory."""

from __future__ import annotations

import msgspec

from perdure.agent.connection import Connection, ConnectionRequest
from perdure.agent.services import PeerId, Services
from perdure.protocol import codec

__all__ = ["Attachment"]


class Attachment(msgspec.Struct, frozen=True):
    """A connection that stays open without its agent."""

    request: ConnectionRequest
    id: str | None = None
    """``None`` until the agent has seen it."""
    readonly: bool = False
    protocol: bool = True
    state: str = "null"
    """The application's own, as JSON text."""

    @classmethod
    def of(cls, connection: Connection) -> Attachment | None:
        """What to remember; ``None`` when the application's state of it would not come back as it is."""
        try:
            state = codec.encode_text(connection.state)
        except TypeError:
            return None
        if codec.decode(state) != connection.state:
            return None
        return cls(connection.request, connection.id, connection.readonly, connection.protocol, state)

    def connection(self, peer: PeerId, services: Services) -> Connection:
        """The connection as it was."""
        connection = Connection(peer, self.request, services)
        connection.id = self.id or connection.id
        connection.readonly = self.readonly
        connection.protocol = self.protocol
        connection.state = codec.decode(self.state)
        return connection
