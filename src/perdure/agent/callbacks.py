"""The methods that schedules call: found by name, checked when the schedule is made, called with what they take."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from perdure.agent.schedules import Schedule
from perdure.errors import ConfigurationError

if TYPE_CHECKING:
    from perdure.agent.base import Agent

__all__ = ["Callback", "callback_name"]

_POSITIONAL = {inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD}


class Callback:
    """One method. It takes the payload, or nothing; a parameter called ``schedule`` is given the schedule."""

    def __init__(self, agent: Agent, name: str) -> None:
        """Find the method.

        Raises:
            ConfigurationError: the agent has no such method, or it needs more arguments.
        """
        # Looked up in the class, so that no property is run.
        if name.startswith("__") or not inspect.isroutine(inspect.getattr_static(type(agent), name, None)):
            raise ConfigurationError(f"{type(agent).__name__} has no method {name!r} that a schedule could call.")
        self._method: Callable[..., Any] = getattr(agent, name)
        parameters = inspect.signature(self._method).parameters
        self._schedule = "schedule" in parameters
        self.takes_payload = any(
            parameter.name != "schedule"
            and (parameter.kind in _POSITIONAL or parameter.kind is parameter.VAR_POSITIONAL)
            for parameter in parameters.values()
        )
        """Whether it is given the payload."""
        try:
            inspect.signature(self._method).bind(*self._arguments(None)[0], **self._arguments(None)[1])
        except TypeError as error:
            raise ConfigurationError(
                f"{type(agent).__name__}.{name} cannot be called by a schedule ({error}): it is given the payload, and "
                "the schedule if it has a parameter called schedule."
            ) from error

    async def call(self, schedule: Schedule) -> None:
        """Call the method and wait for its end."""
        args, kwargs = self._arguments(schedule)
        result = self._method(*args, **kwargs)
        if inspect.isawaitable(result):
            await result

    def _arguments(self, schedule: Schedule | None) -> tuple[list[Any], dict[str, Any]]:
        payload = [schedule.payload if schedule is not None else None] if self.takes_payload else []
        return payload, {"schedule": schedule} if self._schedule else {}


def callback_name(agent: Agent, callback: str | Callable[..., Any], payload: Any) -> str:
    """The name of ``callback``, which is a method of the agent that can be called with ``payload``.

    Raises:
        ConfigurationError: it is not.
    """
    name = callback if isinstance(callback, str) else getattr(callback, "__name__", "")
    if not isinstance(callback, str) and getattr(callback, "__self__", None) is not agent:
        raise ConfigurationError(
            f"{callback!r:.100} is no method of this {type(agent).__name__}: a schedule outlives the process, so it "
            "can only name a method. Pass self.method, or its name."
        )
    if not Callback(agent, name).takes_payload and payload is not None:
        raise ConfigurationError(f"{type(agent).__name__}.{name} takes no payload, and one is given.")
    return name
