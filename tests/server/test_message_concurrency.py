"""Messages that are sent while a turn runs or waits: queue, latest, merge, drop."""

import asyncio
import json
from collections.abc import Sequence
from typing import Any

import pytest

from perdure import App, ChatResponse, ConfigurationError, Debounce, Limits, Think, TurnContext, callable
from perdure.protocol.messages import text_of as words_of
from perdure.testing import Gate, ScriptedModel, fail, pause, say, strict_provider_errors
from perdure.testing.scripted import RecordedRequest
from tests.agent.calls import call_of, result_of
from tests.requirements import requirement
from tests.support import ErrorLog, Frame, Serve, Tab, agent, chat_request, text_of, user_message
from tests.support.tabs import chunks_of

pytestmark = pytest.mark.anyio


def shown(request: RecordedRequest) -> list[str]:
    """What a model was shown, message by message."""
    return [words_of(message) for message in request.messages]


def said(messages: Sequence[Any]) -> list[str]:
    return [words_of(message) for message in messages]


def slow(gate: Gate, *answers: str) -> ScriptedModel:
    """The first answer waits for the gate in the middle; the others are as given."""
    return ScriptedModel([[say("one"), pause(gate), say(".")], *(say(answer) for answer in answers)])


async def ask_all(tab: Tab, *letters: str) -> list[Frame]:
    """Ask one after the other, each time with all questions so far, as a page does."""
    questions = [user_message(letter, f"u-{letter}") for letter in letters]
    for count, letter in enumerate(letters, start=1):
        await tab.ask(letter, *questions[:count])
    await tab.settle()
    return questions


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

    outcomes = [(frame["id"], frame["outcome"]) for frame in tab.frames if frame.get("done")]
    assert outcomes == [("A", "completed"), ("B", "skipped"), ("C", "skipped"), ("D", "completed")]
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
    assert [(frame["id"], frame["outcome"]) for frame in tab.frames if frame.get("done")] == [
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
    assert [(frame["id"], frame["outcome"]) for frame in tab.frames if frame.get("done")] == [
        (letter, "completed") for letter in "ABC"
    ]
    assert text_of(chunks_of(tab.frames, "B")) == "two."


async def test_a_turn_that_fails_does_not_hold_up_what_waits(serve: Serve, log: ErrorLog) -> None:
    gate = Gate()
    model = ScriptedModel([[say("one"), pause(gate), fail(RuntimeError("boom"))], say("three.")])
    server = await serve(agent(model, message_concurrency="latest", on_chat_error=lambda self, error, ctx: "oh"))
    tab = await server.tab()
    await ask_all(tab, "A", "B", "C")
    gate.open()
    await tab.done("C")
    outcomes = [(frame["id"], frame["outcome"]) for frame in tab.frames if frame.get("done")]
    assert outcomes == [("A", "error"), ("B", "skipped"), ("C", "completed")]
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
    await gate.reached()
    await other.settle()
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
    outcomes = {letter: (await tab.done(letter))["outcome"] for letter in "ABCDE"}
    assert outcomes == {letter: "completed" if letter in answered else "skipped" for letter in "ABCDE"}
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
    outcomes = {letter: (await tab.done(letter))["outcome"] for letter in "ABC"}
    assert outcomes == {letter: "completed" if letter in answered else "skipped" for letter in "ABC"}
    model.assert_done()


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


@requirement("engine:102", "protocol:103")
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
