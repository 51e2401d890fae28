"""The WebSocket side of the edge: who may connect to which agent, and all connections that are open."""

from __future__ import annotations

import asyncio
import logging
from typing import NamedTuple

from starlette.types import Receive, Scope, Send

from perdure.errors import BadRequest
from perdure.host.bus import Bus
from perdure.host.tasks import Tasks
from perdure.protocol.names import Address
from perdure.server.admission import Closing, Hook, ask, closing, rejection
from perdure.server.connection import Connection, refuse
from perdure.server.limits import Limits
from perdure.server.origin import Gate
from perdure.server.requests import IncomingRequest, incoming_request
from perdure.server.router import Destination, Router

__all__ = ["Sockets"]

logger = logging.getLogger(__name__)

RESTART = 1012
"""Close code of a server that stops: clients come back."""


class _Admitted(NamedTuple):
    address: Address
    request: IncomingRequest


class Sockets:
    """Lets connections in, one agent each."""

    def __init__(self, router: Router, bus: Bus, gate: Gate, limits: Limits, tasks: Tasks, hook: Hook | None) -> None:
        """No connections yet.

        Args:
            router: Says which agent a URL names.
            bus: The way to the agents.
            gate: Checks hosts and origins.
            limits: What connections may send, and how many there may be.
            tasks: In which frames are sent.
            hook: The application's ``on_before_connect``.
        """
        self._router = router
        self._bus = bus
        self._gate = gate
        self._limits = limits
        self._tasks = tasks
        self._hook = hook
        self._open: dict[str, set[Connection]] = {}
        self._stopping = False
        self._empty = asyncio.Event()
        """Set once the last connection has gone after :meth:`close`."""

    async def serve(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one WebSocket until it ends."""
        found = await self._admit(scope)
        if isinstance(found, Closing):
            await refuse(receive, send, *found)
            return
        key = found.address.key
        others = self._open.setdefault(key, set())
        connection = Connection(scope, receive, send, self._tasks, self._limits)
        others.add(connection)
        try:
            await connection.run(self._bus, found.address, found.request)
        finally:
            others.discard(connection)
            if not others:
                del self._open[key]
            if self._stopping and not self._open:
                self._empty.set()

    async def close(self) -> None:
        """Tell all clients to come back later, let no more in, and wait until they are gone or cut off."""
        self._stopping = True
        for connection in [connection for connections in self._open.values() for connection in connections]:
            connection.close(RESTART, "The server restarts.")
        if self._open:
            await self._empty.wait()

    async def _admit(self, scope: Scope) -> _Admitted | Closing:
        request = incoming_request(scope)
        destination = self._refusal(scope) or await self._find(request)
        if isinstance(destination, Closing):
            return destination
        address, kind, _ = destination
        if kind is None:
            return Closing(4404, "There is no such agent.")
        if request.query.get("__agents_transport") == "capnweb":
            return Closing(4501, "The transport capnweb is not supported: connect without the option transport.")
        verdict = await ask(self._hook, self._router.asked_about(request, address))
        if not isinstance(verdict, IncomingRequest):
            return closing(verdict)
        if address.parent is not None:
            refusal = await self._bus.admit(address, verdict)
            if refusal is not None:
                return rejection(refusal)
        if len(self._open.get(address.key, ())) >= self._limits.connections:
            logger.warning("Turned a connection away: %s has %d already", address.key, self._limits.connections)
            return Closing(1013, "The agent has too many connections.")
        return _Admitted(address, verdict)

    def _refusal(self, scope: Scope) -> Closing | None:
        if self._stopping:
            return Closing(RESTART, "The server restarts.")
        reason = self._gate.refusal(scope["headers"])
        return None if reason is None else Closing(4403, reason)

    async def _find(self, request: IncomingRequest) -> Destination | Closing:
        try:
            destination = await self._router.find(request)
        except BadRequest as error:
            return Closing(4400, str(error))
        except Exception:
            # The application's route() failed: the log says how.
            logger.exception("No agent could be found for %s", request.path)
            return Closing(1011, "Internal Server Error")
        return destination or Closing(4404, "There is no such agent.")
