"""UI messages to pydantic-ai's model messages.

One message is converted without a look at its neighbours, so the result can be kept with it. Does no I/O.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, cast

from pydantic_ai.messages import (
    FilePart,
    ModelMessage,
    ModelRequest,
    ModelRequestPart,
    ModelResponse,
    ModelResponsePart,
    SystemPromptPart,
    TextPart,
    ThinkingPart,
    ToolCallPart,
    ToolReturnPart,
    UserContent,
    UserPromptPart,
)

from perdure.models.bridge.files import binary_of, file_content
from perdure.models.bridge.metadata import kept_from, signature_from
from perdure.models.bridge.outputs import output_content
from perdure.protocol import codec
from perdure.protocol.messages import Part, UIMessage, is_tool_part, tool_name

__all__ = ["DENIED", "MessageConverter"]

DENIED = "Tool call execution denied."
"""What the model reads in place of a result when a person said no; the reason follows. A reason by itself could be read
as what the tool gave."""


@dataclass(frozen=True)
class MessageConverter:
    """How one kind of model is shown a UI message. Equal converters give equal results, so it serves as cache key."""

    accepted: frozenset[str]
    """The providers whose reasoning, ids and signatures the model takes back. Reasoning of others is left out."""
    native_errors: bool
    """Whether the provider has a mark of its own for failed tool results. Elsewhere the error text is the result."""

    def __call__(self, message: UIMessage) -> tuple[ModelMessage, ...]:
        """The model messages of ``message``, in order; none if there is nothing to show.

        An assistant message becomes a response for each of its steps, followed by the results of that step's tools.
        Left out: tool calls that have no outcome yet, what the provider ran itself, ``data-*`` and unknown parts.
        """
        parts = message.get("parts") or []
        match message.get("role"):
            case "assistant":
                return self._assistant(parts, message.get("id") or "message")
            case "system":
                text = "\n\n".join(text for part in parts if (text := _text(part)))
                return (ModelRequest([SystemPromptPart(text)]),) if text else ()
            case _:
                return self._user(parts)

    def _user(self, parts: list[Part]) -> tuple[ModelMessage, ...]:
        content: list[UserContent] = []
        for part in parts:
            if text := _text(part):
                content.append(text)
            elif part.get("type") == "file":
                content.append(file_content(part))
        if not content:
            return ()
        only = content[0] if len(content) == 1 else None
        return (ModelRequest([UserPromptPart(only if isinstance(only, str) else content)]),)

    def _assistant(self, parts: list[Part], message_id: str) -> tuple[ModelMessage, ...]:
        messages: list[ModelMessage] = []
        said: list[ModelResponsePart] = []
        results: list[ModelRequestPart] = []

        def end_step() -> None:
            if said:
                messages.append(ModelResponse(_with_signatures_first(said)))
            if results:
                messages.append(ModelRequest(results.copy()))
            said.clear()
            results.clear()

        for number, part in enumerate(parts):
            if part.get("type") == "step-start":
                end_step()
            elif is_tool_part(part):
                call_id = part.get("toolCallId") or f"{message_id}_{number}"
                if (result := self._result(part, call_id)) is not None:
                    said.append(self._call(part, call_id))
                    results.append(result)
            elif (spoken := self._spoken(part)) is not None:
                said.append(spoken)
        end_step()
        return tuple(messages)

    def _spoken(self, part: Part) -> ModelResponsePart | None:
        metadata = part.get("providerMetadata")
        match part.get("type"):
            case "text" if text := _text(part):
                return TextPart(text, **kept_from(metadata, self.accepted))
            case "reasoning":
                # Without its provider's mark it could only go back as text, and a model takes up what it reads.
                kept = kept_from(metadata, self.accepted)
                signature = signature_from(metadata, self.accepted)
                return ThinkingPart(part.get("text") or "", signature=signature, **kept) if kept else None
            case "file" if (binary := binary_of(part)) is not None:
                return FilePart(binary)
            case _:
                return None

    def _call(self, part: Part, call_id: str) -> ToolCallPart:
        kept = kept_from(part.get("callProviderMetadata"), self.accepted)
        return ToolCallPart(tool_name(part), _arguments(part.get("input")), call_id, **kept)

    def _result(self, part: Part, call_id: str) -> ToolReturnPart | None:
        """The outcome of a tool part; None when it has none that we know."""
        if part.get("providerExecuted"):
            return None
        approval: dict[str, Any] = part.get("approval") or {}
        match part.get("state"):
            case "output-available":
                return ToolReturnPart(tool_name(part), output_content(part.get("output")), call_id)
            case "output-error":
                text = part.get("errorText") or "The tool failed without saying why."
                outcome = "failed" if self.native_errors else "success"
                return ToolReturnPart(tool_name(part), text, call_id, outcome=outcome)
            case "output-denied":
                return ToolReturnPart(tool_name(part), _denial(approval), call_id, outcome="denied")
            case "approval-responded" if approval.get("approved") is False:
                return ToolReturnPart(tool_name(part), _denial(approval), call_id, outcome="denied")
            case _:
                return None


def _denial(approval: dict[str, Any]) -> str:
    reason = approval.get("reason")
    return f"{DENIED} The reason: {reason}" if reason else DENIED


def _text(part: Part) -> str:
    text = part.get("text") if part.get("type") == "text" else None
    return text if isinstance(text, str) else ""


def _arguments(value: Any) -> dict[str, Any]:
    """A call's arguments as the object that providers insist on."""
    if isinstance(value, str):
        try:
            value = codec.decode(value)
        except codec.DecodeError:
            return {}
    return cast("dict[str, Any]", value) if isinstance(value, dict) else {}


def _with_signatures_first(parts: list[ModelResponsePart]) -> list[ModelResponsePart]:
    """A copy in which reasoning that one item was split into carries the item's signature on its first part.

    A provider may send the signature after later parts of the item; it then came to us with a later or an empty part.
    """
    first: dict[str, ThinkingPart] = {}
    kept: list[ModelResponsePart] = []
    for part in parts:
        if isinstance(part, ThinkingPart) and part.id:
            head = first.setdefault(part.id, part)
            if head is not part and part.signature and not head.signature:
                head.signature, part.signature = part.signature, None
                if not part.content:
                    continue
        kept.append(part)
    return kept
