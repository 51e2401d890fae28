"""Which agent a URL names: by the grammar of agent paths, or by a function of the application's."""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable, Mapping
from typing import NamedTuple

from perdure.agent.base import Agent
from perdure.errors import ConfigurationError
from perdure.protocol import names
from perdure.protocol.names import MAX_NAME_BYTES, Address, descend, parse_path
from perdure.server.requests import IncomingRequest

__all__ = ["Destination", "Place", "Route", "Router", "clean_prefix"]

Place = tuple[type[Agent], str]
"""An agent: its class and its name."""
Route = Callable[[IncomingRequest], "Place | Awaitable[Place | None] | None"]
"""Says which agent answers a request outside the agents' own paths; ``None`` for none."""


class Destination(NamedTuple):
    """Where a request goes."""

    address: Address
    kind: type[Agent] | None
    """The agent's class; ``None`` when there is none of that name, or for a sub-agent when its root has none."""
    tail: str
    """What follows the agent in the path, without a slash in front."""


class Router:
    """Finds agents."""

    def __init__(
        self, agents: Mapping[str, type[Agent]], kinds: Mapping[str, type[Agent]], prefix: str, route: Route | None
    ) -> None:
        """A router for these classes, by their names in URLs.

        Args:
            agents: The classes of roots.
            kinds: The classes of sub-agents.
            prefix: What agents' paths begin with.
            route: The application's.
        """
        self.prefix = prefix
        self._agents = agents
        self._kinds = kinds
        self._paths = {kind: path for path, kind in agents.items()}
        self._route = route

    def owns(self, path: str) -> bool:
        """Whether a path begins as agents' paths do: no page is below it."""
        expected = self.prefix.split("/")
        return [segment for segment in path.split("/") if segment][: len(expected)] == expected

    async def find(self, request: IncomingRequest) -> Destination | None:
        """Where the request goes; ``None`` when its path names no agent.

        Raises:
            BadRequest: the agent's name cannot be one, or it lies too deep.
            ConfigurationError: the application's function names what is no agent.
            Exception: what that function raises.
        """
        found = parse_path(request.path, self.prefix, kinds=self._kinds)
        if found is not None:
            return self._destination(found)
        if self._route is None or self.owns(request.path):
            return None
        place = self._route(request)
        if inspect.isawaitable(place):
            place = await place
        return None if place is None else self._place(*place, request.path)

    def asked_about(self, request: IncomingRequest, address: Address) -> IncomingRequest:
        """The request as the application's hooks are asked about it: for the root, which decides about those below."""
        return request.to(self._agents[address.root.kind].__name__, address.root.name)

    def _destination(self, found: names.Route) -> Destination:
        address = found.address
        known = address.root.kind in self._agents
        return Destination(address, self._kinds[address.kind] if known else None, "/".join(found.tail))

    def _place(self, kind: type[Agent], name: str, path: str) -> Destination | None:
        if kind not in self._paths:
            raise ConfigurationError(f"route() gave {kind!r}, which is not among the classes of App(…).")
        if not name or "/" in name or len(name.encode()) > MAX_NAME_BYTES:
            raise ConfigurationError(
                f"route() gave {kind.__name__} the name {name!r:.80}: it must be a text without /, "
                f"of at most {MAX_NAME_BYTES} bytes."
            )
        tail = [segment for segment in path.split("/") if segment]
        found = descend(Address(self._paths[kind], name), tail, self._kinds)
        return None if found is None else self._destination(found)


def clean_prefix(prefix: str) -> str:
    """The prefix of agents' paths, without slashes around it.

    Raises:
        ConfigurationError: there is nothing left, or it holds what no path does.
    """
    segments = [segment for segment in prefix.split("/") if segment]
    if not segments or any(mark in prefix for mark in "?#% "):
        raise ConfigurationError(f"App(prefix={prefix!r}): give one or more path segments, like 'agents' or 'api/v1'.")
    return "/".join(segments)
