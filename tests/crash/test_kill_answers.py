"""``kill -9`` at every point of the way from a call that waits to the turn that goes on after its answer."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from perdure.agent.wake import ATTEMPTS
from perdure.chat.answers import NOT_RUN
from perdure.chat.repair import INTERRUPTED as NO_RESULT
from perdure.testing import strict_provider_errors
from tests.crash.answering import Answerer, open_calls, parts_of, unsettled
from tests.crash.conftest import Start
from tests.crash.consistency import INTERRUPTED, check_consistent, offered
from tests.crash.points import POINTS, dies, lives
from tests.crash.process import Process
from tests.requirements import requirement
from tests.support import Tab, user_message

pytestmark = pytest.mark.anyio

APP = "tests.crash.asking:app"
CALLS = ["c1", "c2", "c3"]
ORDER = "ask place:c1 pay:c2 pay:c3"

_RUNNING = ("tool started", "tool executed", "first words stored")
AFTER_ALL_ANSWERS = {
    "after continuation created",
    *(f"{when} {point}" for when in ("before", "after") for point in _RUNNING),
}
"""The points at which all answers are stored."""
OUTCOME_UNKNOWN = {"after tool started", "before tool executed"}
"""The points at which nobody can know whether the tools did anything."""


async def check_next(server: Process, tab: Tab, asked) -> None:
    """Another question is answered, and no model request was such that a strict provider would refuse it."""
    before = await server.stored()
    await tab.ask("r-next", *before, user_message("ask", "u-next"))
    assert (await tab.done("r-next"))["outcome"] == "completed"
    assert (await server.stored())[: len(before)] == before
    assert [strict_provider_errors(request) for request in asked()] == [[]] * len(asked())


@requirement("fault:RC-07", "fault:RC-15")
@pytest.mark.parametrize(
    ("point", "in_mid_stream"),
    [(f"{when} {point}", False) for point in POINTS for when in ("before", "after")]
    + [(f"{when} {point}", True) for point in ("result stored", "approval stored") for when in ("before", "after")]
    + [("after continuation created", True)],
)
async def test_killed_no_answer_that_was_shown_is_lost_and_no_tool_runs_twice(
    start: Start, folder: Path, asked, ran, point: str, in_mid_stream: bool
) -> None:
    dies(folder, *point.split(" ", 1))
    server = await start(APP)
    page = Answerer(server, await server.tab())
    hangs = " then hang once" if point.endswith("words stored") else ""  # its end could be stored along with them
    question = user_message(f"{ORDER} slow:s" if in_mid_stream else f"{ORDER}{hangs}")
    await page.tab.ask("r1", question)
    is_there = await page.asks(*CALLS) and await (page.stored() if in_mid_stream else page.ends("r1"))
    if is_there and await page.answers(*CALLS) and in_mid_stream:
        await page.tab.send({"type": "rpc", "id": "x", "method": "release", "args": []})
    await server.ended()
    lives(folder)

    server = await start(APP)
    if point in AFTER_ALL_ANSWERS:
        await server.said("asked")  # though nobody has come
    page = Answerer(server, await server.tab())
    messages = await server.stored()
    assert not page.confirmed & set(open_calls(messages))
    if left := open_calls(messages):
        assert point not in AFTER_ALL_ANSWERS
        assert (await page.tab.probe("p"))["reason"] == "idle", "who waits for a person is not shown as interrupted"
        assert await page.asks(*left)
        assert await page.answers(*left)
    if point == "before call stored":
        assert (await offered(page.tab))["body"] == INTERRUPTED
    else:
        await server.said("asked")
        await page.tab.settle()
    messages = await finished(server, page)
    check_consistent(messages, [question])
    check_calls(messages, ran(), point)
    await check_next(server, page.tab, asked)


async def finished(server: Process, page: Answerer, name: str = "room") -> list[dict]:
    """The conversation once no turn is left."""
    while (answer := await page.tab.probe("end"))["type"] == "cf_agent_stream_pending":
        await page.goes_on()
    if answer["type"] == "cf_agent_stream_resuming":
        await page.tab.ack(answer["id"])
        await page.tab.done(answer["id"])
    return await server.stored(name)


def check_calls(messages: list[dict], ran: list[str], point: str) -> None:
    """Each call has its result, or an error when nobody can know it; no tool ran twice, none without its approval."""
    assert unsettled(messages) == []
    assert json.dumps(messages).count('"asking"') in ({0, 1} if point == "before call stored" else {1})
    assert len(ran) == len(set(ran)), f"a tool ran twice: {ran}"
    for call, part in parts_of(messages).items():
        match call, part["state"]:
            case "c1", "output-available":
                assert part["output"] == "of c1"
            case "c2" | "c3", "output-available":
                assert part["output"] == "paid"
                assert call in ran
            case "c2" | "c3", "output-error" if point in OUTCOME_UNKNOWN:
                assert part["errorText"] == NO_RESULT
            case "s", _:
                pass
            case _:
                assert point == "before call stored" or point.endswith("call stored"), (call, part)
                assert call not in ran


# ── processes that die again and again ──────────────────────────────


async def test_a_model_that_kills_the_process_each_time_is_given_up_visibly(start: Start, asked, ran) -> None:
    server = await start(APP)
    page = Answerer(server, await server.tab())
    question = user_message("ask pay:c1 place:c2 then die")
    await page.tab.ask("r1", question)
    await page.tab.done("r1")
    await page.answers("c1", "c2")
    await server.ended()
    for _ in range(1, ATTEMPTS):
        server = await start(APP, waits=False)
        await server.ended()  # by itself: nobody has come

    server = await start(APP)
    tab = await server.tab()
    assert (await offered(tab))["body"] == INTERRUPTED
    messages = await server.stored()
    check_consistent(messages, [question])
    assert {call: part.get("output") for call, part in parts_of(messages).items()} == {"c1": "paid", "c2": "of c2"}
    assert ran() == ["c1"]
    assert len(asked()) == 1 + ATTEMPTS
    await check_next(server, tab, asked)


@requirement("fault:RC-15")
async def test_a_tool_that_kills_the_process_runs_once_and_the_model_learns_that(start: Start, asked, ran) -> None:
    server = await start(APP)
    page = Answerer(server, await server.tab())
    question = user_message("ask kills:c1 pay:c2")
    await page.tab.ask("r1", question)
    await page.tab.done("r1")
    await page.answers("c1", "c2")
    await server.ended()

    server = await start(APP)
    await server.said("asked")
    page = Answerer(server, await server.tab())
    messages = await finished(server, page)
    check_consistent(messages, [question])
    assert parts_of(messages)["c1"]["errorText"] == NO_RESULT
    assert ran().count("c1") == 1
    assert ran().count("c2") <= 1
    seen = parts_of(asked()[1].messages)
    assert seen["c1"]["errorText"] == NO_RESULT
    await check_next(server, page.tab, asked)


@requirement("fault:RC-01", "engine:114")
@pytest.mark.parametrize("tool", ["pay", "where"])
async def test_killed_again_and_again_while_somebody_is_asked_the_call_waits_on(
    start: Start, asked, ran, tool: str
) -> None:
    server = await start(APP)
    page = Answerer(server, await server.tab())
    question = user_message(f"ask {tool}:c1")
    await page.tab.ask("r1", question, clientTools=[{"name": "where"}])
    await page.tab.done("r1")
    for _ in range(ATTEMPTS + 1):
        await server.kill()
        server = await start(APP)
        page = Answerer(server, await server.tab())
        messages = await server.stored()
        assert open_calls(messages) == ["c1"]
        assert [part["type"] for part in messages[1]["parts"]] == ["step-start", "text", f"tool-{tool}"]
        assert (await page.tab.probe("p"))["reason"] == "idle"
    assert len(asked()) == 1
    await page.asks("c1")
    await page.answers("c1")
    await page.goes_on()
    check_consistent(await server.stored(), [question])
    assert ran() == (["c1"] if tool == "pay" else [])
    assert "where" in asked()[1].tools
    assert len(asked()) == 2
    await check_next(server, page.tab, asked)


# ── several, below another, behind another ──────────────────────────


async def test_killed_while_several_agents_go_on_each_of_them_does(start: Start, asked, ran) -> None:
    server = await start(APP)
    names = ["a", "b", "c", "d", "e", "f"]
    for name in names:
        page = Answerer(server, await server.tab(name))
        await page.tab.ask(f"r-{name}", user_message(f"ask pay:{name} then hang"))
        await page.tab.done(f"r-{name}")
        await page.answers(name)
    await server.said("asked", len(names))
    await server.kill()

    server = await start(APP)
    await server.said("asked", len(names))
    assert sorted(ran()) == names
    for name in names:
        (part,) = parts_of(await server.stored(name)).values()
        assert (part["state"], part["output"]) == ("output-available", "paid")
    assert [strict_provider_errors(request) for request in asked()] == [[]] * len(asked())


async def test_killed_after_the_answer_a_sub_agent_goes_on_by_itself(start: Start, folder: Path, asked, ran) -> None:
    dies(folder, "after", "continuation created")
    server = await start(APP)
    parent = await server.tab()
    await parent.send({"type": "rpc", "id": "x", "method": "child", "args": []})
    await parent.seen(lambda frame: frame.get("id") == "x")
    name = "room/sub/helper/x"
    page = Answerer(server, await server.tab(name))
    await page.tab.ask("r1", user_message("ask pay:c1"))
    await page.tab.done("r1")
    await page.answers("c1")
    await server.ended()
    lives(folder)

    server = await start(APP)
    await server.said("asked")
    assert ran() == ["c1"]
    page = Answerer(server, await server.tab(name))
    (part,) = parts_of(await finished(server, page, name)).values()
    assert (part["state"], part["output"]) == ("output-available", "paid")
    assert [strict_provider_errors(request) for request in asked()] == [[], []]


@requirement("fault:RC-02", "engine:94")
async def test_killed_while_the_caller_of_chat_runs_a_call_it_is_an_error_that_nobody_waits_for(
    start: Start, asked
) -> None:
    server = await start(APP)
    tab = await server.tab()
    await tab.send({"type": "rpc", "id": "x", "method": "ask_child", "args": ["ask there:c1"]})
    await server.said("hangs")
    await server.stored("room/sub/helper/x")
    await server.kill()

    server = await start(APP)
    child = await server.tab("room/sub/helper/x")
    (part,) = parts_of(await server.stored("room/sub/helper/x")).values()
    assert (part["state"], part["errorText"]) == ("output-error", NO_RESULT)
    assert (await offered(child))["body"] == INTERRUPTED
    tab = await server.tab()
    await tab.send({"type": "rpc", "id": "y", "method": "ask_child", "args": ["ask"]})
    reply = await tab.seen(lambda frame: frame.get("id") == "y")
    assert reply["result"] == "completed"
    assert [strict_provider_errors(request) for request in asked()] == [[], []]


async def test_killed_while_a_message_waits_behind_calls_that_were_answered_nothing_is_left_open(
    start: Start, asked, ran
) -> None:
    server = await start(APP)
    page = Answerer(server, await server.tab())
    first, second = user_message("ask place:c1 pay:c2 slow:s"), user_message("ask")
    await page.tab.ask("r1", first)
    await page.asks("c1", "c2")
    await page.tab.ask("r2", first, second)
    await page.answers("c1", "c2")
    await page.stored()
    await server.kill()

    server = await start(APP)
    tab = await server.tab()
    messages = await server.stored()
    assert [message["role"] for message in messages] == ["user", "assistant", "user"]
    parts = parts_of(messages)
    assert parts["c1"]["output"] == "of c1"
    assert parts["c2"]["errorText"] == NOT_RUN
    assert parts["s"]["errorText"] == NO_RESULT
    assert (await offered(tab))["body"] == INTERRUPTED
    assert ran() == []
    await check_next(server, tab, asked)
