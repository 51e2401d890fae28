"""OpenTelemetry spans of turns, model steps and tool calls, named by the GenAI conventions.

Whoever wants spans sets up the OpenTelemetry SDK. Until somebody has imported OpenTelemetry nothing happens here, not
even that import. What was said, and what tools were given, is in spans only where the agent's class allows it.
"""

from __future__ import annotations

import sys
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Protocol

from perdure._version import __version__
from perdure.observability.content import as_json, genai_messages
from perdure.observability.scope import current_scope

if TYPE_CHECKING:
    from opentelemetry.trace import Span as OtelSpan

__all__ = ["ModelSpan", "ToolSpan", "TurnSpan", "model_span", "tool_span", "turn_span"]

_SETTINGS = {
    "temperature": "gen_ai.request.temperature",
    "top_p": "gen_ai.request.top_p",
    "top_k": "gen_ai.request.top_k",
    "max_tokens": "gen_ai.request.max_tokens",
    "seed": "gen_ai.request.seed",
    "stop_sequences": "gen_ai.request.stop_sequences",
    "frequency_penalty": "gen_ai.request.frequency_penalty",
    "presence_penalty": "gen_ai.request.presence_penalty",
}


class TokenUsage(Protocol):
    """Tokens of a model step."""

    @property
    def input_tokens(self) -> int: ...
    @property
    def output_tokens(self) -> int: ...
    @property
    def cached_tokens(self) -> int: ...
    @property
    def reasoning_tokens(self) -> int: ...


class _Span:
    """A span, or nothing where nobody traces."""

    __slots__ = ("_span",)

    def __init__(self, span: OtelSpan | None) -> None:
        self._span = span if span is not None and span.is_recording() else None

    def _set(self, **attributes: Any) -> None:
        if self._span is not None:
            for name, value in attributes.items():
                self._span.set_attribute(name, value)

    def failed(self, error: str) -> None:
        """What the span is of went wrong. ``error`` is its kind: low in cardinality, and without what was said."""
        if self._span is None:
            return
        from opentelemetry.trace import StatusCode

        self._span.set_attribute("error.type", error)
        self._span.set_status(StatusCode.ERROR)


class TurnSpan(_Span):
    """The span of a turn."""

    def ended(self, outcome: str) -> None:
        """How it ended: ``completed``, ``aborted``, ``error``, …"""
        self._set(**{"perdure.turn.outcome": outcome})
        if outcome == "error":
            self.failed("turn_failed")


class ModelSpan(_Span):
    """The span of one request to the model."""

    @property
    def keeps_messages(self) -> bool:
        """Whether :meth:`asked` and :meth:`answered` have any effect: what they are given need not be put together
        otherwise."""
        scope = current_scope.get()
        return self._span is not None and scope is not None and scope.store_messages

    def asked(self, system: str, history: Sequence[Mapping[str, Any]]) -> None:
        """What the model is shown: the system prompt and UI messages."""
        if self.keeps_messages:
            if system:
                self._set(**{"gen_ai.system_instructions": as_json([{"type": "text", "content": system}])})
            self._set(**{"gen_ai.input.messages": as_json(genai_messages(history))})

    def answered(self, parts: Sequence[Mapping[str, Any]]) -> None:
        """What it said: the parts of the step."""
        if self.keeps_messages:
            messages = genai_messages([{"role": "assistant", "parts": parts}])
            self._set(**{"gen_ai.output.messages": as_json(messages)})

    def finished(self, reason: str, usage: TokenUsage) -> None:
        """How the step ended, and what it took."""
        self._set(
            **{
                "gen_ai.response.finish_reasons": [reason],
                "gen_ai.usage.input_tokens": usage.input_tokens,
                "gen_ai.usage.output_tokens": usage.output_tokens,
                "gen_ai.usage.cache_read.input_tokens": usage.cached_tokens,
                "gen_ai.usage.reasoning.output_tokens": usage.reasoning_tokens,
            }
        )


class ToolSpan(_Span):
    """The span of a tool call."""

    def returned(self, output: Any) -> None:
        """What the tool gave."""
        if _stores_tools():
            self._set(**{"gen_ai.tool.call.result": as_json(output)})


@contextmanager
def turn_span(trigger: str) -> Generator[TurnSpan]:
    """The span of the turn that the running code works on. It is the root of a trace of its own, linked to whatever
    span is open here: a turn outlives the request that asked for it."""
    trace = _tracing()
    scope = current_scope.get()
    if trace is None or scope is None:
        yield TurnSpan(None)
        return
    from opentelemetry.context import Context

    around = trace.get_current_span().get_span_context()
    attributes = {
        "gen_ai.operation.name": "invoke_agent",
        "gen_ai.agent.name": scope.agent,
        "gen_ai.conversation.id": scope.key,
        "perdure.turn.id": scope.turn or "",
        "perdure.turn.trigger": trigger,
    }
    with trace.get_tracer("perdure", __version__).start_as_current_span(
        f"invoke_agent {scope.agent}",
        context=Context(),
        attributes=attributes,
        links=[trace.Link(around)] if around.is_valid else [],
        record_exception=False,
    ) as span:
        yield TurnSpan(span)


@contextmanager
def model_span(model: str, settings: Mapping[str, Any] | None = None) -> Generator[ModelSpan]:
    """The span of one request to the model ``model``: ``"provider:name"``, or a name alone."""
    trace = _tracing()
    if trace is None:
        yield ModelSpan(None)
        return
    provider, _, name = model.rpartition(":")
    attributes: dict[str, Any] = {
        "gen_ai.operation.name": "chat",
        "gen_ai.provider.name": provider or name,
        "gen_ai.request.model": name,
        **{_SETTINGS[key]: value for key, value in (settings or {}).items() if key in _SETTINGS and value is not None},
    }
    with _open(trace, f"chat {name}", trace.SpanKind.CLIENT, attributes) as span, _failures(made := ModelSpan(span)):
        yield made


@contextmanager
def tool_span(tool: str, call: str, input: Any) -> Generator[ToolSpan]:
    """The span of one call of a tool."""
    trace = _tracing()
    if trace is None:
        yield ToolSpan(None)
        return
    attributes = {
        "gen_ai.operation.name": "execute_tool",
        "gen_ai.tool.name": tool,
        "gen_ai.tool.call.id": call,
        "gen_ai.tool.type": "function",
    }
    if _stores_tools():
        attributes["gen_ai.tool.call.arguments"] = as_json(input)
    with (
        _open(trace, f"execute_tool {tool}", trace.SpanKind.INTERNAL, attributes) as span,
        _failures(made := ToolSpan(span)),
    ):
        yield made


def _tracing() -> Any:
    """OpenTelemetry's tracing, once somebody has set it up: nobody can have without importing it."""
    trace: Any = sys.modules.get("opentelemetry.trace")
    if trace is None or isinstance(trace.get_tracer_provider(), trace.ProxyTracerProvider):
        return None
    return trace


def _open(trace: Any, name: str, kind: Any, attributes: Mapping[str, Any]) -> Any:
    # An exception's text may quote what was said: only its type is told.
    return trace.get_tracer("perdure", __version__).start_as_current_span(
        name, kind=kind, attributes=attributes, record_exception=False, set_status_on_exception=False
    )


@contextmanager
def _failures(span: _Span) -> Generator[None]:
    try:
        yield
    except Exception as error:
        span.failed(type(error).__qualname__)
        raise


def _stores_tools() -> bool:
    scope = current_scope.get()
    return scope is not None and scope.store_tools
