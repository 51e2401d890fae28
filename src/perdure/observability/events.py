"""Events for whoever watches the server: what happened to which agent (reference: engine §11)."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

__all__ = ["Event", "Events", "Subscriber"]

logger = logging.getLogger(__name__)


@dataclass(frozen=True, kw_only=True, slots=True)
class Event:
    """Something that happened to an agent."""

    type: str
    """What: ``chat:turn:start``, ``rpc``, ``connect``, …"""
    agent: str
    """The agent's class."""
    name: str
    """The agent's name, as it stands in its URL."""
    payload: Mapping[str, Any]
    """The details: JSON values under camelCase names, without what was said."""
    timestamp: int
    """Unix time in milliseconds."""


Subscriber = Callable[[Event], object]
"""Called in the event loop, between two steps of the work: it must be quick, and must not wait."""


class Events:
    """Tells subscribers. Costs next to nothing while there is none, and never fails."""

    def __init__(self, *subscribers: Subscriber) -> None:
        self._subscribers = list(subscribers)

    def __bool__(self) -> bool:
        """Whether anybody listens."""
        return bool(self._subscribers)

    def subscribe(self, subscriber: Subscriber) -> Callable[[], None]:
        """Tell ``subscriber`` of every event from now on. Calling the result ends that."""
        self._subscribers.append(subscriber)

        def unsubscribe() -> None:
            if subscriber in self._subscribers:
                self._subscribers.remove(subscriber)

        return unsubscribe

    def publish(self, type: str, agent: str, name: str, payload: Mapping[str, Any]) -> None:
        """Tell everybody, in order of subscription. What a subscriber raises is logged and goes no further."""
        event = Event(type=type, agent=agent, name=name, payload=payload, timestamp=time.time_ns() // 1_000_000)
        for subscriber in tuple(self._subscribers):
            try:
                subscriber(event)
            except Exception:
                # Whoever watches must not be able to disturb what is watched.
                logger.exception("A subscriber failed at the event %s", type)
