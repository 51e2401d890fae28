"""Checks of a class before there is an object of it: mistakes show when the app is made, not with the first message."""

from __future__ import annotations

import inspect
from typing import Any

from perdure.agent.base import Agent
from perdure.agent.schedules import delay_ms
from perdure.agent.think import Think
from perdure.chat.concurrency import strategy_of
from perdure.errors import ConfigurationError

__all__ = ["check_class"]


def check_class(kind: type[Agent]) -> None:
    """Look at what a class says. What only an object says, as with a property, is looked at when there is one.

    Raises:
        ConfigurationError: some of it cannot be used.
    """
    if issubclass(kind, Think):
        concurrency: Any = kind.message_concurrency
        if not hasattr(concurrency, "__get__"):
            strategy_of(concurrency, kind.__name__)
        ttl: Any = kind.approval_ttl
        if ttl is not None and not hasattr(ttl, "__get__"):
            try:
                delay_ms(ttl)
            except ConfigurationError as error:
                raise ConfigurationError(f"{kind.__name__}.approval_ttl: {error}") from None
        if inspect.iscoroutinefunction(kind.accepts_chat_frame):
            raise ConfigurationError(
                f"{kind.__name__}.accepts_chat_frame() is async; it must answer at once. Look up what it needs in "
                "on_connect(), and keep it in connection.state."
            )
