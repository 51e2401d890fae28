"""The state that every client of an agent sees: who may change it, and who is told (reference: protocol §2.2)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from perdure.agent.base import UNSET, Agent
from perdure.agent.connection import Connection, current_connection
from perdure.agent.values import Values
from perdure.errors import ReadonlyConnection
from perdure.protocol import codec
from perdure.protocol import server_frames as frames

__all__ = ["STATE", "SharedState", "connections_for"]

STATE = "state"


class SharedState:
    """One JSON value, replaced as a whole."""

    def __init__(self, agent: Agent, values: Values, changed: Callable[[str, Connection | None], None]) -> None:
        """The state of ``agent``, kept among its ``values``.

        Args:
            agent: Validates changes; its class has the initial value.
            values: Where it is kept.
            changed: Tells everybody: called with the frame, and the connection that is not to be sent it.
        """
        self._agent = agent
        self._values = values
        self._changed = changed

    def text(self) -> str | None:
        """The value as JSON text; ``None`` when there is none. The first look at an agent without one stores the
        initial value."""
        initial = self._agent.initial_state
        if initial is UNSET:
            return self._values.text(STATE)
        return self._values.default(STATE, initial)

    def value(self) -> Any:
        """The value; ``None`` when there is none. A copy."""
        text = self.text()
        return None if text is None else codec.decode(text)

    def set(self, value: Any, source: Connection | None = None) -> None:
        """Replace it. ``source`` is the client that sent it, which is not told.

        Raises:
            ReadonlyConnection: it is changed for a connection that may only read.
            TypeError: the value has no JSON form.
            Exception: what the agent's validation raises.
        """
        asking = source or current_connection.get()
        if asking is not None and asking.readonly:
            raise ReadonlyConnection()
        self._agent.validate_state_change(value, source)
        self._changed(frames.state(self._values.put(STATE, value)), source)


def connections_for(connections: Sequence[Connection], source: Connection | None) -> list[int]:
    """Who is sent a new state: everybody who is sent protocol frames, but for the one that it came from."""
    return [connection.peer for connection in connections if connection.protocol and connection is not source]
