"""Messages that are sent while a turn runs or waits: what becomes of them."""

import json
from typing import Any

import pytest

from perdure import ChatResponse, Debounce, Limits, Think, callable
from perdure.testing import Gate, ScriptedModel, fail, pause, say, strict_provider_errors
from tests.agent.calls import result_of
from tests.requirements import requirement
from tests.server.overlapping import ask_all, outcomes, said, shown, slow
from tests.support import ErrorLog, Serve, agent, chat_request, text_of, user_message
from tests.support.tabs import chunks_of

pytestmark = pytest.mark.anyio


# ── latest ──────────────────────────────────────────────────────────


@requirement("fault:CO-02", "protocol:101", "engine:97")
async def test_latest_answers_only_the_last_of_those_that_waited(serve: Serve) -> None:
    gate, responses = Gate(), []

    def on_chat_response(self: Think, response: ChatResponse) -> None:
        responses.append(response.request_id)

    model = slow(gate, "four.")
    kind = agent(model, message_concurrency="latest", on_chat_response=on_chat_response)
    server = await serve(kind)
    tab, other = await server.tab(), await server.tab()
    await other.opened()
    questions = await ask_all(tab, "A", "B", "C", "D")
    await other.seen(lambda frame: len(frame.get("messages", [])) == 4)
    assert [frame["id"] for frame in tab.frames if frame.get("done")] == [], "they end when it is their turn"
    gate.open()
    await tab.done("D")
    await other.done("D")

    assert outcomes(tab) == [("A", "completed"), ("B", "skipped"), ("C", "skipped"), ("D", "completed")]
    assert tab.of("C") == [
        {
            "type": "cf_agent_use_chat_response",
            "id": "C",
            "body": "",
            "done": True,
            "outcome": "skipped",
            "messageIds": ["u-A", "u-B", "u-C"],
        }
    ]
    assert other.of("B") == other.of("C") == [], "only their sender is told"
    assert said(await server.stored()) == ["A", "one.", "B", "C", "D", "four."]
    assert [message for message in await server.stored() if message["role"] == "user"] == questions
    assert [shown(request) for request in model.requests] == [["A"], ["A", "one.", "D"]]
    assert responses == ["A", "D"]
    assert [strict_provider_errors(request) for request in model.requests] == [[], []]


@pytest.mark.parametrize("strategy", ["latest", "merge", Debounce(ms=1)])
@pytest.mark.parametrize("leaves", [False, True])
async def test_whoever_sends_a_request_once_more_is_told_that_it_lost_its_turn(
    serve: Serve, strategy: Any, leaves: bool
) -> None:
    """As a page does that has lost its line: it may not know whether the request had arrived."""
    gate = Gate()
    server = await serve(agent(slow(gate, "last."), message_concurrency=strategy))
    tab, before, after = await server.tab(), await server.tab(), await server.tab()
    await ask_all(tab, "A")
    await gate.reached()
    await before.ask("B", user_message("B", "u-B"))
    await before.settle()
    await after.ask("B", user_message("B", "u-B"))
    await after.settle()
    if leaves:
        await before.close()
    await tab.ask("C", user_message("C", "u-C"))
    await tab.settle()
    gate.open()
    for seen in [after] if leaves else [before, after]:
        assert (await seen.done("B"))["outcome"] == "skipped"
    await tab.done("C")
    assert tab.of("B") == []


async def test_what_lost_its_turn_is_in_no_later_prompt_either(serve: Serve) -> None:
    gate = Gate()
    model = slow(gate, "three.", "again.", "next.")
    server = await serve(agent(model, message_concurrency="latest"))
    tab = await server.tab()
    await ask_all(tab, "A", "B", "C")
    gate.open()
    await tab.done("C")
    *before, _ = await server.stored()
    await tab.ask("regenerate", *before, trigger="regenerate-message")
    await tab.done("regenerate")
    await tab.ask("D", *(await server.stored()), user_message("D"))
    await tab.done("D")
    assert [shown(request) for request in model.requests[2:]] == [
        ["A", "one.", "C"],
        ["A", "one.", "C", "again.", "D"],
    ]
    assert said(await server.stored()) == ["A", "one.", "B", "C", "again.", "D", "next."]


@pytest.mark.parametrize("held", [1 << 30, 400])
async def test_what_lost_its_turn_is_left_out_after_a_restart_and_of_a_window(serve: Serve, held: int) -> None:
    gate = Gate()
    first = await serve(agent(slow(gate, "three."), message_concurrency="latest"))
    tab = await first.tab()
    await ask_all(tab, "A", "B", "C")
    gate.open()
    await tab.done("C")
    stored = await first.stored()
    await first.stop()

    model = ScriptedModel([say("four."), say("again.")])
    second = await serve(agent(model, message_concurrency="latest", hydration_byte_budget=held))
    tab = await second.tab()
    assert said(stored) == ["A", "one.", "B", "C", "three."]
    await tab.ask("D", *stored, user_message("D"))
    await tab.done("D")
    # Another answer to C: with little memory, the branch is read from the store.
    await tab.ask("E", *stored[:4], trigger="regenerate-message")
    await tab.done("E")
    prompts = [shown(request)[-2:] for request in model.requests]
    assert prompts == [["three.", "D"], ["one.", "C"]]
    assert not any("B" in shown(request) for request in model.requests)


async def test_who_wants_an_answer_to_what_lost_its_turn_gets_one(serve: Serve) -> None:
    gate = Gate()
    first = await serve(agent(slow(gate, "three.", "two."), message_concurrency="latest"))
    tab = await first.tab()
    await ask_all(tab, "A", "B", "C")
    gate.open()
    await tab.done("C")
    upto_b = (await first.stored())[:3]
    await tab.ask("R", *upto_b, trigger="regenerate-message")
    await tab.done("R")
    assert said(await first.stored()) == ["A", "one.", "B", "two."]
    await first.stop()

    model = ScriptedModel([say("four.")])
    second = await serve(agent(model))
    tab = await second.tab()
    await tab.ask("D", *(await second.stored()), user_message("D"))
    await tab.done("D")
    assert shown(model.requests[0]) == ["A", "one.", "B", "two.", "D"]


async def test_the_page_and_the_application_see_what_the_model_does_not(serve: Serve) -> None:
    gate = Gate()

    async def look(self: Think) -> list[list[str]]:
        return [said(self.messages), said(await self.get_messages())]

    kind = agent(slow(gate, "three."), message_concurrency="latest", look=callable(look))
    server = await serve(kind)
    tab = await server.tab()
    await ask_all(tab, "A", "B", "C")
    gate.open()
    await tab.done("C")
    everything = ["A", "one.", "B", "C", "three."]
    assert await result_of(tab, "look") == [everything, everything]
    late = await server.tab()
    assert said((await late.opened())[0]["messages"]) == everything


async def test_an_edit_is_a_message_like_any_other(serve: Serve) -> None:
    gate = Gate()
    model = slow(gate, "edited.")
    server = await serve(agent(model, message_concurrency="latest"))
    tab = await server.tab()
    first, second = await ask_all(tab, "A", "B")
    await tab.ask("E", first, {**second, "parts": [{"type": "text", "text": "B, better"}]})
    await tab.settle()
    gate.open()
    await tab.done("E")
    assert outcomes(tab) == [
        ("A", "completed"),
        ("B", "skipped"),
        ("E", "completed"),
    ]
    assert shown(model.requests[1]) == ["A", "one.", "B, better"]
    assert said(await server.stored()) == ["A", "one.", "B, better", "edited."]


async def test_an_edit_of_what_lost_its_turn_is_asked(serve: Serve) -> None:
    gate = Gate()
    model = slow(gate, "three.", "edited.", "next.")
    server = await serve(agent(model, message_concurrency="latest"))
    tab = await server.tab()
    await ask_all(tab, "A", "B", "C")
    gate.open()
    await tab.done("C")
    *before, second = (await server.stored())[:3]
    await tab.ask("E", *before, {**second, "parts": [{"type": "text", "text": "B, better"}]})
    await tab.done("E")
    await tab.ask("F", *(await server.stored()), user_message("F"))
    await tab.done("F")
    assert shown(model.requests[3]) == ["A", "one.", "B, better", "edited.", "F"]


async def test_when_the_last_one_is_stopped_nobody_is_answered_in_its_place(serve: Serve) -> None:
    gate = Gate()
    model = slow(gate)
    server = await serve(agent(model, message_concurrency="latest"))
    tab = await server.tab()
    await ask_all(tab, "A", "B", "C")
    await tab.cancel("C")
    await tab.done("C")
    gate.open()
    assert (await tab.done("B"))["outcome"] == "skipped"
    model.assert_done()
    assert (await tab.probe("p"))["reason"] == "idle"
    assert said(await server.stored()) == ["A", "one.", "B", "C"]


async def test_a_turn_that_has_begun_is_not_superseded(serve: Serve) -> None:
    first, second = Gate(), Gate()
    model = ScriptedModel([[pause(first), say("one.")], [say("two"), pause(second), say(".")], say("three.")])
    server = await serve(agent(model, message_concurrency="latest"))
    tab = await server.tab()
    a, b = await ask_all(tab, "A", "B")
    first.open()
    await tab.delta("B", "two")
    await tab.ask("C", a, b, user_message("C"))
    await tab.settle()
    second.open()
    await tab.done("C")
    assert outcomes(tab) == [(letter, "completed") for letter in "ABC"]
    assert text_of(chunks_of(tab.frames, "B")) == "two."


async def test_a_turn_that_fails_does_not_hold_up_what_waits(serve: Serve, log: ErrorLog) -> None:
    gate = Gate()
    model = ScriptedModel([[say("one"), pause(gate), fail(RuntimeError("boom"))], say("three.")])
    server = await serve(agent(model, message_concurrency="latest", on_chat_error=lambda self, error, ctx: "oh"))
    tab = await server.tab()
    await ask_all(tab, "A", "B", "C")
    gate.open()
    await tab.done("C")
    assert outcomes(tab) == [("A", "error"), ("B", "skipped"), ("C", "completed")]
    log.expect("boom")


# ── merge ───────────────────────────────────────────────────────────


@requirement("fault:CO-04", "protocol:102", "engine:98")
async def test_merge_answers_all_that_waited_in_one_turn(serve: Serve) -> None:
    gate, responses = Gate(), []

    def on_chat_response(self: Think, response: ChatResponse) -> None:
        responses.append(response.request_id)

    model = slow(gate, "both.", "next.")
    kind = agent(model, message_concurrency="merge", on_chat_response=on_chat_response)
    server = await serve(kind)
    ann, bob, eve = [await server.tab() for _ in range(3)]
    await ann.ask("A", user_message("A"))
    await gate.reached()
    await bob.ask("B", user_message("B", "u-B"))
    await bob.settle()
    await eve.ask("C", user_message("C", "u-C"))
    await eve.settle()
    gate.open()
    await eve.done("C")
    assert (await bob.done("B"))["outcome"] == "skipped"
    await ann.done("C")
    assert ann.of("B") == eve.of("B") == []

    assert [shown(request) for request in model.requests] == [["A"], ["A", "one.", "B", "C"]]
    assert [message["role"] for message in model.requests[1].messages] == ["user", "assistant", "user", "user"]
    stored = await server.stored()
    assert said(stored) == ["A", "one.", "B", "C", "both."]
    assert [message["id"] for message in stored[2:4]] == ["u-B", "u-C"]
    assert responses == ["A", "C"]

    await bob.ask("D", *stored, user_message("D"))
    await bob.done("D")
    assert shown(model.requests[2]) == ["A", "one.", "B", "C", "both.", "D"]
    assert len(await server.stored()) == 7, "nothing is doubled by posting it again"


# ── drop ────────────────────────────────────────────────────────────


@requirement("fault:CO-03", "protocol:100", "engine:99")
async def test_drop_leaves_no_trace_of_what_overlaps(serve: Serve) -> None:
    gate, responses = Gate(), []

    def on_chat_response(self: Think, response: ChatResponse) -> None:
        responses.append(response.request_id)

    model = slow(gate, "next.")
    kind = agent(model, message_concurrency="drop", on_chat_response=on_chat_response)
    server = await serve(kind)
    tab, other = await server.tab(), await server.tab()
    first, second = user_message("A"), user_message("B", "u-B")
    await tab.ask("A", first)
    for each in (tab, other):
        await each.delta("A", "one")
    start, mark = len(tab.frames), len(other.frames)
    await tab.ask("B", first, second)
    await tab.done("B")
    assert tab.frames[start:] == [
        {"type": "cf_agent_chat_messages", "messages": [first]},
        {
            "type": "cf_agent_use_chat_response",
            "id": "B",
            "body": "",
            "done": True,
            "outcome": "skipped",
            "messageIds": [first["id"], "u-B"],
        },
    ]
    await other.settle()
    assert other.frames[mark:] == []
    assert await server.stored() == [first]
    gate.open()
    assert (await tab.done("A"))["outcome"] == "completed"
    assert said(await server.stored()) == ["A", "one."]

    await tab.ask("C", *(await server.stored()), user_message("C"))
    await tab.done("C")
    assert responses == ["A", "C"]
    assert shown(model.requests[1]) == ["A", "one.", "C"]


async def test_a_dropped_request_that_is_delivered_again_is_not_answered_later(serve: Serve) -> None:
    gate = Gate()
    model = slow(gate)
    server = await serve(agent(model, message_concurrency="drop"))
    tab = await server.tab()
    first, second = user_message("A"), user_message("B")
    await tab.ask("A", first)
    await gate.reached()
    await tab.ask("B", first, second)
    await tab.ask("A", first)
    await tab.done("B")
    gate.open()
    await tab.done("A")
    await tab.ask("B", first, second)
    await tab.settle()
    model.assert_done()
    assert said(await server.stored()) == ["A", "one."]


async def test_a_message_that_cannot_be_used_takes_nobodys_turn(serve: Serve) -> None:
    gate = Gate()
    model = slow(gate, "two.")
    server = await serve(agent(model, message_concurrency="latest"))
    tab = await server.tab()
    await ask_all(tab, "A", "B")
    await tab.ask("bad", {"id": "u-bad", "role": "user", "parts": "none"})
    assert (await tab.done("bad"))["error"] is True
    gate.open()
    assert (await tab.done("B"))["outcome"] == "completed"


# ── bursts ──────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("strategy", "answered"),
    [("queue", "ABCDE"), ("latest", "AE"), ("merge", "AE"), ("drop", "A"), (Debounce(ms=0), "AE")],
)
async def test_a_burst_that_comes_in_one_piece_is_decided_one_by_one(
    serve: Serve, strategy: Any, answered: str
) -> None:
    model = ScriptedModel([say(f"{letter}!") for letter in answered])
    server = await serve(agent(model, message_concurrency=strategy))
    tab = await server.tab()
    await tab.opened()
    questions = [user_message(letter) for letter in "ABCDE"]
    await tab.send_together(
        *(
            chat_request(letter, json.dumps({"messages": questions[: number + 1]}))
            for number, letter in enumerate("ABCDE")
        )
    )
    ended = {letter: (await tab.done(letter))["outcome"] for letter in "ABCDE"}
    assert ended == {letter: "completed" if letter in answered else "skipped" for letter in "ABCDE"}
    model.assert_done()


@requirement("engine:96")
async def test_queue_is_the_default_and_answers_everything_in_order(serve: Serve) -> None:
    gate = Gate()
    model = slow(gate, "two.", "three.")
    server = await serve(agent(model))
    tab = await server.tab()
    await ask_all(tab, "A", "B", "C")
    gate.open()
    await tab.done("C")
    assert said(await server.stored()) == ["A", "one.", "B", "two.", "C", "three."]
    assert Think.message_concurrency == "queue"


@requirement("engine:103")
@pytest.mark.parametrize(("strategy", "answered"), [("drop", "A"), ("latest", "AC")])
async def test_requests_that_need_reading_first_overlap_all_the_same(
    serve: Serve, strategy: str, answered: str
) -> None:
    """Of a windowed conversation the store is asked whether a message is known, before anything can be decided."""
    first = await serve(agent(ScriptedModel([say("x" * 500)] * 3)))
    tab = await first.tab()
    for number in range(3):
        await tab.ask(f"old-{number}", *(await first.stored()), user_message("y" * 500))
        await tab.done(f"old-{number}")
    await first.stop()

    gate = Gate()
    model = ScriptedModel([[pause(gate), say("one.")], *(say(f"{letter}!") for letter in answered[1:])])
    kind = agent(model, message_concurrency=strategy, hydration_byte_budget=1000)
    server = await serve(kind, limits=Limits(window=1000))
    tab = await server.tab()
    await tab.opened()
    requests = [chat_request(letter, json.dumps({"messages": [user_message(letter)]})) for letter in "ABC"]
    await tab.send_together(*requests)
    await tab.settle()
    gate.open()
    ended = {letter: (await tab.done(letter))["outcome"] for letter in "ABC"}
    assert ended == {letter: "completed" if letter in answered else "skipped" for letter in "ABC"}
    model.assert_done()
