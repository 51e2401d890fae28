"""Whose work the running code does: the agent, and its turn.

Held in a context variable, so it follows the work into tasks and threads without being handed on.
"""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, replace
from typing import Any

from perdure.observability.events import Events

__all__ = ["Scope", "current_scope", "emit", "in_turn", "within"]


@dataclass(frozen=True, kw_only=True, slots=True)
class Scope:
    """An agent at work."""

    agent: str
    """Its class."""
    name: str
    """Its name, as it stands in its URL."""
    key: str
    """Its canonical path: what it is called in logs."""
    events: Events
    """Who is told of what happens to it."""
    turn: str | None = None
    """Id of the turn that runs, where one does."""
    store_messages: bool = False
    """Whether what is said may stand in spans."""
    store_tools: bool = False
    """Whether inputs and outputs of tools may stand in spans."""


current_scope: ContextVar[Scope | None] = ContextVar("perdure_scope", default=None)
"""Whose work the running code does; ``None`` for the server's own."""


@contextmanager
def within(scope: Scope) -> Generator[None]:
    """What runs in here, and every task that is started in here, is the work of ``scope``."""
    token = current_scope.set(scope)
    try:
        yield
    finally:
        current_scope.reset(token)


@contextmanager
def in_turn(turn: str, *, store_messages: bool = False, store_tools: bool = False) -> Generator[None]:
    """What runs in here belongs to this turn of the agent at work."""
    scope = current_scope.get()
    if scope is None:
        yield
        return
    with within(replace(scope, turn=turn, store_messages=store_messages, store_tools=store_tools)):
        yield


def emit(type: str, /, **payload: Any) -> None:
    """Tell of an event of the agent at work. Details that are ``None`` are left out.

    Without subscribers, or outside an agent's work, nothing happens. Never raises.
    """
    scope = current_scope.get()
    if scope is not None and scope.events:
        given = {name: value for name, value in payload.items() if value is not None}
        scope.events.publish(type, scope.agent, scope.name, given)
