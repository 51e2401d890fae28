"""The class that users subclass: a small facade. What it says is read by the conversation; it holds no turn."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from perdure.agent.base import Agent
from perdure.errors import ConfigurationError
from perdure.protocol.messages import UIMessage
from perdure.tools import Tool

__all__ = ["Think"]


class Think(Agent):
    """A chat agent. Subclass it, say which model answers and which tools it has."""

    model: Any = None
    """What answers: ``"provider:name"``, ``"demo"``, a :class:`~perdure.ChatModel`, or a pydantic-ai ``Model``."""
    system_prompt: str = "You are a helpful assistant."
    """What the model is told first."""
    max_steps: int = 10
    """Most requests to the model in one turn (reference: engine §1.1)."""

    @property
    def messages(self) -> Sequence[UIMessage]:
        """The conversation so far: stored messages, oldest first. Do not change them."""
        return self._bound.chat.messages()

    def get_model(self) -> Any:
        """What answers. Called for each turn; may be ``async``. Default: the class attribute ``model``.

        Raises:
            ConfigurationError: there is no ``model``.
        """
        if self.model is None:
            raise ConfigurationError(
                f'{type(self).__name__} has no model. Set model = "provider:name" in the class '
                '(model = "demo" needs no key), or override get_model().'
            )
        return self.model

    def get_system_prompt(self) -> Any:
        """What the model is told first: a ``str``. Called for each turn; may be ``async``."""
        return self.system_prompt

    def get_tools(self) -> Sequence[Tool] | Mapping[str, Tool]:
        """The server's tools: a list, or a dict whose keys are the names. Called for each turn; may be ``async``."""
        return []
