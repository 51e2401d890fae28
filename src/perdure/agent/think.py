"""The class that users subclass: a small facade. What it says is read by the conversation; it holds no turn."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from perdure.errors import ConfigurationError
from perdure.protocol.messages import UIMessage
from perdure.tools import Tool

if TYPE_CHECKING:
    from perdure.agent.conversation import Conversation

__all__ = ["Think", "bind"]


class Think:
    """A chat agent. Subclass it, say which model answers and which tools it has.

    One object is made for each conversation that is in memory; anything kept on ``self`` is gone when the server stops.
    """

    model: Any = None
    """What answers: ``"provider:name"``, ``"demo"``, a :class:`~perdure.ChatModel`, or a pydantic-ai ``Model``."""
    system_prompt: str = "You are a helpful assistant."
    """What the model is told first."""
    max_steps: int = 10
    """Most requests to the model in one turn (reference: engine §1.1)."""

    _conversation: Conversation | None = None
    _name: str = ""

    @property
    def name(self) -> str:
        """The name of this conversation, as it stands in the URL."""
        return self._name

    @property
    def messages(self) -> Sequence[UIMessage]:
        """The conversation so far: stored messages, oldest first. Do not change them."""
        return self._bound().messages()

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

    def get_system_prompt(self) -> str:
        """What the model is told first. Called for each turn; may be ``async``."""
        return self.system_prompt

    def get_tools(self) -> Sequence[Tool] | Mapping[str, Tool]:
        """The server's tools: a list, or a dict whose keys are the names. Called for each turn; may be ``async``."""
        return []

    def _bound(self) -> Conversation:
        if self._conversation is None:
            raise ConfigurationError(
                f"This {type(self).__name__} belongs to no conversation: agents are made by the server, not by calling "
                "the class."
            )
        return self._conversation


def bind(think: Think, name: str, conversation: Conversation) -> None:
    """Give an agent its conversation. For whoever makes agents."""
    think._name = name  # pyright: ignore[reportPrivateUsage]
    think._conversation = conversation  # pyright: ignore[reportPrivateUsage]
