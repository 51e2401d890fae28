"""Names of agents: in classes, in URLs, in storage (reference: protocol §1.1–1.5).

Owns the kebab-case rule, the grammar of agent paths and the limits on names. Pure; imports ``errors`` only.
"""

from __future__ import annotations

import re

import msgspec

from perdure.errors import BadRequest

__all__ = ["MAX_NAME_BYTES", "Address", "Route", "kebab", "parse_path"]

MAX_NAME_BYTES = 512
"""Longest instance name, in bytes of UTF-8."""

_CAPITAL = re.compile("[A-Z]")


def kebab(name: str) -> str:
    """The path segment of a class name, by the rule that the clients use: ``SupportDesk`` → ``support-desk``.

    Only ASCII capitals are split; a name without lower-case letters is lowered whole (``MY_AGENT`` → ``my-agent``).
    """
    if name == name.upper() and name != name.lower():
        return name.lower().replace("_", "-")
    dashed = _CAPITAL.sub(lambda match: f"-{match[0].lower()}", name)
    return dashed.removeprefix("-").replace("_", "-").removesuffix("-")


class Address(msgspec.Struct, frozen=True):
    """Which agent: a class and an instance name."""

    kind: str
    """The class in kebab-case."""
    name: str
    """The instance name as it stands in the URL: a root name is not percent-decoded."""

    @property
    def key(self) -> str:
        """The canonical path, under which everything of the agent is stored."""
        return f"{self.kind}/{self.name}"


class Route(msgspec.Struct, frozen=True):
    """A URL path that names an agent."""

    address: Address
    tail: tuple[str, ...]
    """What follows the name."""


def parse_path(raw_path: str, prefix: str = "agents") -> Route | None:
    """The agent that a URL path names, or ``None`` when it names none.

    Args:
        raw_path: The path as it stands in the URL, still percent-encoded.
        prefix: First segment or segments of agent paths.

    Raises:
        BadRequest: the name is longer than :data:`MAX_NAME_BYTES`.
    """
    segments = [segment for segment in raw_path.split("/") if segment]
    expected = [segment for segment in prefix.split("/") if segment]
    rest = segments[len(expected) :]
    if segments[: len(expected)] != expected or len(rest) < 2:
        return None
    kind, name, *tail = rest
    if len(name.encode()) > MAX_NAME_BYTES:
        raise BadRequest(f"The agent's name is longer than {MAX_NAME_BYTES} bytes.")
    return Route(Address(kind, name), tuple(tail))
