"""A live agent, as its host drives it: connections, state, calls, and its conversation if it has one.

The host calls it one event at a time, in the order in which things happen.
"""

from __future__ import annotations

import contextlib
import inspect
import logging
import math
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from typing import Any

from starlette import types as asgi

from perdure.agent.attachment import Attachment
from perdure.agent.base import Agent, bind, wire_method
from perdure.agent.connection import Connection, ConnectionRequest, current_connection
from perdure.agent.conversation import Conversation
from perdure.agent.family import Relatives
from perdure.agent.permission import accepts
from perdure.agent.queueing import Queue
from perdure.agent.retry import RNG, Retry, retrying
from perdure.agent.rpc import answer_call
from perdure.agent.services import PeerId, Services
from perdure.agent.shared_state import STATE, SharedState, connections_for
from perdure.agent.think import Think
from perdure.agent.timers import Timers
from perdure.agent.values import NAMESPACE, Values
from perdure.agent.wake import wake
from perdure.agent.web import answer_request
from perdure.errors import ConfigurationError, ReadonlyConnection, StorageError
from perdure.observability import emit
from perdure.protocol import client_frames
from perdure.protocol import server_frames as frames
from perdure.protocol.names import Address
from perdure.session.transcript import WINDOW
from perdure.storage.contract import LoadValue, Store
from perdure.storage.queue import LoadQueue
from perdure.storage.timers import LoadTimers

__all__ = ["CREATED", "LiveAgent"]

logger = logging.getLogger(__name__)

CREATED = "created"
"""The value by which a sub-agent exists: when it was made."""


class LiveAgent:
    """One agent in memory."""

    def __init__(self, agent: Agent, address: Address, services: Services, values: Values) -> None:
        self.agent = agent
        self.address = address
        self.relatives = Relatives(address, services)
        self.values = values
        self.state = SharedState(agent, values, self._state_changed)
        self.conversation: Conversation | None = None
        """What was said; ``None`` for an agent that does not chat."""
        self.timers = Timers(agent, services)
        self.queue = Queue(agent, services)
        self._services = services
        self._connections: dict[PeerId, Connection] = {}

    @classmethod
    async def wake(
        cls,
        kind: type[Agent],
        address: Address,
        store: Store,
        services: Services,
        attachments: Mapping[PeerId, Attachment] | None = None,
        *,
        window: int = WINDOW,
        upload: float = math.inf,
    ) -> LiveAgent:
        """Make the agent, and give it back what is stored, and the connections that stayed open without it.

        Clients are sent ``window`` bytes of a conversation at most, and may add ``upload`` in one message.

        Raises:
            StorageError: what is stored cannot be read.
            Exception: what the class raises when it is made or started.
        """
        names = (STATE, "config") if address.parent is None else (STATE, "config", CREATED)
        stored = {name: await store.read(LoadValue(address.key, NAMESPACE, name)) for name in names}
        values = Values(services, {name: text for name, text in stored.items() if text is not None})
        agent = kind()
        live = cls(agent, address, services, values)
        if isinstance(agent, Think):
            live.conversation = await wake(agent, address.key, store, services, window, upload)
        live.timers.load(await store.read(LoadTimers(address.key)))
        live.queue.load(await store.read(LoadQueue(address.key)))
        live.reattach(attachments or {})
        bind(agent, live)
        await live._start()
        live.timers.started()
        live.queue.started()
        if live.conversation is not None:
            live.conversation.begin()
        if address.parent is not None and values.get(CREATED) is None:
            values.put(CREATED, services.now_ms())  # nobody is told of it before it exists
        return live

    async def _start(self) -> None:
        try:
            started = self.agent.on_start()
            if inspect.isawaitable(started):
                await started
        except Exception:
            if self.conversation is not None:
                with contextlib.suppress(StorageError):
                    await self.conversation.put_off()
            raise

    async def stop(self) -> None:
        """Stop every turn, and wait until all are over."""
        if self.conversation is not None:
            await self.conversation.stop()

    @property
    def chat(self) -> Conversation:
        """The conversation.

        Raises:
            ConfigurationError: the agent does not chat.
        """
        if self.conversation is None:
            raise ConfigurationError(f"{type(self.agent).__name__} does not chat. Make it a subclass of Think.")
        return self.conversation

    @property
    def connections(self) -> list[Connection]:
        """The open connections, in order of arrival."""
        return list(self._connections.values())

    # ── events ──────────────────────────────────────────────────────

    def connected(self, peer: PeerId, request: ConnectionRequest) -> None:
        """A connection comes: the conversation first, then who answers (reference: protocol §4)."""
        connection = Connection(peer, request, self._services)
        connection.readonly = self.agent.is_readonly(connection)
        connection.protocol = self.agent.sends_protocol_messages(connection)
        state = self.state.text()
        self._connections[peer] = connection
        emit("connect", connectionId=connection.id)
        if self.conversation is not None:
            self.conversation.connected(peer)
        if connection.protocol:
            self._greet(connection, state)
        self._call(Agent.on_connect, connection, connection)

    def received(self, peer: PeerId, text: str | bytes) -> None:
        """A connection sends a message."""
        connection = self._connections.get(peer)
        if connection is None:
            return
        frame = client_frames.parse(text) if isinstance(text, str) else client_frames.Unusable("binary", foreign=True)
        match frame:
            case client_frames.StateUpdate(state=state):
                self._take_state(connection, state)
            case client_frames.RpcRequest():
                self._answer(connection, frame)
            case client_frames.Unusable(foreign=True):
                self._call(Agent.on_message, connection, connection, text)
            case _ if self.conversation is not None:
                if accepts(self.conversation.think, connection, frame):
                    self.conversation.received(peer, frame, connection.id)
                else:
                    self.conversation.refused(peer, frame)
            case _:
                logger.info("Ignored a chat frame: %s does not chat", type(self.agent).__name__)

    def disconnected(self, peer: PeerId) -> None:
        """A connection goes. Its work goes on."""
        connection = self._connections.pop(peer, None)
        if connection is None:
            return
        connection.closed = True
        if self.conversation is not None:
            self.conversation.disconnected(peer)
        emit("disconnect", connectionId=connection.id)
        self._call(Agent.on_close, connection, connection)

    async def requested(self, scope: asgi.Scope, receive: asgi.Receive, send: asgi.Send) -> None:
        """An HTTP request comes: the application answers it."""
        await answer_request(self.agent, scope, receive, send)

    def _greet(self, connection: Connection, state: str | None) -> None:
        if self.agent.send_identity_on_connect:
            frame = frames.identity(self.address.name, self.address.kind, state_follows=state is not None)
            connection.send(frame)
        if state is not None:
            connection.send(frames.state(state))
        connection.send(frames.mcp_servers())

    # ── for the agent's own code ────────────────────────────────────

    @property
    def has_work(self) -> bool:
        """Whether it has something to do later."""
        return len(self.timers) > 0 or len(self.queue) > 0

    def held(self) -> AbstractContextManager[None]:
        """While this lasts the agent stays in memory."""
        return self._services.held()

    async def retry(self, what: Callable[[], Any], retry: Retry, again: Callable[[Exception], bool] | None) -> Any:
        """Call until it goes well (see :func:`retrying`)."""

        async def attempt() -> Any:
            result = what()
            return await result if inspect.isawaitable(result) else result

        name = getattr(what, "__qualname__", repr(what))
        return await retrying(attempt, retry, sleep=self._services.sleep, rng=RNG, name=name, again=again)

    # ── state and calls ─────────────────────────────────────────────

    def _take_state(self, connection: Connection, state: Any) -> None:
        try:
            self.state.set(state, connection)
        except ReadonlyConnection as error:
            connection.send(frames.state_error(str(error)))
        except Exception:
            # The application's validation refused it: what it says may not be for clients.
            logger.info("A client's state was refused", exc_info=True)
            connection.send(frames.state_error("State update rejected"))

    def _state_changed(self, frame: str, source: Connection | None) -> None:
        self._services.send(connections_for(self.connections, source), frame)
        emit("state:update")
        self._call(Agent.on_state_changed, source, self.state.value(), source)

    def _answer(self, connection: Connection, request: client_frames.RpcRequest) -> None:
        try:
            method = wire_method(self.agent, request.method)
        except LookupError as error:
            connection.send(frames.rpc_error(request.id, error.args[0]))
            emit("rpc:error", method=request.method, error=error.args[0])
            return
        self._services.spawn(answer_call(method, connection, request), f"call {request.method}")

    # ── the application's hooks ─────────────────────────────────────

    def _call(self, hook: Callable[..., Any], source: Connection | None, *args: Any) -> None:
        """Call a hook of the application as a task of its own, if the class has it."""
        name = hook.__name__
        if getattr(type(self.agent), name) is not hook:
            self._services.spawn(self._run_hook(name, source, args), name)

    async def _run_hook(self, name: str, source: Connection | None, args: tuple[Any, ...]) -> None:
        current_connection.set(source)
        result = getattr(self.agent, name)(*args)
        if inspect.isawaitable(result):
            await result

    # ── not in memory ───────────────────────────────────────────────

    def attachments(self) -> dict[PeerId, Attachment] | None:
        """What is to be remembered of the connections while the agent is not in memory; ``None`` when it must stay."""
        found: dict[PeerId, Attachment] = {}
        for peer, connection in self._connections.items():
            attachment = Attachment.of(connection)
            if attachment is None:
                return None
            found[peer] = attachment
        return found

    def reattach(self, attachments: Mapping[PeerId, Attachment]) -> None:
        """Take back connections that stayed open. They are told nothing (reference: protocol §4.7)."""
        for peer, attachment in attachments.items():
            self._connections[peer] = attachment.connection(peer, self._services)
            if self.conversation is not None:
                self.conversation.reattached(peer)

    def farewell(self, text: str) -> list[str]:
        """What connections are sent when the agent cannot go on: an error for each turn that is not over."""
        return [] if self.conversation is None else self.conversation.farewell(text)
