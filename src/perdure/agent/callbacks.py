"""The methods that schedules and queues call: found by name, checked when they are asked for, called with what they
take.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from perdure.errors import ConfigurationError

if TYPE_CHECKING:
    from perdure.agent.base import Agent

__all__ = ["Callback", "callback_name"]

_POSITIONAL = {inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD}


class Callback:
    """One method. It takes the payload, or nothing; a parameter called like ``about`` is given what is carried out."""

    def __init__(self, agent: Agent, name: str, about: str) -> None:
        """Find the method.

        Args:
            agent: Whose method it is.
            name: Its name.
            about: ``schedule``, or ``item`` for one of a queue.

        Raises:
            ConfigurationError: the agent has no such method, or it needs more arguments.
        """
        # Looked up in the class, so that no property is run.
        if name.startswith("__") or not inspect.isroutine(inspect.getattr_static(type(agent), name, None)):
            raise ConfigurationError(f"{type(agent).__name__} has no method {name!r} that could be called later.")
        self._method: Callable[..., Any] = getattr(agent, name)
        parameters = inspect.signature(self._method).parameters
        self._about = about
        self._takes_about = about in parameters
        self.takes_payload = any(
            parameter.name != about and (parameter.kind in _POSITIONAL or parameter.kind is parameter.VAR_POSITIONAL)
            for parameter in parameters.values()
        )
        """Whether it is given the payload."""
        try:
            args, kwargs = self._arguments(None, None)
            inspect.signature(self._method).bind(*args, **kwargs)
        except TypeError as error:
            raise ConfigurationError(
                f"{type(agent).__name__}.{name} cannot be called later ({error}): it is given the payload, and the "
                f"{about} if it has a parameter called {about}."
            ) from error

    async def call(self, payload: Any, about: Any) -> None:
        """Call the method and wait for its end."""
        args, kwargs = self._arguments(payload, about)
        result = self._method(*args, **kwargs)
        if inspect.isawaitable(result):
            await result

    def _arguments(self, payload: Any, about: Any) -> tuple[list[Any], dict[str, Any]]:
        return [payload] if self.takes_payload else [], {self._about: about} if self._takes_about else {}


def callback_name(agent: Agent, callback: str | Callable[..., Any], payload: Any, about: str) -> str:
    """The name of ``callback``, which is a method of the agent that can be called with ``payload``.

    Raises:
        ConfigurationError: it is not.
    """
    name = callback if isinstance(callback, str) else getattr(callback, "__name__", "")
    if not isinstance(callback, str) and getattr(callback, "__self__", None) is not agent:
        raise ConfigurationError(
            f"{callback!r:.100} is no method of this {type(agent).__name__}: what is done later outlives the "
            "process, so it can only be named. Pass self.method, or its name."
        )
    if not Callback(agent, name, about).takes_payload and payload is not None:
        raise ConfigurationError(f"{type(agent).__name__}.{name} takes no payload, and one is given.")
    return name
