"""An agent's relatives: its sub-agents and its parent, as its class may use them (reference: engine §10.4).

Knows classes and names; waking, stopping and forgetting agents is the host's business.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, TypeVar, cast

import msgspec

from perdure.agent.handle import Handle
from perdure.agent.services import Family, Services
from perdure.errors import ConfigurationError
from perdure.protocol.names import Address, kebab

if TYPE_CHECKING:
    from perdure.agent.base import Agent

__all__ = ["Relatives", "SubAgentInfo"]

A = TypeVar("A", bound="Agent")


class SubAgentInfo(msgspec.Struct, frozen=True):
    """One sub-agent, as :meth:`Agent.list_sub_agents` lists it."""

    kind: str
    """Name of its class."""
    name: str
    created_ms: int
    """Unix time in milliseconds."""


class Relatives:
    """The relatives of one agent."""

    def __init__(self, address: Address, services: Services) -> None:
        self._address = address
        self._services = services

    @property
    def _family(self) -> Family:
        return self._services.family

    @property
    def ancestors(self) -> Sequence[tuple[str, str]]:
        """Class name and name of the agents above, the root first."""
        return tuple((self._family.kind_of(above).__name__, above.name) for above in self._address.line[:-1])

    def parent(self, kind: type[A]) -> A:
        """A handle on the parent.

        Raises:
            ConfigurationError: there is none, or it is of another class.
        """
        parent = self._address.parent
        if parent is None:
            raise ConfigurationError(f"{self._address.key} is no sub-agent: it has no parent.")
        found = self._family.kind_of(parent)
        if not issubclass(found, kind):
            raise ConfigurationError(f"The parent of {self._address.key} is a {found.__name__}, not a {kind.__name__}.")
        return self._handle(parent, kind, found)

    async def open(self, kind: type[A], name: str) -> A:
        """A handle on a sub-agent, which is made if there is none."""
        address = self._child(kind, name)
        await self._family.open(address)
        return self._handle(address, kind, kind)

    async def has(self, kind: type[Agent], name: str) -> bool:
        """Whether there is such a sub-agent."""
        return await self._family.exists(self._child(kind, name))

    async def listed(self, kind: type[Agent] | None) -> list[SubAgentInfo]:
        """The sub-agents, of one class or of all, in the order in which they were made."""
        found: list[SubAgentInfo] = []
        for address, created in await self._family.children(self._address):
            its_kind = self._family.kind_of(address)
            if kind is None or its_kind is kind:
                found.append(SubAgentInfo(its_kind.__name__, address.name, created))
        return found

    async def stop(self, kind: type[Agent], name: str) -> None:
        """Stop a sub-agent."""
        await self._family.stop(self._child(kind, name))

    async def delete(self, kind: type[Agent], name: str) -> None:
        """Stop a sub-agent and forget it."""
        await self._family.delete(self._child(kind, name))

    def _child(self, kind: type[Agent], name: str) -> Address:
        address = self._address.child(kebab(kind.__name__), name)
        if self._family.kind_of(address) is not kind:
            raise ConfigurationError(
                f"{kind.__module__}.{kind.__qualname__} is not the {kind.__name__} that the app was given."
            )
        return address

    def _handle(self, address: Address, kind: type[A], found: type[Agent]) -> A:
        # To the type checker a handle is the agent: it has its public methods.
        return cast("A", Handle(address, found, self._family))
