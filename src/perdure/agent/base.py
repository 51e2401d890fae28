"""The base of every agent class: a small facade over what the live agent holds. Knows nothing of chat.

What an agent does later is in ``later``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar

from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response

from perdure.agent.callables import callables_of
from perdure.agent.connection import Connection, ConnectionRequest, check_text
from perdure.agent.later import Later
from perdure.agent.threads import in_loop
from perdure.errors import ConfigurationError

if TYPE_CHECKING:
    from perdure.agent.family import SubAgentInfo
    from perdure.agent.live import LiveAgent

__all__ = ["UNSET", "Agent", "bind", "wire_method"]

A = TypeVar("A", bound="Agent")

UNSET: Any = object()
"""There is no initial state."""


class Agent(Later):
    """Something with a name, a state and methods that clients may call. :class:`~perdure.Think` adds the conversation.

    One object is made for each name while it is in memory; what is to outlive that belongs into :attr:`state`,
    :meth:`configure`, or the conversation.
    """

    initial_state: Any = UNSET
    """The state of an agent that has none yet: a JSON value."""
    send_identity_on_connect: bool = True
    """Whether connections are told who answers."""

    _callables: ClassVar[Mapping[str, str]] = {}
    _live: LiveAgent | None = None

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        cls._callables = callables_of(cls)

    # ── what it is ──────────────────────────────────────────────────

    @property
    def name(self) -> str:
        """The name of this agent: as it stands in the URL, but for a sub-agent, whose name is percent-decoded."""
        return self._bound.address.name

    @property
    def state(self) -> Any:
        """The state that every client sees: a JSON value, ``None`` when there is none. A copy: change it with
        :meth:`set_state`."""
        return in_loop(self._bound.state.value)  # which may have to store the initial one

    def set_state(self, state: Any) -> None:
        """Replace the state. It is stored, then sent to all clients.

        Raises:
            ReadonlyConnection: called for a connection that may only read.
            TypeError: ``state`` has no JSON form.
            Exception: what :meth:`validate_state_change` raises. Nothing changes then.
        """
        in_loop(lambda: self._bound.state.set(state))

    def configure(self, config: Any) -> None:
        """Store a JSON value that only the server sees; it outlives restarts (reference: engine §1.4)."""
        in_loop(lambda: self._bound.values.put("config", config))

    def get_config(self) -> Any:
        """The value given to :meth:`configure` last, as a copy; ``None`` when there was none."""
        return self._bound.values.get("config")

    @property
    def connections(self) -> Sequence[Connection]:
        """The connections that are open, in order of arrival."""
        return self._bound.connections

    def broadcast(self, text: str, *, without: Sequence[Connection] = ()) -> None:
        """Send a message of the application's own to all connections, but for those in ``without``.

        Raises:
            TypeError: ``text`` is no text.
        """
        check_text(text, "broadcast()")

        def send() -> None:
            for connection in self._bound.connections:
                if connection not in without:
                    connection.send(text)

        in_loop(send)

    # ── its family ──────────────────────────────────────────────────

    async def sub_agent(self, kind: type[A], name: str) -> A:
        """A sub-agent of this agent, which is made if there is none: a handle whose methods are the public ones of
        ``kind``. Await them all, also those that are not ``async``; iterate async generators.

        Args:
            kind: One of the app's classes.
            name: Any text up to 512 bytes, unique among this agent's sub-agents of that class.

        Raises:
            ConfigurationError: the app does not have that class.
            BadRequest: the name cannot be one, or sub-agents would be more than four levels deep.
            AgentStopped: it could not be brought into memory.
        """
        return await self._bound.relatives.open(kind, name)

    async def has_sub_agent(self, kind: type[Agent], name: str) -> bool:
        """Whether there is such a sub-agent. Otherwise as :meth:`sub_agent`."""
        return await self._bound.relatives.has(kind, name)

    async def list_sub_agents(self, kind: type[Agent] | None = None) -> list[SubAgentInfo]:
        """The sub-agents right below this agent, of one class or of all, in the order in which they were made."""
        return await self._bound.relatives.listed(kind)

    async def abort_sub_agent(self, kind: type[Agent], name: str) -> None:
        """Stop all that a sub-agent and those below it are doing, and drop them from memory. What is stored stays.

        Calls that are under way raise :class:`~perdure.AgentStopped`; clients reconnect. None there: nothing happens.
        """
        await self._bound.relatives.stop(kind, name)

    async def delete_sub_agent(self, kind: type[Agent], name: str) -> None:
        """Stop a sub-agent and those below it, and forget them: returns when nothing of them is stored any more.

        Its connections are closed. None there: nothing happens.
        """
        await self._bound.relatives.delete(kind, name)

    @property
    def parent_path(self) -> Sequence[tuple[str, str]]:
        """Class name and name of each agent above this one, the root first; empty for a root."""
        return self._bound.relatives.ancestors

    async def parent_agent(self, kind: type[A]) -> A:
        """A handle on the parent, as :meth:`sub_agent` gives one.

        Raises:
            ConfigurationError: this agent has no parent, or it is not of that class.
        """
        return self._bound.relatives.parent(kind)

    # ── what the application may add ────────────────────────────────

    def on_start(self) -> Any:
        """Called once when the agent has come into memory, before anything else happens to it. May be ``async``."""

    def on_connect(self, connection: Connection) -> Any:
        """A connection has come and was sent the opening frames. May be ``async``."""

    def on_message(self, connection: Connection, text: str) -> Any:
        """A connection sent something that is none of the protocol's frames. May be ``async``."""

    def on_close(self, connection: Connection) -> Any:
        """A connection is gone. May be ``async``."""

    def on_before_sub_agent(self, request: ConnectionRequest, kind: str, name: str) -> Any:
        """Somebody outside wants to reach a sub-agent of this agent, by HTTP or WebSocket. Give a
        :class:`~perdure.Refuse` to turn the request away, or nothing. May be ``async``; what it raises turns it away.

        Args:
            request: The request, its path whole.
            kind: Name of the sub-agent's class.
            name: The sub-agent's name. It need not exist: the request makes it.
        """

    async def on_request(self, request: Request) -> Response:
        """Answer an HTTP request to this agent's address, or to a path below it. May also be synchronous.

        ``request.path_params["path"]`` is what follows the agent's name, without a slash in front. Method, headers and
        body are as they were sent. Raise Starlette's ``HTTPException`` for an error that the client may see. The
        default knows no path and answers 404. Paths of a chat agent that end in ``/get-messages`` do not come here.
        """
        return PlainTextResponse("Not implemented", 404)

    def is_readonly(self, connection: Connection) -> bool:
        """Whether a new connection may not change the state. Asked before it is sent anything."""
        return False

    def sends_protocol_messages(self, connection: Connection) -> bool:
        """Whether a new connection is sent identity, state and the list of MCP servers."""
        return True

    def validate_state_change(self, state: Any, source: Connection | None) -> None:
        """Raise to refuse a new state. ``source`` is the client that sent it; ``None`` for the server."""

    def on_state_changed(self, state: Any, source: Connection | None) -> Any:
        """The state has changed and was sent out. What it raises is logged and changes nothing. May be ``async``."""

    @property
    def _bound(self) -> LiveAgent:
        if self._live is None:
            raise ConfigurationError(
                f"This {type(self).__name__} is not live: agents are made by the server, not by calling the class. "
                "In __init__ there is no name, state or conversation yet; use on_start()."
            )
        return self._live


def bind(agent: Agent, live: LiveAgent) -> None:
    """Give an agent object its live side. For whoever makes agents."""
    agent._live = live  # pyright: ignore[reportPrivateUsage]


def wire_method(agent: Agent, name: str) -> Any:
    """The callable method of that wire name, bound.

    Raises:
        LookupError: there is none; the text is the reply (reference: protocol §11.2).
    """
    own_name = type(agent)._callables.get(name)  # pyright: ignore[reportPrivateUsage]
    if own_name is not None:
        return getattr(agent, own_name)
    if name.isidentifier() and callable(getattr(type(agent), name, None)):
        raise LookupError(f"Method {name} is not callable")
    raise LookupError(f"Method {name} does not exist")
