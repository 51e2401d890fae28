"""Client tools that the caller of ``chat()`` brings along: for one turn, run by the caller, stored nowhere."""

import asyncio
import logging
import threading
from pathlib import Path
from typing import Any

import pytest
from pydantic import BaseModel

from perdure import (
    AgentStopped,
    ChatCallbacks,
    ClientToolCall,
    ConfigurationError,
    ToolContext,
    TurnFailed,
    TurnResult,
    client_tool,
    tool,
)
from perdure.testing import Gate, ScriptedModel, call, say
from tests.agent.asking import CHILD, Child, Parent, scripted
from tests.agent.calls import said
from tests.agent.deciding import approval, check_prompts, continued, nothing_comes, part_of, remover, result
from tests.requirements import requirement
from tests.support import ErrorLog, Serving, chunks_of, do, serving, user_message

pytestmark = pytest.mark.anyio

TZ = {"name": "timezone", "description": "The caller's time zone.", "parameters": {"type": "object"}}


class Heard(ChatCallbacks):
    """Writes down what it is told."""

    def __init__(self) -> None:
        self.chunks: list[dict[str, Any]] = []
        self.ends: list[str] = []

    def on_event(self, chunk: dict[str, Any]) -> None:
        self.chunks.append(chunk)

    def on_done(self) -> None:
        self.ends.append("done")

    def on_error(self, error: str) -> None:
        self.ends.append(error)

    def on_interrupted(self) -> None:
        self.ends.append("interrupted")

    @property
    def types(self) -> list[str]:
        return [chunk["type"] for chunk in self.chunks]


class Scene:
    """A parent that asks its child, whose model plays a script."""

    def __init__(self, data: Path, *steps: Any, tools: Any = (), **members: Any) -> None:
        self.model = ScriptedModel(steps)
        self.child = scripted(Child, get_tools=lambda self: list(tools), **members)
        self.child.model = self.model
        self.data = data
        self.heard = Heard()

    def serving(self) -> Any:
        return serving(Parent, data=self.data, sub_agents=[self.child])

    async def chat(self, server: Serving, message: Any = "What time is it?", **options: Any) -> TurnResult:
        """The child is asked by its parent."""

        async def ask(parent: Any) -> TurnResult:
            return await (await parent.sub_agent(self.child, "c")).chat(message, self.heard, **options)

        return await do(await server.tab("p", agent="parent"), ask)

    async def part(self, server: Serving, call: str = "c1") -> dict[str, Any]:
        return part_of(await server.stored(CHILD, agent="parent"), call)


def timezone(id: str = "c1", **input: Any) -> Any:
    return call("timezone", input, id=id)


# ── the round trip ──────────────────────────────────────────────────


@requirement("fault:SA-01", "engine:93")
@pytest.mark.parametrize("form", ["dict", "client_tool"])
@pytest.mark.parametrize("kind", ["async", "sync"])
async def test_a_call_makes_its_round_trip_within_one_chat(tmp_path: Path, form: str, kind: str) -> None:
    calls: list[ClientToolCall] = []
    threads: list[bool] = []

    async def execute(call: ClientToolCall) -> Any:
        return run(call)

    def run(call: ClientToolCall) -> Any:
        calls.append(call)
        threads.append(threading.current_thread() is threading.main_thread())
        return {"zone": "UTC"}

    scene = Scene(tmp_path, [say("Let me see. "), timezone(precise=True)], say("It is five."))
    given = TZ if form == "dict" else client_tool("timezone", "The caller's time zone.")
    async with scene.serving() as server:
        page = await server.tab(CHILD, agent="parent")
        answer = await scene.chat(server, client_tools=[given], on_client_tool_call=execute if kind == "async" else run)
        assert (answer.status, answer.text) == ("completed", "Let me see. It is five.")
        assert calls == [ClientToolCall(tool_name="timezone", input={"precise": True}, tool_call_id="c1")]
        assert threads == [kind == "async"], "what may block runs in a thread"
        types = scene.heard.types
        order = [types.index(each) for each in ("tool-input-available", "tool-output-available")]
        assert order == sorted(order)
        assert types[-1] == "finish"
        assert scene.heard.ends == ["done"]
        await page.done(answer.request_id)
        assert chunks_of(page.frames, answer.request_id) == scene.heard.chunks
        part = await scene.part(server)
        assert (part["state"], part["output"]) == ("output-available", {"zone": "UTC"})
    assert scene.model.requests[0].tools == ["timezone"]
    assert part_of(scene.model.requests[1].messages, "c1")["output"] == {"zone": "UTC"}
    check_prompts(scene.model.requests)
    scene.model.assert_done()


@requirement("fault:SA-08", "engine:93")
async def test_several_calls_side_by_side_and_over_steps_each_get_their_own_result(tmp_path: Path) -> None:
    gates = {"c1": Gate(), "c2": Gate(), "c3": Gate()}
    finished: list[str] = []

    async def execute(call: ClientToolCall) -> str:
        if call.tool_call_id == "c1":
            await gates["c2"].passed()
        finished.append(call.tool_call_id)
        gates[call.tool_call_id].open()
        return f"{call.input['city']} by {call.tool_call_id}"

    steps = [[timezone("c1", city="Oslo"), timezone("c2", city="Rome")], timezone("c3", city="Nice"), say("Done.")]
    scene = Scene(tmp_path, *steps)
    async with scene.serving() as server:
        answer = await scene.chat(server, client_tools=[TZ], on_client_tool_call=execute)
        assert answer.status == "completed"
        assert finished == ["c2", "c1", "c3"]
        outputs = [(await scene.part(server, each))["output"] for each in ("c1", "c2", "c3")]
        assert outputs == ["Oslo by c1", "Rome by c2", "Nice by c3"]
    check_prompts(scene.model.requests)
    scene.model.assert_done()


async def test_stream_takes_client_tools_as_well(tmp_path: Path) -> None:
    scene = Scene(tmp_path, timezone(), say("It is five."))

    async def listen(parent: Any) -> list[Any]:
        asked = await parent.sub_agent(scene.child, "c")
        chunks = asked.stream("Time?", client_tools=[TZ], on_client_tool_call=lambda call: "UTC")
        return [chunk async for chunk in chunks]

    async with scene.serving() as server:
        chunks = await do(await server.tab("p", agent="parent"), listen)
    assert [chunk["output"] for chunk in chunks if chunk["type"] == "tool-output-available"] == ["UTC"]
    scene.model.assert_done()


async def test_an_agent_may_ask_itself_with_client_tools(tmp_path: Path) -> None:
    scene = Scene(tmp_path, timezone(), say("It is five."))
    async with serving(scene.child, data=tmp_path) as server:
        tab = await server.tab(agent="child")
        answer = await do(
            tab,
            lambda agent: agent.chat("Time?", client_tools=[TZ], on_client_tool_call=lambda call: "UTC"),
        )
        assert answer.text == "It is five."


class City(BaseModel):
    city: str
    country: str = "Norway"


@pytest.mark.parametrize("bad", [{}, {"city": 5}])
async def test_arguments_that_do_not_fit_are_the_models_mistake_and_the_caller_is_not_called(
    tmp_path: Path, bad: dict[str, Any]
) -> None:
    calls: list[Any] = []

    def execute(call: ClientToolCall) -> str:
        calls.append(call.input)
        return "UTC"

    scene = Scene(tmp_path, timezone("c1", **bad), timezone("c2", city="Oslo"), say("Done."))
    async with scene.serving() as server:
        tools = [client_tool("timezone", schema=City)]
        assert (await scene.chat(server, client_tools=tools, on_client_tool_call=execute)).status == "completed"
        part = await scene.part(server)
        assert part["state"] == "output-error"
        assert "city" in part["errorText"]
    assert calls == [{"city": "Oslo"}]
    check_prompts(scene.model.requests)


# ── executors that fail ─────────────────────────────────────────────


async def raises_later(call: ClientToolCall) -> Any:
    await asyncio.sleep(0)
    raise RuntimeError("no net")


def raises(call: ClientToolCall) -> Any:
    raise RuntimeError("no net")


async def times_out(call: ClientToolCall) -> Any:
    async with asyncio.timeout(0):
        await asyncio.Event().wait()


async def is_cancelled(call: ClientToolCall) -> Any:
    task = asyncio.ensure_future(asyncio.Event().wait())
    task.cancel()
    await task


@requirement("fault:SA-03", "engine:93")
@pytest.mark.parametrize(
    ("execute", "text"),
    [(raises, "no net"), (raises_later, "no net"), (times_out, "TimeoutError"), (is_cancelled, "CancelledError")],
    ids=["at once", "later", "by a timeout", "by a cancellation of its own"],
)
async def test_an_executor_that_raises_is_the_calls_error_and_the_turn_goes_on(
    tmp_path: Path, execute: Any, text: str
) -> None:
    scene = Scene(tmp_path, timezone(), say("Sorry."))
    async with scene.serving() as server:
        answer = await scene.chat(server, client_tools=[TZ], on_client_tool_call=execute)
        assert (answer.status, answer.text, scene.heard.ends) == ("completed", "Sorry.", ["done"])
        part = await scene.part(server)
        assert (part["state"], part["errorText"]) == ("output-error", text)
    assert part_of(scene.model.requests[1].messages, "c1")["errorText"] == text
    check_prompts(scene.model.requests)
    scene.model.assert_done()


@pytest.mark.parametrize("value", [object(), {"when": object()}, float("nan")], ids=["object", "inside", "nan"])
async def test_a_result_that_is_no_json_is_an_error_that_says_so(tmp_path: Path, value: Any) -> None:
    scene = Scene(tmp_path, timezone(), say("Sorry."))
    async with scene.serving() as server:
        answer = await scene.chat(server, client_tools=[TZ], on_client_tool_call=lambda call: value)
        assert answer.status == "completed"
        part = await scene.part(server)
    if isinstance(value, float):
        assert (part["state"], part["output"]) == ("output-available", None), "as everywhere in JSON"
    else:
        assert part["state"] == "output-error"
        assert "timezone" in part["errorText"]
        assert "JSON" in part["errorText"]
    check_prompts(scene.model.requests)


@pytest.mark.parametrize("value", [None, "", 0, [], {"a": [1, {"b": None}]}, "é\ud83d"])
async def test_any_json_value_is_a_result_and_is_not_shared_with_the_caller(tmp_path: Path, value: Any) -> None:
    scene = Scene(tmp_path, timezone(), say("Done."))

    def execute(call: ClientToolCall) -> Any:
        call.input["changed"] = True
        return value

    async with scene.serving() as server:
        await scene.chat(server, client_tools=[TZ], on_client_tool_call=execute)
        part = await scene.part(server)
        assert part["input"] == {}
        assert part["output"] == (value if value != "é\ud83d" else "é\ufffd")


# ── no gate, and whose name counts ──────────────────────────────────


@requirement("fault:SA-07", "engine:45")
async def test_a_client_tool_takes_the_place_of_a_gated_server_tool_and_is_not_asked_about(tmp_path: Path) -> None:
    ran: list[Any] = []
    steps = [call("pay", {"path": "5"}, id="c1"), call("remove", {"path": "x"}, id="c2")]
    scene = Scene(tmp_path, steps, say("Done."), tools=[remover(ran, name="pay"), remover(ran)])
    async with scene.serving() as server:
        page = await server.tab(CHILD, agent="parent")
        answer = await scene.chat(
            server, client_tools=[{"name": "pay"}], on_client_tool_call=lambda call: "paid by the caller"
        )
        assert answer.status == "completed"
        paid, removal = await scene.part(server, "c1"), await scene.part(server, "c2")
        assert (paid["state"], paid["output"], "approval" in paid) == ("output-available", "paid by the caller", False)
        assert removal["state"] == "approval-requested"
        assert scene.heard.types.count("tool-approval-request") == 1
        assert ran == []
        await page.send(approval("c2"))
        await continued(page)
        assert ran == ["x"]
    check_prompts(scene.model.requests)
    scene.model.assert_done()


@requirement("fault:SA-07")
@pytest.mark.parametrize("with_executor", [True, False])
async def test_a_client_tool_that_wants_approval_is_not_asked_about_in_a_chat(
    tmp_path: Path, with_executor: bool
) -> None:
    scene = Scene(tmp_path, timezone(), say("Done."))
    async with scene.serving() as server:
        tools = [client_tool("timezone", needs_approval=True)]
        answer = await scene.chat(
            server, client_tools=tools, on_client_tool_call=(lambda call: "UTC") if with_executor else None
        )
        assert answer.status == "completed"
        part = await scene.part(server)
        assert part["state"] == ("output-available" if with_executor else "input-available")
        assert "tool-approval-request" not in scene.heard.types


@requirement("engine:45", "engine:94")
async def test_the_tools_of_a_chat_are_there_for_that_turn_only(tmp_path: Path) -> None:
    @tool(name="timezone")
    def own() -> str:
        """Own."""
        return "CET"

    steps = [timezone("c1"), say("1"), timezone("c2"), say("2"), timezone("c3"), say("3")]
    scene = Scene(tmp_path, *steps, tools=[own])
    async with scene.serving() as server:
        await scene.chat(server, client_tools=[TZ, {"name": "clip"}], on_client_tool_call=lambda call: "UTC")
        await scene.chat(server)
        page = await server.tab(CHILD, agent="parent")
        await page.ask("r1", *(await server.stored(CHILD, agent="parent")), user_message("And now?"))
        await page.done("r1")
        outputs = [(await scene.part(server, each))["output"] for each in ("c1", "c2", "c3")]
    assert outputs == ["UTC", "CET", "CET"]
    tools = [sorted(request.tools) for request in scene.model.requests]
    assert tools == [["clip", "timezone"]] * 2 + [["timezone"]] * 4


async def test_of_two_client_tools_with_one_name_the_later_counts_with_a_warning(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    scene = Scene(tmp_path, timezone(city="Oslo"), say("Done."))
    first = {"name": "timezone", "parameters": {"type": "object", "properties": {"city": {"type": "integer"}}}}
    async with scene.serving() as server:
        with caplog.at_level(logging.WARNING):
            answer = await scene.chat(
                server,
                client_tools=[first, client_tool("timezone", schema=City)],
                on_client_tool_call=lambda call: call.input["city"],
            )
        assert answer.status == "completed"
        assert (await scene.part(server))["output"] == "Oslo"
    assert "two client tools named timezone: the later one counts" in caplog.text
    assert scene.model.requests[0].tools == ["timezone"]


# ── definitions that cannot be used ─────────────────────────────────


@tool
async def on_the_server() -> None:
    """Runs on the server."""


async def with_context(context: ToolContext) -> None:
    """No tool."""


BAD: dict[str, Any] = {
    "a server tool": [on_the_server],
    "no name": [{"description": "x"}],
    "an empty name": [{"name": ""}],
    "a name that is no text": [{"name": 5}],
    "a function": [with_context],
    "a text": ["timezone"],
    "no JSON": [{"name": "x", "parameters": {"type": object()}}],
    "parameters that are no object": [{"name": "x", "parameters": []}],
    "a schema of a list": [{"name": "x", "parameters": {"type": "array"}}],
    "no schema": [{"name": "x", "parameters": {"type": "nonsense"}}],
    "no schema in a client_tool": [client_tool("x", schema={"type": "nonsense"})],
    "a dict instead of a list": {"timezone": TZ},
    "one tool instead of a list": TZ,
    "a name instead of a list": "timezone",
    "no list": 5,
}


@pytest.mark.parametrize("bad", BAD.values(), ids=BAD.keys())
async def test_a_definition_that_cannot_be_used_is_refused_before_anything_happens(tmp_path: Path, bad: Any) -> None:
    scene = Scene(tmp_path)
    async with scene.serving() as server:
        with pytest.raises(ConfigurationError, match=r"client_tools|client tool|schema|Schema"):
            await scene.chat(server, client_tools=bad, on_client_tool_call=lambda call: None)
        assert await server.stored(CHILD, agent="parent") == []
        with pytest.raises(ConfigurationError, match="on_client_tool_call is 'UTC'"):
            await scene.chat(server, client_tools=[TZ], on_client_tool_call="UTC")
    assert scene.heard.ends == []


# ── without an executor ─────────────────────────────────────────────


@requirement("fault:SA-02", "engine:95")
async def test_without_an_executor_the_call_is_left_open_and_nobody_is_waited_for(tmp_path: Path) -> None:
    scene = Scene(tmp_path, [say("Let me see."), timezone()], say("Never mind."))
    async with scene.serving() as server:
        page = await server.tab(CHILD, agent="parent")
        await page.opened()
        answer = await scene.chat(server, client_tools=[TZ])
        assert (answer.status, scene.heard.ends) == ("completed", ["done"])
        assert part_of([answer.message], "c1")["state"] == "input-available"
        assert (await scene.part(server))["state"] == "input-available"
        assert [c["toolCallId"] for c in scene.heard.chunks if c["type"] == "tool-input-available"] == ["c1"]
        before = await server.stored(CHILD, agent="parent")
        for answered in (result("c1", "UTC"), approval("c1"), approval("c1", approved=False)):
            await page.send(answered)
        await nothing_comes(page)
        assert await server.stored(CHILD, agent="parent") == before

        async def pending(parent: Any) -> Any:
            return await (await parent.sub_agent(scene.child, "c")).pending_approvals()

        assert await do(await server.tab("p", agent="parent"), pending) == []
        assert (await scene.chat(server, "Well?")).text == "Never mind."
        part = await scene.part(server)
        assert (part["state"], part["errorText"]) == (
            "output-error",
            "The tool call was interrupted before a result was recorded.",
        )
    check_prompts(scene.model.requests)
    scene.model.assert_done()


@requirement("fault:SA-02")
async def test_a_call_without_an_executor_holds_up_no_decision_beside_it(tmp_path: Path) -> None:
    ran: list[Any] = []
    scene = Scene(tmp_path, [timezone(), call("remove", {"path": "x"}, id="c2")], say("Gone."), tools=[remover(ran)])
    async with scene.serving() as server:
        page = await server.tab(CHILD, agent="parent")
        await scene.chat(server, client_tools=[TZ])
        await page.send(approval("c2"))
        await continued(page)
        assert ran == ["x"]
        assert (await scene.part(server))["state"] == "output-error"
    check_prompts(scene.model.requests)
    scene.model.assert_done()


async def test_a_chat_without_client_tools_has_those_of_the_page_and_waits_for_it(tmp_path: Path) -> None:
    scene = Scene(tmp_path, say("Hello."), timezone(), say("It is five."))
    async with scene.serving() as server:
        page = await server.tab(CHILD, agent="parent")
        await page.ask("r1", "Hello", clientTools=[TZ])
        await page.done("r1")
        answer = await scene.chat(server)
        assert part_of([answer.message], "c1")["state"] == "input-available"
        await page.send(result("c1", "UTC"))
        await continued(page)
        assert (await scene.part(server))["output"] == "UTC"
    scene.model.assert_done()


# ── stopped while the executor runs ─────────────────────────────────


@requirement("fault:SA-06")
@pytest.mark.parametrize("how", ["signal", "page", "cancel_chat"])
@pytest.mark.parametrize("kind", ["async", "sync"])
async def test_stopping_waits_for_the_executor_records_its_result_and_asks_no_more(
    tmp_path: Path, how: str, kind: str
) -> None:
    began, stopped = asyncio.Event(), asyncio.Event()
    loop = asyncio.get_running_loop()
    go_on = threading.Event()
    finished: list[bool] = []

    async def execute(call: ClientToolCall) -> str:
        began.set()
        try:
            await asyncio.to_thread(go_on.wait)
        except asyncio.CancelledError:
            finished.append(False)
            raise
        finished.append(True)
        return "UTC"

    def run(call: ClientToolCall) -> str:
        loop.call_soon_threadsafe(began.set)
        go_on.wait()
        finished.append(True)
        return "UTC"

    scene = Scene(tmp_path, timezone(), say("Next."))
    settled: list[TurnResult] = []
    async with scene.serving() as server:
        page = await server.tab(CHILD, agent="parent")
        await page.opened()
        executor = execute if kind == "async" else run
        asking = asyncio.create_task(
            scene.chat(server, signal=stopped, client_tools=[TZ], on_client_tool_call=executor)
        )
        asking.add_done_callback(lambda task: settled.append(task.result()))
        await began.wait()
        request = (await page.seen(lambda f: "tool-input-available" in f.get("body", "")))["id"]
        if how == "signal":
            stopped.set()
        elif how == "page":
            await page.cancel(request)
        else:

            async def cancel(parent: Any) -> None:
                await (await parent.sub_agent(scene.child, "c")).cancel_chat(request)

            await do(await server.tab("p", agent="parent"), cancel)
        await page.settle()
        assert (finished, settled) == ([], []), "the turn ends after the call, which nobody cancels"
        go_on.set()
        answer = await asking
        assert finished == [True]
        assert (answer.status, answer.message) == ("aborted", None)
        assert (await page.done(request))["outcome"] == "aborted"
        part = await scene.part(server)
        assert (part["state"], part["output"]) == ("output-available", "UTC")
        assert scene.heard.ends == []
        assert len(scene.model.requests) == 1
        await page.ask("r2", *(await server.stored(CHILD, agent="parent")), user_message("Next"))
        assert (await page.done("r2"))["outcome"] == "completed"
    check_prompts(scene.model.requests)
    scene.model.assert_done()


async def test_an_executor_that_fails_after_the_stop_is_recorded_as_an_error(tmp_path: Path) -> None:
    began, go_on, stopped = asyncio.Event(), asyncio.Event(), asyncio.Event()

    async def execute(call: ClientToolCall) -> str:
        began.set()
        await go_on.wait()
        raise RuntimeError("too late")

    scene = Scene(tmp_path, timezone())
    async with scene.serving() as server:
        asking = asyncio.create_task(scene.chat(server, signal=stopped, client_tools=[TZ], on_client_tool_call=execute))
        await began.wait()
        stopped.set()
        go_on.set()
        assert (await asking).status == "aborted"
        part = await scene.part(server)
        assert (part["state"], part["errorText"]) == ("output-error", "too late")


async def test_stopping_cancels_the_servers_tools_beside_it(tmp_path: Path) -> None:
    began, go_on, stopped = asyncio.Event(), asyncio.Event(), asyncio.Event()
    cancelled: list[bool] = []

    @tool
    async def own() -> None:
        """Own."""
        try:
            await asyncio.Event().wait()
        finally:
            cancelled.append(True)

    async def execute(call: ClientToolCall) -> str:
        began.set()
        await go_on.wait()
        return "UTC"

    scene = Scene(tmp_path, [call("own", id="c2"), timezone()], tools=[own])
    async with scene.serving() as server:
        asking = asyncio.create_task(scene.chat(server, signal=stopped, client_tools=[TZ], on_client_tool_call=execute))
        await began.wait()
        stopped.set()
        go_on.set()
        assert (await asking).status == "aborted"
        assert cancelled == [True]
        assert (await scene.part(server, "c1"))["output"] == "UTC"
        assert (await scene.part(server, "c2"))["state"] == "output-error"


# ── gone while the executor runs ────────────────────────────────────


@requirement("engine:94")
@pytest.mark.parametrize("how", ["the server ends", "the child is dropped"])
async def test_a_call_that_the_end_cut_off_is_an_orphan_and_nobody_is_waited_for(tmp_path: Path, how: str) -> None:
    began = asyncio.Event()
    outcome: list[Any] = []

    async def execute(call: ClientToolCall) -> str:
        began.set()
        await asyncio.Event().wait()
        raise AssertionError("never")

    scene = Scene(tmp_path, timezone(), say("Let us see again."), timezone("c2"), say("It is five."))

    async def ask(parent: Any) -> None:
        asked = await parent.sub_agent(scene.child, "c")
        try:
            outcome.append(await asked.chat("Time?", client_tools=[TZ], on_client_tool_call=execute))
        except AgentStopped as error:
            outcome.append(error)
        except asyncio.CancelledError:
            outcome.append("cancelled")
            raise

    async with scene.serving() as server:
        above = await server.tab("p", agent="parent")
        asking = asyncio.create_task(do(above, ask))
        await began.wait()
        if how == "the child is dropped":
            tab = await server.tab("p", agent="parent")
            await do(tab, lambda parent: parent.abort_sub_agent(scene.child, "c"))
            await asking
            assert isinstance(outcome[0], TurnResult | AgentStopped)
        else:
            asking.cancel()
            await server.stop()
    async with scene.serving() as server:
        page = await server.tab(CHILD, agent="parent")
        part = await scene.part(server)
        assert (part["state"], part["errorText"]) == (
            "output-error",
            "The tool call was interrupted before a result was recorded.",
        )

        async def pending(parent: Any) -> Any:
            return await (await parent.sub_agent(scene.child, "c")).pending_approvals()

        assert await do(await server.tab("p", agent="parent"), pending) == []
        await page.send(result("c1", "UTC"))
        await page.ask("r1", *(await server.stored(CHILD, agent="parent")), user_message("Go on"))
        await page.done("r1")
        assert (await scene.part(server)) == part
        again = await scene.chat(server, client_tools=[TZ], on_client_tool_call=lambda call: "UTC")
        assert again.text == "It is five."
        assert said(await server.stored(CHILD, agent="parent"))[-1] == "It is five."
    assert [request.tools for request in scene.model.requests] == [["timezone"], [], ["timezone"], ["timezone"]]
    check_prompts(scene.model.requests)
    scene.model.assert_done()


async def test_a_turn_that_fails_after_the_call_keeps_its_result(tmp_path: Path, log: ErrorLog) -> None:
    def broken(self: Any, result: Any) -> None:
        raise RuntimeError("the hook fails")

    scene = Scene(tmp_path, timezone(), after_tool_call=broken)

    async def ask(parent: Any) -> None:
        asked = await parent.sub_agent(scene.child, "c")
        with pytest.raises(TurnFailed):
            await asked.chat("Time?", client_tools=[TZ], on_client_tool_call=lambda call: "UTC")

    async with scene.serving() as server:
        await do(await server.tab("p", agent="parent"), ask)
        assert (await scene.part(server))["output"] == "UTC"
    log.expect("the hook fails")
