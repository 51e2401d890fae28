"""What message concurrency leaves alone, and what a class can say."""

import asyncio
import json
from typing import Any

import pytest

from perdure import App, ChatResponse, ConfigurationError, Debounce, Think, TurnContext, callable, tool
from perdure.testing import Gate, ScriptedModel, call, pause, say
from tests.agent.calls import call_of
from tests.requirements import requirement
from tests.server.overlapping import ask_all, said, shown, slow
from tests.support import ErrorLog, Serve, agent, chat_request, text_of, user_message
from tests.support.tabs import chunks_of

pytestmark = pytest.mark.anyio


# ── what the strategies leave alone ─────────────────────────────────


@requirement("engine:101")
async def test_another_answer_is_never_dropped_and_takes_nobodys_turn(serve: Serve) -> None:
    gate = Gate()
    model = slow(gate, "one, again.")
    server = await serve(agent(model, message_concurrency="drop"))
    tab = await server.tab()
    first = user_message("A")
    await tab.ask("A", first)
    await gate.reached()
    await tab.ask("R", first, trigger="regenerate-message")
    await tab.settle()
    assert tab.of("R") == []
    gate.open()
    assert (await tab.done("R"))["outcome"] == "completed"
    assert [shown(request) for request in model.requests] == [["A"], ["A"]]


@requirement("fault:CO-06")
async def test_drop_drops_nothing_but_messages_that_people_send(serve: Serve) -> None:
    gate = Gate()

    async def note(self: Think, payload: Any) -> None:
        await self.save_messages(payload)

    async def start(self: Think) -> list[str]:
        self.schedule(0, self.note, "scheduled")
        results = asyncio.gather(self.save_messages("saved"), self.chat("said"), self.continue_last_turn())
        started.set()
        return [result.status for result in await results]

    started = asyncio.Event()
    model = slow(gate, *(f"{number}." for number in range(5)))
    server = await serve(agent(model, message_concurrency="drop", note=note, start=callable(start)))
    tab, other = await server.tab(), await server.tab()
    first = user_message("A")
    await tab.ask("A", first)
    await gate.reached()
    await tab.ask("R", first, trigger="regenerate-message")
    await tab.settle()
    await tab.send({"type": "rpc", "id": "start", "method": "start", "args": []})
    await started.wait()
    await tab.settle()
    assert len(model.requests) == 1, "all else waits"
    gate.open()
    assert (await tab.done("R"))["outcome"] == "completed"
    reply = await tab.seen(lambda frame: frame["type"] == "rpc" and frame["id"] == "start")
    assert reply["result"] == ["completed"] * 3
    await other.seen(lambda frame: "scheduled" in said(frame.get("messages", [])))
    texts = said(await server.stored())
    assert {"saved", "said", "scheduled"} <= set(texts)


@requirement("fault:CO-06")
@pytest.mark.parametrize("strategy", ["drop", "latest", Debounce(ms=3_600_000)])
async def test_answers_to_tool_calls_are_messages_of_nobody(serve: Serve, strategy: Any) -> None:
    gate = Gate()

    @tool(needs_approval=True)
    async def pay() -> str:
        """Pay."""
        return "paid"

    @tool
    async def count() -> int:
        """Count."""
        await gate.passed()
        return 3

    asks = [call("pay", id="c-pay"), call("where", id="c-where"), call("count", id="c-count")]
    model = ScriptedModel([asks, say("Done.")])
    server = await serve(agent(model, pay, count, message_concurrency=strategy))
    tab = await server.tab()
    where = {"name": "where", "description": "Where the user is.", "parameters": {"type": "object"}}
    await tab.ask("A", "A", clientTools=[where])
    await gate.reached()
    answer = {"autoContinue": True, "toolCallId": "c-pay", "approved": True}
    await tab.send({"type": "cf_agent_tool_approval", **answer})
    answer = {"autoContinue": True, "toolCallId": "c-where", "toolName": "where", "output": "home"}
    await tab.send({"type": "cf_agent_tool_result", **answer})
    await tab.settle()
    assert len(model.requests) == 1, "what follows waits for the turn"
    gate.open()
    assert (await tab.done("A"))["outcome"] == "completed"
    done = await tab.seen(lambda frame: frame.get("continuation") is True and frame["done"])
    assert done["outcome"] == "completed"
    parts = (await server.stored())[-1]["parts"]
    assert {part["toolCallId"]: part["output"] for part in parts if "output" in part} == {
        "c-pay": "paid",
        "c-where": "home",
        "c-count": 3,
    }
    assert parts[-1]["text"] == "Done."


async def test_what_is_answered_while_only_skipped_messages_wait_is_gone_on_with(serve: Serve) -> None:
    """Nobody else would: the message that was to be answered last was stopped."""
    gate = Gate()

    @tool(needs_approval=True)
    async def pay() -> str:
        """Pay."""
        return "paid"

    @tool
    async def count() -> int:
        """Count."""
        await gate.passed()
        return 3

    model = ScriptedModel([[call("pay", id="c-pay"), call("count")], say("Done.")])
    server = await serve(agent(model, pay, count, message_concurrency="latest"))
    tab = await server.tab()
    await ask_all(tab, "A", "B", "C")
    await gate.reached()
    await tab.cancel("C")
    answer = {"autoContinue": True, "toolCallId": "c-pay", "approved": True}
    await tab.send({"type": "cf_agent_tool_approval", **answer})
    await tab.settle()
    gate.open()
    done = await tab.seen(lambda frame: frame.get("continuation") is True and frame["done"])
    assert done["outcome"] == "completed"
    assert (await tab.done("B"))["outcome"] == "skipped"
    assert said(await server.stored()) == ["A", "Done.", "B", "C"]


async def test_a_dropped_message_changes_nothing_of_what_its_page_sent_before(serve: Serve) -> None:
    gate = Gate()
    bodies: list[Any] = []

    def before_turn(self: Think, ctx: TurnContext) -> None:
        bodies.append(ctx.body)

    model = slow(gate, "two.")
    save = callable(lambda self: self.save_messages("S"))
    server = await serve(agent(model, message_concurrency="drop", before_turn=before_turn, save=save))
    tab = await server.tab()
    await tab.ask("A", "A", plan="free")
    await gate.reached()
    await tab.ask("B", "B", plan="pro")
    await tab.done("B")
    gate.open()
    await tab.done("A")
    await call_of(tab, "save")
    assert bodies == [{"plan": "free"}, {"plan": "free"}]


async def test_a_clear_acts_at_once_under_drop(serve: Serve) -> None:
    gate = Gate()
    server = await serve(agent(slow(gate), message_concurrency="drop"))
    tab, other = await server.tab(), await server.tab()
    await tab.ask("A", "A")
    await gate.reached()
    await tab.clear()
    assert (await tab.done("A"))["outcome"] == "aborted"
    await other.seen(lambda frame: frame["type"] == "cf_agent_chat_clear")
    assert await server.stored() == []


@pytest.mark.parametrize("strategy", ["latest", "merge"])
async def test_turns_of_the_server_are_not_superseded_and_supersede_nobody(serve: Serve, strategy: str) -> None:
    gate = Gate()

    async def note(self: Think) -> str:
        return (await self.save_messages("S")).status

    async def talk(self: Think) -> str:
        return (await self.chat("T")).status

    model = slow(gate, "s.", "t.", "c.")
    kind = agent(model, message_concurrency=strategy, note=callable(note), talk=callable(talk))
    server = await serve(kind)
    tab = await server.tab()
    first = user_message("A")
    await tab.ask("A", first)
    await gate.reached()
    await tab.ask("B", first, user_message("B"))
    await tab.send({"type": "rpc", "id": "note", "method": "note", "args": []})
    await tab.send({"type": "rpc", "id": "talk", "method": "talk", "args": []})
    await tab.settle()
    await tab.ask("C", first, user_message("C"))
    await tab.settle()
    gate.open()
    await tab.done("C")
    replies = {f["id"]: f["result"] for f in tab.frames if f["type"] == "rpc"}
    assert replies == {"note": "completed", "talk": "completed"}
    assert (await tab.done("B"))["outcome"] == "skipped"
    kept = ["B"] if strategy == "merge" else []
    assert shown(model.requests[1]) == ["A", "one.", *kept, "S"]
    assert shown(model.requests[3]) == ["A", "one.", *kept, "S", "s.", "T", "t.", "C"]


@requirement("engine:5", "engine:102", "protocol:103")
@pytest.mark.parametrize("strategy", ["latest", "merge", "drop", Debounce(ms=3_600_000)])
async def test_a_message_right_after_a_clear_overlaps_nothing(serve: Serve, strategy: Any) -> None:
    gate = Gate()
    model = slow(gate, "new.")
    server = await serve(agent(model, message_concurrency=strategy))
    tab, other = await server.tab(), await server.tab()
    await other.opened()
    first = user_message("A")
    await tab.ask("A", first)
    await gate.reached()
    if strategy != "drop":
        await tab.ask("B", first, user_message("B"))
        await tab.settle()
    body = json.dumps({"messages": [user_message("N")]})
    await tab.send_together({"type": "cf_agent_chat_clear"}, chat_request("N", body))
    assert (await tab.done("N"))["outcome"] == "completed"
    if strategy != "drop":
        assert (await tab.done("B"))["outcome"] == "skipped"
        assert (await other.done("B"))["outcome"] == "skipped", "a clear concerns everybody"
    assert said(await server.stored()) == ["N", "new."]
    assert shown(model.requests[1]) == ["N"]


@requirement("engine:5")
async def test_a_second_message_after_a_clear_overlaps_the_first(serve: Serve) -> None:
    gate, unwound = Gate(), Gate()

    async def on_chat_response(self: Think, response: ChatResponse) -> None:
        await unwound.passed()

    model = slow(gate, "new.")
    server = await serve(agent(model, message_concurrency="drop", on_chat_response=on_chat_response))
    tab = await server.tab()
    await tab.ask("A", "A")
    await gate.reached()
    await tab.clear()
    await unwound.reached()
    await tab.ask("N", "N")
    await tab.ask("O", "O")
    assert (await tab.done("O"))["outcome"] == "skipped"
    unwound.open()
    assert (await tab.done("N"))["outcome"] == "completed"
    assert said(await server.stored()) == ["N", "new."]


async def test_what_a_clear_has_ended_is_superseded_by_nobody(serve: Serve) -> None:
    gate, unwound = Gate(), Gate()

    async def on_chat_response(self: Think, response: ChatResponse) -> None:
        await unwound.passed()

    model = slow(gate, "n.", "o.")
    server = await serve(agent(model, message_concurrency="latest", on_chat_response=on_chat_response))
    tab = await server.tab()
    await ask_all(tab, "A", "B", "C")
    await tab.clear()
    await unwound.reached()
    await tab.ask("N", "N")
    await tab.ask("O", "O")
    await tab.settle()
    unwound.open()
    assert (await tab.done("N"))["outcome"] == "completed"
    assert (await tab.done("O"))["outcome"] == "completed"
    assert said(await server.stored()) == ["N", "n.", "O", "o."]


async def test_a_message_that_comes_while_the_application_looks_at_the_last_answer_overlaps_nothing(
    serve: Serve,
) -> None:
    """Whoever was told that a turn is over is not to lose the next message to what goes on behind it."""
    gate = Gate()

    async def on_chat_response(self: Think, response: ChatResponse) -> None:
        await gate.passed()

    model = ScriptedModel([say("one."), say("two.")])
    server = await serve(agent(model, message_concurrency="drop", on_chat_response=on_chat_response))
    tab = await server.tab()
    await tab.ask("A", "A")
    await tab.done("A")
    await gate.reached()
    await tab.ask("B", *(await server.stored()), user_message("B"))
    await tab.settle()
    gate.open()
    assert (await tab.done("B"))["outcome"] == "completed"


# ── tabs that come back ─────────────────────────────────────────────


@requirement("engine:107")
@pytest.mark.parametrize("strategy", ["latest", "merge"])
async def test_a_tab_that_waits_for_a_stream_gets_that_of_the_successor(serve: Serve, strategy: str) -> None:
    preparing, gate = Gate(), Gate()

    async def before_turn(self: Think, ctx: TurnContext) -> None:
        if ctx.request_id == "A":
            await preparing.passed()

    model = ScriptedModel([[pause(gate), say("three.")]])
    kind = agent(model, message_concurrency=strategy, before_turn=before_turn)
    server = await serve(kind)
    tab = await server.tab()
    await ask_all(tab, "A", "B", "C")
    late = await server.tab()
    assert (await late.probe("p"))["type"] == "cf_agent_stream_pending"
    start = len(late.frames)
    await tab.cancel("A")
    await gate.reached()
    await late.settle()
    assert late.frames[start:]
    assert "cf_agent_stream_resume_none" not in late.kinds(start)
    assert late.frames[-1] == {"type": "cf_agent_stream_resuming", "id": "C"}
    await late.ack("C")
    await late.settle()
    gate.open()
    assert (await late.done("C"))["outcome"] == "completed"
    assert text_of(chunks_of(late.frames, "C")) == "three."


# ── what a class says ───────────────────────────────────────────────


def test_an_app_refuses_a_class_that_says_something_else() -> None:
    with pytest.raises(
        ConfigurationError, match=r'Agent\.message_concurrency is \'newest\'; it must be "queue", "latest"'
    ):
        App(agent(None, message_concurrency="newest"))
    App(agent(None, message_concurrency=property(lambda self: "newest")))


async def test_what_only_an_object_says_is_refused_when_it_is_first_used(serve: Serve, log: ErrorLog) -> None:
    server = await serve(agent(ScriptedModel([]), message_concurrency=property(lambda self: "newest")))
    tab = await server.tab()
    await tab.ended()
    log.expect("message_concurrency is 'newest'")


async def test_an_object_can_change_its_mind(serve: Serve) -> None:
    gate = Gate()

    def choose(self: Think, strategy: Any) -> None:
        self.message_concurrency = strategy

    model = slow(gate, "four.")
    server = await serve(agent(model, choose=callable(choose)))
    tab = await server.tab()
    await tab.ask("A", "A")
    await gate.reached()
    await call_of(tab, "choose", "newest")
    await tab.ask("B", "B")
    assert "message_concurrency is 'newest'" in (await tab.done("B"))["body"]
    await call_of(tab, "choose", "drop")
    await tab.ask("C", "C")
    assert (await tab.done("C"))["outcome"] == "skipped"
    await call_of(tab, "choose", {"strategy": "debounce", "debounceMs": 0})
    await tab.ask("D", "D")
    await tab.settle()
    gate.open()
    assert (await tab.done("D"))["outcome"] == "completed"
    assert said(await server.stored()) == ["A", "one.", "D", "four."]
