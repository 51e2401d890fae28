"""Names of agents: in classes, in URLs, in storage (reference: protocol §1.1–1.5, 1.11).

Owns the kebab-case rule, the grammar of agent paths and the limits on names. Pure; imports ``errors`` only.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from urllib.parse import quote, unquote

import msgspec

from perdure.errors import BadRequest

__all__ = ["MAX_DEPTH", "MAX_NAME_BYTES", "SUB", "Address", "Route", "descend", "kebab", "parse_path"]

MAX_NAME_BYTES = 512
"""Longest instance name, in bytes of UTF-8."""

MAX_DEPTH = 4
"""Most levels of sub-agents below a root."""

SUB = "sub"
"""The segment before a sub-agent's class, hence no class's name."""

_CAPITAL = re.compile("[A-Z]")
_BROKEN_ESCAPE = re.compile("%(?![0-9A-Fa-f]{2})")


def kebab(name: str) -> str:
    """The path segment of a class name, by the rule that the clients use: ``SupportDesk`` → ``support-desk``.

    Only ASCII capitals are split; a name without lower-case letters is lowered whole (``MY_AGENT`` → ``my-agent``).
    """
    if name == name.upper() and name != name.lower():
        return name.lower().replace("_", "-")
    dashed = _CAPITAL.sub(lambda match: f"-{match[0].lower()}", name)
    return dashed.removeprefix("-").replace("_", "-").removesuffix("-")


class Address(msgspec.Struct, frozen=True):
    """Which agent: a class and an instance name, and for a sub-agent whose."""

    kind: str
    """The class in kebab-case."""
    name: str
    """The instance name. A root's is as it stands in the URL, not percent-decoded; a sub-agent's is decoded."""
    parent: Address | None = None
    """The agent that it belongs to; ``None`` for a root."""

    @property
    def key(self) -> str:
        """The canonical path, under which everything of the agent is stored.

        The names of sub-agents are percent-encoded in it, so that the keys of an agent's family, and no others, begin
        with its own key and ``/sub/``.
        """
        if self.parent is None:
            return f"{self.kind}/{self.name}"
        return f"{self.parent.key}/{SUB}/{self.kind}/{quote(self.name, safe='')}"

    @classmethod
    def of_key(cls, key: str) -> Address:
        """The address whose :attr:`key` this is."""
        kind, name, *rest = key.split("/")
        address = cls(kind, name)
        for kind, name in zip(rest[1::3], rest[2::3], strict=True):
            address = cls(kind, unquote(name), address)
        return address

    @property
    def line(self) -> Sequence[Address]:
        """The root, the agents below it on the way here, and this one."""
        return (self,) if self.parent is None else (*self.parent.line, self)

    @property
    def root(self) -> Address:
        """The agent at the top of the family."""
        return self if self.parent is None else self.parent.root

    def child(self, kind: str, name: str) -> Address:
        """A sub-agent of this agent.

        Raises:
            BadRequest: the name is empty, too long, or has a NUL or half of a surrogate pair in it, or there would be
                more than :data:`MAX_DEPTH` levels of sub-agents.
        """
        if len(self.line) > MAX_DEPTH:
            raise BadRequest(f"Sub-agents go {MAX_DEPTH} levels deep at most.")
        _check(name)
        return Address(kind, name, self)


class Route(msgspec.Struct, frozen=True):
    """A URL path that names an agent."""

    address: Address
    tail: tuple[str, ...]
    """What follows the name."""


def parse_path(raw_path: str, prefix: str = "agents", *, kinds: Collection[str] = ()) -> Route | None:
    """The agent that a URL path names, or ``None`` when it names none.

    Args:
        raw_path: The path as it stands in the URL, still percent-encoded.
        prefix: First segment or segments of agent paths.
        kinds: The classes that sub-agents may have, in kebab-case.

    Raises:
        BadRequest: a name is longer than :data:`MAX_NAME_BYTES` or has a NUL in it, or there are more than
            :data:`MAX_DEPTH` levels of sub-agents.
    """
    segments = [segment for segment in raw_path.split("/") if segment]
    expected = [segment for segment in prefix.split("/") if segment]
    rest = segments[len(expected) :]
    if segments[: len(expected)] != expected or len(rest) < 2:
        return None
    kind, name, *tail = rest
    _check(name)
    return descend(Address(kind, name), tail, kinds)


def descend(address: Address, tail: Sequence[str], kinds: Collection[str]) -> Route | None:
    """The agent that is named by what follows an agent in a path: itself, or one below it.

    A sub-agent is named by the first ``/sub/{class}/{name}`` of a known class after its parent. Where an unknown class,
    or a name that cannot be decoded, follows an agent at once, nobody is named: the agent must not answer for another.

    Args:
        address: The agent.
        tail: The segments after it, percent-encoded, none empty.
        kinds: The classes that sub-agents may have, in kebab-case.

    Raises:
        BadRequest: as for :func:`parse_path`.
    """
    while (at := _marker(tail, kinds)) is not None:
        address = address.child(tail[at + 1], unquote(tail[at + 2]))
        tail = tail[at + 3 :]
    return None if _is_marker(tail, 0) else Route(address, tuple(tail))


def _marker(tail: Sequence[str], kinds: Collection[str]) -> int | None:
    """Where the tail names a sub-agent."""
    for at in range(len(tail)):
        if _is_marker(tail, at) and tail[at + 1] in kinds and _is_encoded(tail[at + 2]):
            return at
    return None


def _is_marker(tail: Sequence[str], at: int) -> bool:
    return tail[at : at + 1] == [SUB] and len(tail) >= at + 3


def _is_encoded(segment: str) -> bool:
    """Whether a segment is valid percent-encoded UTF-8."""
    if _BROKEN_ESCAPE.search(segment):
        return False
    try:
        unquote(segment, errors="strict")
    except UnicodeDecodeError:
        return False
    return True


def _check(name: str) -> None:
    try:
        size = len(name.encode())
    except UnicodeEncodeError:
        raise BadRequest("The agent's name is no valid text.") from None
    if not name:
        raise BadRequest("The agent's name is empty.")
    if size > MAX_NAME_BYTES:
        raise BadRequest(f"The agent's name is longer than {MAX_NAME_BYTES} bytes.")
    if "\0" in name:
        raise BadRequest("The agent's name has a NUL in it.")
