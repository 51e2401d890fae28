"""Server tools in a turn: progress, time limits, files, odd names, and which source of tools wins."""

import asyncio
import base64
import threading
from collections.abc import AsyncGenerator
from typing import Any

import pytest

from perdure import Media, Think, Tool, ToolCallResult, ToolContext, TurnConfig, TurnContext, tool
from perdure.testing import Gate, ScriptedModel, call, say, strict_provider_errors
from tests.agent.calls import said, tool_parts
from tests.requirements import requirement
from tests.support import Serve, agent, chunks_of, offer, tool_result, user_message

pytestmark = pytest.mark.anyio


def outputs(chunks: list[dict[str, Any]]) -> list[tuple[Any, bool]]:
    """The outputs among chunks, each with whether it is preliminary."""
    return [(c["output"], c.get("preliminary", False)) for c in chunks if c["type"] == "tool-output-available"]


# ── progress ────────────────────────────────────────────────────────


async def counted() -> AsyncGenerator[Any, None]:
    yield 10
    yield 50
    yield "final"


async def awaited() -> AsyncGenerator[Any, None]:
    return counted()


def synchronous() -> Any:
    yield 10
    yield "final"


@requirement("engine:37", "fault:MQ-14")
@pytest.mark.parametrize(
    ("function", "shown"),
    [
        (counted, [(10, True), (50, True), ("final", True), ("final", False)]),
        (lambda: counted(), [(10, True), (50, True), ("final", True), ("final", False)]),
        (awaited, [("final", False)]),
        (synchronous, [("final", False)]),
        (lambda: "final", [("final", False)]),
    ],
    ids=["a generator", "a function that gives one", "one that is awaited", "a synchronous one", "a scalar"],
)
async def test_a_tool_that_yields_shows_its_progress_and_its_last_value_is_the_result(
    serve: Serve, function: Any, shown: list[tuple[Any, bool]]
) -> None:
    before: list[str] = []
    results: list[ToolCallResult] = []
    model = ScriptedModel([call("work", id="c1"), say("Done.")])
    server = await serve(
        agent(
            model,
            tool(name="work")(function),
            before_tool_call=lambda self, ctx: before.append(ctx.tool_name),
            after_tool_call=lambda self, result: results.append(result),
        )
    )
    tab = await server.tab()
    await tab.ask("r1", "Go")
    await tab.done("r1")
    assert outputs(chunks_of(tab.frames, "r1")) == shown
    (part,) = tool_parts((await server.stored())[1])
    assert (part["state"], part["output"], "preliminary" in part) == ("output-available", "final", False)
    assert before == ["work"]
    assert [(result.success, result.output) for result in results] == [(True, "final")]
    assert strict_provider_errors(model.requests[1]) == []


@requirement("fault:MQ-14")
async def test_stopping_closes_the_generator_and_its_progress_is_no_result(serve: Serve) -> None:
    started, closed = asyncio.Event(), asyncio.Event()

    @tool
    async def work() -> AsyncGenerator[int, None]:
        """Work."""
        try:
            yield 10
            started.set()
            await asyncio.Event().wait()
        finally:
            closed.set()

    model = ScriptedModel([call("work", id="c1"), say("Next.")])
    server = await serve(agent(model, work))
    tab = await server.tab()
    await tab.ask("r1", "Go")
    await started.wait()
    await tab.cancel("r1")
    assert (await tab.done("r1"))["outcome"] == "aborted"
    assert closed.is_set()
    (part,) = tool_parts((await server.stored())[1])
    assert part["state"] == "output-error"
    assert part["errorText"] == "The tool call was interrupted before a result was recorded."
    assert not {"output", "preliminary"} & set(part)
    await tab.ask("r2", *(await server.stored()), user_message("More"))
    assert (await tab.done("r2"))["outcome"] == "completed"
    assert strict_provider_errors(model.requests[1]) == []


async def test_a_generator_that_fails_after_its_progress_is_an_error(serve: Serve) -> None:
    @tool
    async def work() -> AsyncGenerator[int, None]:
        """Work."""
        yield 10
        raise LookupError("lost")

    model = ScriptedModel([call("work", id="c1"), say("Sorry.")])
    server = await serve(agent(model, work))
    tab = await server.tab()
    await tab.ask("r1", "Go")
    await tab.done("r1")
    (part,) = tool_parts((await server.stored())[1])
    assert (part["state"], part["errorText"], "output" in part) == ("output-error", "lost", False)


# ── time ────────────────────────────────────────────────────────────


async def test_a_call_that_takes_too_long_is_an_error_that_the_model_sees(serve: Serve) -> None:
    free, stopped = threading.Event(), asyncio.Event()

    @tool(timeout=0.05)
    async def slow() -> None:
        """Slow."""
        try:
            await asyncio.Event().wait()
        finally:
            stopped.set()

    def blocking(input: dict[str, Any]) -> None:
        free.wait(30)

    stuck = Tool("stuck", description="Stuck.", input_schema={}, execute=blocking, timeout=0.05)
    model = ScriptedModel([[call("slow"), call("stuck")], say("Too slow.")])
    server = await serve(agent(model, slow, stuck))
    tab = await server.tab()
    await tab.ask("r1", "Go")
    assert (await tab.done("r1"))["outcome"] == "completed"
    assert stopped.is_set()
    assert [part["errorText"] for part in tool_parts((await server.stored())[1])] == [
        "Tool slow took longer than 0.05 s and was stopped.",
        "Tool stuck took longer than 0.05 s and was stopped.",
    ]
    assert said(await server.stored())[1] == "Too slow."
    free.set()


# ── files ───────────────────────────────────────────────────────────

PNG = b"\x89PNG\r\n\x1a\n" + bytes(100_000)


async def test_a_picture_is_kept_whole_as_a_data_url(serve: Serve) -> None:
    @tool
    def shoot() -> dict[str, Any]:
        """Take a picture."""
        return {"picture": Media(PNG), "raw": b"\x00\x01", "thumb": PNG}

    url = "data:image/png;base64," + base64.b64encode(PNG).decode()
    model = ScriptedModel([call("shoot", id="c1"), say("Nice.")])
    server = await serve(agent(model, shoot))
    tab = await server.tab()
    await tab.ask("r1", "Go")
    await tab.done("r1")
    (part,) = tool_parts((await server.stored())[1])
    assert part["output"] == {"picture": url, "raw": "data:application/octet-stream;base64,AAE=", "thumb": url}


async def test_a_result_of_ten_megabytes_is_kept_whole(serve: Serve) -> None:
    big = "x" * 10_000_000

    @tool
    def dump() -> str:
        """Dump."""
        return big

    server = await serve(agent(ScriptedModel([call("dump"), say("Much.")]), dump))
    tab = await server.tab()
    await tab.ask("r1", "Go")
    assert (await tab.done("r1"))["outcome"] == "completed"
    assert tool_parts((await server.stored())[1])[0]["output"] == big


# ── names ───────────────────────────────────────────────────────────


async def test_the_model_knows_a_tool_by_a_safe_name_and_everybody_else_by_its_own(serve: Serve) -> None:
    ran: list[str] = []
    hooks: list[str] = []
    wanted = ["fs.read/file", "fs_read_file", "имя", "__proto__", "constructor", "x" * 70]

    def named(name: str) -> Tool:
        return Tool(name, description="", input_schema={}, execute=lambda input: ran.append(name))

    class Model(ScriptedModel):
        """Calls every tool that it is offered."""

        def stream(self, request: Any) -> Any:
            if not self.requests:
                self._steps[0] = [call(spec.name, id=f"c{n}") for n, spec in enumerate(request.tools)]
            return super().stream(request)

    model = Model([[], say("Done."), say("Again.")])
    server = await serve(
        agent(
            model,
            *(named(name) for name in wanted),
            before_turn=lambda self, ctx: hooks.extend(ctx.tools),
            after_tool_call=lambda self, result: hooks.append(result.tool_name),
        )
    )
    tab = await server.tab()
    await tab.ask("r1", "Go")
    await tab.done("r1")
    assert sorted(ran) == sorted(wanted)
    assert hooks[:6] == wanted
    assert sorted(hooks[6:]) == sorted(wanted)
    offered = model.requests[0].tools
    assert offered == ["fs_read_file_2", "fs_read_file", "tool", "__proto__", "constructor", "x" * 64]
    chunks = chunks_of(tab.frames, "r1")
    assert [c["toolName"] for c in chunks if c["type"] == "tool-input-start"] == wanted
    assert [c["toolName"] for c in chunks if c["type"] == "tool-input-available"] == wanted
    parts = tool_parts((await server.stored())[1])
    assert [part["type"] for part in parts] == [f"tool-{name}" for name in wanted]
    assert {part["state"] for part in parts} == {"output-available"}

    await tab.ask("r2", *(await server.stored()), user_message("More"))
    await tab.done("r2")
    for request in model.requests:
        assert strict_provider_errors(request) == []
    shown = [p["type"] for p in model.requests[2].messages[1]["parts"] if p["type"].startswith("tool-")]
    assert shown == [f"tool-{name}" for name in offered]


async def test_a_name_that_the_model_made_up_is_answered_under_the_names_that_it_knows(serve: Serve) -> None:
    @tool(name="fs.read")
    def read() -> str:
        """Read."""
        return "text"

    model = ScriptedModel([[call("no such tool!", id="c1")], say("Sorry.")])
    server = await serve(agent(model, read))
    tab = await server.tab()
    await tab.ask("r1", "Go")
    await tab.done("r1")
    (part,) = tool_parts((await server.stored())[1])
    assert part["type"] == "tool-no such tool!"
    assert part["errorText"].endswith("Available tools: fs_read.")
    assert strict_provider_errors(model.requests[1]) == []


async def test_a_choice_of_tools_is_told_to_the_model_by_the_names_that_it_knows(serve: Serve) -> None:
    named = Tool("fs.read", description="", input_schema={}, execute=lambda input: None)
    model = ScriptedModel([say("Ok.")])
    server = await serve(agent(model, named, before_turn=lambda self, ctx: TurnConfig(tool_choice=["fs.read"])))
    tab = await server.tab()
    await tab.ask("r1", "Go")
    await tab.done("r1")
    assert model.requests[0].settings == {"tool_choice": ["fs_read"]}


# ── sources ─────────────────────────────────────────────────────────

ORDER = [
    "workspace",
    "fetch",
    "get_tools",
    "extensions",
    "session",
    "skills",
    "MCP",
    "client",
    "before_turn",
]
"""Where a turn's tools come from. Of two with one name the later source's is called."""


def from_get_tools(kind: type[Think], made: Tool) -> None:
    kind.get_tools = lambda self: [made]


def from_before_turn(kind: type[Think], made: Tool) -> None:
    kind.before_turn = lambda self, ctx: TurnConfig(tools=[made])


def from_the_client(kind: type[Think], made: Tool) -> None:
    """The page sends it with its request."""


SOURCES = {"get_tools": from_get_tools, "client": from_the_client, "before_turn": from_before_turn}
"""How a source gives a tool to the agents of a class. Whoever builds a source adds it here."""

PAIRS = [(first, later) for n, first in enumerate(ORDER) for later in ORDER[n + 1 :] if {first, later} <= set(SOURCES)]


@requirement("engine:45")
@pytest.mark.parametrize(("first", "later"), PAIRS)
async def test_of_two_tools_with_one_name_that_of_the_later_source_is_called(
    serve: Serve, first: str, later: str
) -> None:
    model = ScriptedModel([[call("same", id="c1")], say("Done.")])
    kind = type("Agent", (Think,), {"model": model})
    for source in (later, first):
        SOURCES[source](kind, Tool("same", description=source, input_schema={}, execute=lambda _, s=source: s))
    server = await serve(kind)
    tab = await server.tab()
    await tab.ask("r1", "Go", **({"clientTools": offer("same")} if "client" in {first, later} else {}))
    await tab.done("r1")
    assert model.requests[0].tools == ["same"]
    if later == "client":
        await tab.send(tool_result("c1", "client"))
        await tab.seen(lambda frame: frame.get("continuation", False) and frame["done"])
    assert [part["output"] for part in tool_parts((await server.stored())[1])] == [later]


def test_every_source_that_there_is_has_its_place_in_the_order() -> None:
    assert set(SOURCES) <= set(ORDER)
    assert PAIRS


# ── what a tool is told ─────────────────────────────────────────────


async def test_a_tool_that_waits_does_not_hold_up_the_others_and_sees_its_own_call(serve: Serve) -> None:
    gate, contexts = Gate(), []

    @tool
    async def wait(ctx: ToolContext) -> str:
        """Wait."""
        contexts.append(ctx)
        await gate.passed()
        return "waited"

    @tool
    def quick() -> str:
        """Quick."""
        return "quick"

    def before(self: Think, ctx: TurnContext) -> None:
        assert list(ctx.tools) == ["wait", "quick"]

    model = ScriptedModel([[call("wait", id="c1"), call("quick", id="c2")], say("Done.")])
    server = await serve(agent(model, wait, quick, before_turn=before))
    tab = await server.tab()
    await tab.ask("r1", "Go")
    await gate.reached()
    await tab.seen(lambda frame: '"output":"quick"' in frame.get("body", ""))
    gate.open()
    await tab.done("r1")
    (context,) = contexts
    assert (type(context.agent).__name__, context.tool_call_id, context.turn_id) == ("Agent", "c1", "r1")
    assert [part["toolCallId"] for part in tool_parts(dict(context.messages[-1]))] == ["c1", "c2"]
    assert [part["output"] for part in tool_parts((await server.stored())[1])] == ["waited", "quick"]
