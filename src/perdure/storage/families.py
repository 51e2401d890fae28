"""The contract of a store for families of agents: rows, operations and queries, as in ``contract``.

The key of an agent below another begins with that one's key and ``/sub/``. No other key does.
"""

from __future__ import annotations

import msgspec

from perdure.storage.contract import Operation, Query

__all__ = ["ChildRow", "ForgetFamily", "LoadChildren"]


class ChildRow(msgspec.Struct, frozen=True):
    """An agent right below another."""

    key: str
    body: str
    """The value that was asked for."""


class LoadChildren(Query[list[ChildRow]], frozen=True):
    """The agents right below an agent that have a certain named value; those written first come first."""

    agent: str
    namespace: str
    key: str


class ForgetFamily(Operation, frozen=True):
    """Forget everything of an agent and of all below it. It is the last operation of its write."""
