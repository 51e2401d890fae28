"""Spans, with the real OpenTelemetry SDK."""

import asyncio
import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from opentelemetry import trace
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import SpanKind, StatusCode

from perdure import App, Think, Usage, tool
from perdure.errors import ModelUnreachable
from perdure.observability.tracing import model_span
from perdure.testing import ScriptedModel, call, fail, finish, say, think
from tests.support import ErrorLog, serving_app

pytestmark = pytest.mark.anyio

SECRET = "correct horse battery staple"


@pytest.fixture(scope="module")
def provider() -> TracerProvider:
    made = TracerProvider()
    trace.set_tracer_provider(made)  # once in a process: that is the SDK's rule
    return made


@pytest.fixture
def exporter(provider: TracerProvider) -> Iterator[InMemorySpanExporter]:
    exporter = InMemorySpanExporter()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    yield exporter
    exporter.shutdown()


@tool
async def add(a: int, b: int) -> dict[str, int]:
    """Add two numbers."""
    with trace.get_tracer("mine").start_as_current_span("inside the tool"):
        await asyncio.sleep(0)
    return {"sum": a + b}


@tool
async def breaks() -> None:
    """Fails."""
    raise ValueError(SECRET)


async def turn(data: Path, *steps: Any, outcome: str = "completed", **fields: Any) -> None:
    kind = type(
        "Chat",
        (Think,),
        {
            "model": ScriptedModel(steps, name="openai:gpt-5.2"),
            "get_tools": lambda self: [add, breaks],
            "system_prompt": "You are " + SECRET,
            **fields,
        },
    )
    async with serving_app(App(kind, data=data)) as server:
        tab = await server.connect("/agents/chat/room")
        await tab.ask("r1", SECRET)
        assert (await tab.done("r1"))["outcome"] == outcome


def named(exporter: InMemorySpanExporter, name: str) -> ReadableSpan:
    (span,) = [span for span in exporter.get_finished_spans() if span.name == name]
    return span


async def test_a_turn_its_steps_and_its_calls_are_spans(tmp_path: Path, exporter: InMemorySpanExporter) -> None:
    usage = Usage(input_tokens=100, output_tokens=20, cached_tokens=64, reasoning_tokens=5)
    await turn(
        tmp_path,
        [call("add", {"a": 1, "b": 2}, id="c1"), finish("tool-calls", usage)],
        [say("Three."), finish("stop", Usage(input_tokens=130, output_tokens=3))],
    )
    spans = exporter.get_finished_spans()
    assert sorted(span.name for span in spans) == [
        "chat gpt-5.2",
        "chat gpt-5.2",
        "execute_tool add",
        "inside the tool",
        "invoke_agent Chat",
    ]
    root = named(exporter, "invoke_agent Chat")
    assert root.parent is None
    assert dict(root.attributes or {}) == {
        "gen_ai.operation.name": "invoke_agent",
        "gen_ai.agent.name": "Chat",
        "gen_ai.conversation.id": "chat/room",
        "perdure.turn.id": "r1",
        "perdure.turn.trigger": "ws-chat",
        "perdure.turn.outcome": "completed",
    }
    assert root.status.status_code is StatusCode.UNSET
    first, second = sorted((span for span in spans if span.name.startswith("chat ")), key=lambda s: s.start_time or 0)
    tool_call = named(exporter, "execute_tool add")
    inside = named(exporter, "inside the tool")
    for span in (first, second, tool_call):
        assert span.parent is not None
        assert span.parent.span_id == root.context.span_id
    assert inside.parent is not None
    assert inside.parent.span_id == tool_call.context.span_id, "what the application traces belongs to its call"
    assert dict(first.attributes or {}) == {
        "gen_ai.operation.name": "chat",
        "gen_ai.provider.name": "openai",
        "gen_ai.request.model": "gpt-5.2",
        "gen_ai.response.finish_reasons": ("tool-calls",),
        "gen_ai.usage.input_tokens": 100,
        "gen_ai.usage.output_tokens": 20,
        "gen_ai.usage.cache_read.input_tokens": 64,
        "gen_ai.usage.reasoning.output_tokens": 5,
    }
    assert (second.attributes or {})["gen_ai.response.finish_reasons"] == ("stop",)
    assert (second.attributes or {})["gen_ai.usage.input_tokens"] == 130
    assert first.kind is SpanKind.CLIENT
    assert dict(tool_call.attributes or {}) == {
        "gen_ai.operation.name": "execute_tool",
        "gen_ai.tool.name": "add",
        "gen_ai.tool.call.id": "c1",
        "gen_ai.tool.type": "function",
    }


async def test_nothing_that_was_said_is_in_a_span_unless_the_class_allows_it(
    tmp_path: Path, exporter: InMemorySpanExporter, log: ErrorLog
) -> None:
    await turn(
        tmp_path,
        [call("breaks"), call("add", {"a": 1, "b": 2})],
        [say(SECRET), fail(ModelUnreachable(SECRET))],
        outcome="error",
    )
    spans = exporter.get_finished_spans()
    assert len(spans) == 6
    assert SECRET not in "".join(span.to_json() for span in spans)


async def test_messages_are_in_spans_when_the_class_allows_it(tmp_path: Path, exporter: InMemorySpanExporter) -> None:
    await turn(tmp_path, [think("Hm."), call("add", {"a": 1, "b": 2}, id="c1")], [say("Three.")], store_messages=True)
    first, second = [span.attributes or {} for span in exporter.get_finished_spans() if span.name.startswith("chat ")]
    said = json.loads(str(first["gen_ai.system_instructions"]))
    assert said == [{"type": "text", "content": "You are " + SECRET}]
    question = {"role": "user", "parts": [{"type": "text", "content": SECRET}]}
    assert json.loads(str(first["gen_ai.input.messages"])) == [question]
    called = {"type": "tool_call", "id": "c1", "name": "add", "arguments": {"a": 1, "b": 2}}
    assert json.loads(str(first["gen_ai.output.messages"])) == [
        {"role": "assistant", "parts": [{"type": "reasoning", "content": "Hm."}, called]}
    ]
    answered = {"type": "tool_call_response", "id": "c1", "response": {"sum": 3}}
    shown = json.loads(str(second["gen_ai.input.messages"]))
    assert shown[1]["parts"][-2:] == [called, answered]
    assert json.loads(str(second["gen_ai.output.messages"])) == [
        {"role": "assistant", "parts": [{"type": "text", "content": "Three."}]}
    ]
    assert "gen_ai.tool.call.arguments" not in (named(exporter, "execute_tool add").attributes or {})


async def test_tools_are_in_spans_when_the_class_allows_it(tmp_path: Path, exporter: InMemorySpanExporter) -> None:
    await turn(tmp_path, [call("add", {"a": 1, "b": 2})], [say("Three.")], store_tools=True)
    attributes = named(exporter, "execute_tool add").attributes or {}
    assert json.loads(str(attributes["gen_ai.tool.call.arguments"])) == {"a": 1, "b": 2}
    assert json.loads(str(attributes["gen_ai.tool.call.result"])) == {"sum": 3}
    for span in exporter.get_finished_spans():
        assert "gen_ai.input.messages" not in (span.attributes or {})


async def test_failures_are_marked_by_their_kind(tmp_path: Path, exporter: InMemorySpanExporter) -> None:
    await turn(tmp_path, [call("breaks")], [fail(ModelUnreachable("x"))], outcome="error")
    failed = {
        span.name: (span.attributes or {}).get("error.type")
        for span in exporter.get_finished_spans()
        if span.status.status_code is StatusCode.ERROR
    }
    assert failed == {
        "execute_tool breaks": "ValueError",
        "chat gpt-5.2": "ModelUnreachable",
        "invoke_agent Chat": "turn_failed",
    }


async def test_a_stopped_turn_is_no_error(tmp_path: Path, exporter: InMemorySpanExporter) -> None:
    @tool
    async def forever() -> None:
        """Never returns."""
        await asyncio.Event().wait()

    kind = type("Chat", (Think,), {"model": ScriptedModel([[call("forever")]]), "get_tools": lambda self: [forever]})
    async with serving_app(App(kind, data=tmp_path)) as server:
        tab = await server.connect("/agents/chat/room")
        await tab.ask("r1", "Go")
        await tab.seen(lambda frame: '"tool-input-available"' in frame.get("body", ""))
        await tab.cancel("r1")
        assert (await tab.done("r1"))["outcome"] == "aborted"
    assert (named(exporter, "invoke_agent Chat").attributes or {})["perdure.turn.outcome"] == "aborted"
    assert {span.status.status_code for span in exporter.get_finished_spans()} == {StatusCode.UNSET}


async def test_a_turn_is_the_root_of_its_own_trace_and_points_at_the_request(
    tmp_path: Path, exporter: InMemorySpanExporter
) -> None:
    kind = type("Chat", (Think,), {"model": ScriptedModel([[say("Hi.")]])})
    app = App(kind, data=tmp_path)

    async def instrumented(scope: Any, receive: Any, send: Any) -> None:
        with trace.get_tracer("server").start_as_current_span("the connection"):
            await app(scope, receive, send)

    async with serving_app(instrumented) as server:
        tab = await server.connect("/agents/chat/room")
        await tab.ask("r1", "Go")
        await tab.done("r1")
    root = named(exporter, "invoke_agent Chat")
    connection = next(span for span in exporter.get_finished_spans() if span.name == "the connection")
    assert root.parent is None
    assert root.context.trace_id != connection.context.trace_id
    assert [link.context.trace_id for link in root.links] == [
        span.context.trace_id
        for span in exporter.get_finished_spans()
        if span.name == "the connection" and span.context.span_id == root.links[0].context.span_id
    ]


async def test_call_settings_are_attributes(exporter: InMemorySpanExporter) -> None:
    settings = {"temperature": 0.5, "max_tokens": 100, "stop_sequences": ["END"], "tool_choice": "auto", "seed": None}
    with model_span("demo", settings):
        pass
    assert dict(named(exporter, "chat demo").attributes or {}) == {
        "gen_ai.operation.name": "chat",
        "gen_ai.provider.name": "demo",
        "gen_ai.request.model": "demo",
        "gen_ai.request.temperature": 0.5,
        "gen_ai.request.max_tokens": 100,
        "gen_ai.request.stop_sequences": ("END",),
    }


def test_nothing_of_opentelemetry_is_imported_for_those_who_do_not_use_it() -> None:
    script = (
        "import sys, perdure\n"
        "from perdure.observability.tracing import model_span, tool_span, turn_span\n"
        "with turn_span('x') as a, model_span('m') as b, tool_span('t', 'c', {}) as c:\n"
        "    a.ended('error'); b.failed('x'); c.returned(1)\n"
        "    assert not b.keeps_messages\n"
        "assert not [name for name in sys.modules if name.startswith('opentelemetry')], 'imported'\n"
    )
    subprocess.run([sys.executable, "-W", "error", "-c", script], check=True, timeout=30)
