"""What hooks are told of a turn and what they may change about it. Data only (reference: engine §2.6-2.8, §2.15)."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from perdure.models.contract import Usage
from perdure.protocol.messages import Part, UIMessage, is_tool_part, tool_name
from perdure.tools import ToolSet
from perdure.tools.merge import ToolSource

__all__ = [
    "ChatErrorContext",
    "ChatResponse",
    "PendingApproval",
    "StepConfig",
    "StepContext",
    "StepResult",
    "ToolCallContext",
    "ToolCallDecision",
    "ToolCallResult",
    "TurnConfig",
    "TurnContext",
    "TurnResult",
    "allow",
    "block",
    "substitute",
]

Status = Literal["completed", "error", "aborted", "skipped", "interrupted"]
"""``aborted``: stopped by somebody; ``skipped``: there was nothing to answer, or the conversation was cleared;
``interrupted``: the agent went out of memory, as when the server stops."""


@dataclass(frozen=True, kw_only=True, slots=True)
class TurnContext:
    """What :meth:`~perdure.Think.before_turn` is told: the turn as it was put together."""

    request_id: str
    trigger: str
    """What asked for the turn: ``ws-chat``, ``programmatic``, ``rpc``, …"""
    continuation: bool
    """Whether it goes on with the last answer instead of making a new one."""
    system: str
    messages: Sequence[UIMessage]
    """The conversation that the model will be shown. Do not change it."""
    tools: ToolSet
    model: Any
    """As :meth:`~perdure.Think.get_model` gave it."""
    body: Mapping[str, Any]
    """The fields that the page sent beside the messages."""


@dataclass(kw_only=True, slots=True)
class TurnConfig:
    """What :meth:`~perdure.Think.before_turn` changes, for this turn only. What is not given stays as it is."""

    model: Any = None
    """What answers, in the forms that ``Think.model`` takes."""
    system: str | None = None
    """The system prompt instead of the class's."""
    instructions: str | None = None
    """The same; wins over ``system``."""
    messages: Sequence[UIMessage] | None = None
    """The conversation that the model is shown, instead of the stored one. The answer so far follows it."""
    tools: ToolSource | None = None
    """Further tools. They can be called although ``active_tools`` does not list them."""
    active_tools: Sequence[str] | None = None
    """Names of the other tools that the model may call; all when not given."""
    tool_choice: Any = None
    """``"auto"``, ``"required"``, ``"none"``, or a list of names of which one must be called."""
    max_steps: int | None = None
    stop_when: Callable[[Sequence[StepResult]], Any] | Sequence[Callable[[Sequence[StepResult]], Any]] = ()
    """One or more conditions, looked at after each step that called tools; one that holds ends the turn. They may be
    ``async``."""
    send_reasoning: bool | None = None
    message_metadata: Mapping[str, Any] | None = None
    """Metadata of the assistant message."""
    repair_tool_call: Callable[..., Any] | None = None
    """Instead of :meth:`~perdure.Think.repair_tool_call`."""
    max_output_tokens: int | None = None
    temperature: float | None = None
    top_p: float | None = None
    top_k: int | None = None
    presence_penalty: float | None = None
    frequency_penalty: float | None = None
    stop_sequences: Sequence[str] | None = None
    seed: int | None = None
    max_retries: int | None = None
    """Further tries of a request that failed for a passing reason."""
    timeout: float | None = None
    """Seconds for one request."""
    headers: Mapping[str, str] | None = None
    """Further HTTP headers of the requests."""
    provider_options: Mapping[str, Any] = field(default_factory=dict[str, Any])
    """Settings that only one provider knows, by their pydantic-ai names (``openai_reasoning_effort``, …)."""

    def settings(self) -> dict[str, Any]:
        """The call settings as a model request takes them.

        Raises:
            TypeError, ValueError: one of them is of a kind that it cannot be.
        """
        named = {
            "max_tokens": self.max_output_tokens,
            "temperature": self.temperature,
            "top_p": self.top_p,
            "top_k": self.top_k,
            "presence_penalty": self.presence_penalty,
            "frequency_penalty": self.frequency_penalty,
            "stop_sequences": _listed(self.stop_sequences),
            "seed": self.seed,
            "max_retries": self.max_retries,
            "timeout": self.timeout,
            "extra_headers": None if self.headers is None else dict(self.headers),
            "tool_choice": self.tool_choice,
        }
        return {**{name: value for name, value in named.items() if value is not None}, **self.provider_options}


def _listed(texts: Any) -> list[str] | None:
    return None if texts is None else [texts] if isinstance(texts, str) else list(texts)


@dataclass(frozen=True, kw_only=True, slots=True)
class StepResult:
    """One step that is over."""

    number: int
    """0 for the first."""
    parts: Sequence[Part]
    """What it added to the answer, tool calls with their results included."""
    finish_reason: str
    usage: Usage

    @property
    def text(self) -> str:
        """What it said; what stands before and after a tool call is set apart."""
        return spoken(self.parts)

    @property
    def tool_calls(self) -> list[Part]:
        """The tool parts, in call order."""
        return [part for part in self.parts if is_tool_part(part)]

    def called(self, name: str) -> bool:
        """Whether it called that tool: ``stop_when=[lambda steps: steps[-1].called("answer")]``."""
        return any(tool_name(part) == name for part in self.tool_calls)


@dataclass(frozen=True, kw_only=True, slots=True)
class StepContext:
    """What :meth:`~perdure.Think.before_step` is told."""

    request_id: str
    number: int
    """0 for the first."""
    steps: Sequence[StepResult]
    """The steps before this one."""
    messages: Sequence[UIMessage]
    """What the model will be shown, the answer so far included. Do not change it."""
    model: Any
    system: str


@dataclass(kw_only=True, slots=True)
class StepConfig:
    """What :meth:`~perdure.Think.before_step` changes, for this step only."""

    model: Any = None
    system: str | None = None
    messages: Sequence[UIMessage] | None = None
    """All that the model is shown, the answer so far included."""
    active_tools: Sequence[str] | None = None
    tool_choice: Any = None


@dataclass(frozen=True, kw_only=True, slots=True)
class ToolCallContext:
    """What :meth:`~perdure.Think.before_tool_call` is told: a call of a server tool that is about to run."""

    request_id: str
    tool_call_id: str
    tool_name: str
    input: Mapping[str, Any]
    """As the model wrote it. A copy: what counts is what :func:`allow` is given."""


@dataclass(frozen=True, slots=True)
class ToolCallDecision:
    """What becomes of a call. Made by :func:`allow`, :func:`block` and :func:`substitute`."""

    action: Literal["allow", "block", "substitute"]
    value: Any = None


def allow(input: Mapping[str, Any] | None = None) -> ToolCallDecision:
    """The call runs, with other arguments if some are given."""
    return ToolCallDecision("allow", input)


def block(reason: str | None = None) -> ToolCallDecision:
    """The call does not run; the model is given the reason as its result."""
    return ToolCallDecision("block", reason)


def substitute(output: Any) -> ToolCallDecision:
    """The call does not run; this is its result."""
    return ToolCallDecision("substitute", output)


@dataclass(frozen=True, kw_only=True, slots=True)
class ToolCallResult:
    """What :meth:`~perdure.Think.after_tool_call` is told: a call that is over."""

    request_id: str
    tool_call_id: str
    tool_name: str
    input: Mapping[str, Any]
    """As the model wrote it."""
    success: bool
    """Also for a call that was blocked or whose result was substituted."""
    output: Any = None
    """The result as the model sees it: a JSON value. Do not change it."""
    error: BaseException | None = None
    duration_ms: float = 0.0


@dataclass(frozen=True, kw_only=True, slots=True)
class PendingApproval:
    """A tool call that waits for a person's decision."""

    tool_call_id: str
    approval_id: str
    tool_name: str
    input: dict[str, Any]
    """The arguments that the model wrote. A copy."""
    message_id: str
    """The message that holds the call."""
    asked_ms: int
    """Unix time in milliseconds."""
    expires_ms: int | None
    """When it is denied by itself; ``None``: never."""


@dataclass(frozen=True, kw_only=True, slots=True)
class TurnResult:
    """How a turn ended that the server's own code asked for."""

    request_id: str
    """Empty for a turn that never was (nothing to answer)."""
    status: Status
    error: str | None = None
    message: UIMessage | None = None
    """The answer as stored, if the turn completed and there is one."""
    continuation: bool = False

    @property
    def text(self) -> str:
        """What the answer says; what stands before and after a tool call is set apart."""
        return "" if self.message is None else spoken(self.message["parts"])


@dataclass(frozen=True, kw_only=True, slots=True)
class ChatResponse:
    """What :meth:`~perdure.Think.on_chat_response` is told: a turn that is over and stored."""

    request_id: str
    status: Status
    message: UIMessage
    """The answer, as far as it got; without parts when there was none."""
    continuation: bool = False
    error: str | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class ChatErrorContext:
    """What :meth:`~perdure.Think.on_chat_error` and :meth:`~perdure.Think.classify_chat_error` are told beside the
    error."""

    request_id: str
    stage: Literal["turn", "stream"]
    """``turn``: before the answer began; ``stream``: in the middle of it."""
    continuation: bool = False
    classification: str | None = None
    """What ``classify_chat_error`` called it."""


def spoken(parts: Sequence[Part]) -> str:
    """The text of these parts. Words before and after a tool call are set apart by white space, other pieces follow
    each other as they are."""
    pieces: list[str] = []
    apart = False
    for part in parts:
        if is_tool_part(part):
            apart = bool(pieces)
        elif part["type"] == "text" and (text := part["text"]):
            if apart and not (text[0].isspace() or pieces[-1][-1].isspace()):
                pieces.append("\n\n")
            apart = False
            pieces.append(text)
    return "".join(pieces)
