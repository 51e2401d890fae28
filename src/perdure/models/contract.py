"""What the agent loop asks of a model: one step at a time, as a stream of UI message chunks.

Everything that answers implements :class:`ChatModel`: the bridge to providers, the demo model, scripted models.
The contract knows no provider and no transcript. Imports ``protocol`` only.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import AsyncGenerator, Callable, Hashable, Mapping, Sequence
from typing import Any, TypeVar, cast

import msgspec

from perdure.protocol import codec
from perdure.protocol.messages import UIMessage, is_tool_part, tool_name

__all__ = ["ChatModel", "Chunk", "Finish", "HistoryMessage", "ModelEvent", "ModelRequest", "ToolSpec", "Usage"]

T = TypeVar("T")

Chunk = dict[str, Any]
"""One UI message chunk: a JSON object with a ``type`` (reference: protocol §7.1)."""


class HistoryMessage:
    """One settled or growing UI message as the model is shown it.

    Settled messages live as long as the conversation is in memory and are handed out again for every step, so what a
    model derives from one (its provider's form of it) is kept here and derived once.
    """

    __slots__ = ("_calls", "_derived", "_message", "_text")

    def __init__(self, text: str | None = None, message: UIMessage | None = None) -> None:
        """From the stored JSON text, from the decoded message, or both."""
        assert text is not None or message is not None
        self._text = text
        self._message = message
        self._derived: dict[Hashable, Any] | None = None
        self._calls: Mapping[str, str] | None = None

    @classmethod
    def of(cls, message: UIMessage) -> HistoryMessage:
        """From a decoded message."""
        return cls(message=message)

    @property
    def text(self) -> str:
        """The message as JSON text; exactly as stored, where it is stored."""
        if self._text is None:
            self._text = codec.encode_text(self._message)
        return self._text

    @property
    def message(self) -> UIMessage:
        """The decoded message. Shared: do not change it."""
        if self._message is None:
            self._message = codec.decode(self.text)
        return cast("UIMessage", self._message)

    @property
    def calls(self) -> Mapping[str, str]:
        """The tool calls of an assistant's message: ids, each with the tool's name. A message without calls need not be
        decoded for it."""
        if self._calls is None:
            none = self._message is None and '"toolCallId"' not in self.text
            parts = [] if none or self.message.get("role") != "assistant" else self.message.get("parts") or []
            self._calls = {part.get("toolCallId") or "": tool_name(part) for part in parts if is_tool_part(part)}
        return self._calls

    def derive(self, key: Hashable, make: Callable[[UIMessage], T]) -> T:
        """``make(self.message)``, computed once for each ``key``."""
        if self._derived is None:
            self._derived = {}
        if key not in self._derived:
            self._derived[key] = make(self.message)
        return self._derived[key]


class ToolSpec(msgspec.Struct, frozen=True):
    """A tool as the model is told about it."""

    name: str
    description: str
    parameters: dict[str, Any]
    """JSON Schema of the arguments: an object schema."""


class ModelRequest(msgspec.Struct, frozen=True):
    """One step: everything the model is shown."""

    system: str
    """The system prompt; may be empty."""
    history: Sequence[HistoryMessage]
    """The conversation, oldest first. The last message may be an assistant message that already holds tool calls with
    their results: the model goes on after them. Every tool part in it is settled."""
    tools: Sequence[ToolSpec] = ()
    settings: Mapping[str, Any] = {}
    """Call settings in snake_case: ``temperature``, ``max_tokens``, ``top_p``, ``stop_sequences``, ``seed``, …"""


class Usage(msgspec.Struct, frozen=True):
    """Tokens of one step, as the provider counts them; 0 where it does not say."""

    input_tokens: int = 0
    output_tokens: int = 0
    cached_tokens: int = 0
    reasoning_tokens: int = 0


class Finish(msgspec.Struct, frozen=True):
    """The last event of a step."""

    reason: str
    """``stop``, ``length``, ``content-filter``, ``tool-calls``, ``error`` or ``other``."""
    usage: Usage = Usage()


ModelEvent = Chunk | Finish


class ChatModel(ABC):
    """Something that answers."""

    name: str
    """For logs: ``openai:gpt-5.2``, ``demo``, …"""

    @abstractmethod
    def stream(self, request: ModelRequest) -> AsyncGenerator[ModelEvent, None]:
        """One step, as an async generator.

        Yields chunks, then exactly one :class:`Finish`. The chunks are

        - ``text-start`` ``text-delta``… ``text-end`` and the same for ``reasoning``, each run with an ``id`` of its own
          within the step, ``providerMetadata`` on the end chunk where the provider wants something back;
        - ``tool-input-start`` ``tool-input-delta``… and then ``tool-input-available`` with the parsed ``input`` (always
          an object), or ``tool-input-error`` with the raw text as ``input`` when it is not a JSON object. Call ids are
          not empty and do not repeat within the step;
        - ``file``, ``source-url``, ``source-document``.

        The caller adds ``start``, ``start-step``, ``finish-step``, ``finish`` and the tools' outputs.

        Closing the generator (or cancelling the task that drives it) ends the request at once and frees its connection.

        Raises:
            ModelError: the model did not answer, or broke off.
        """
