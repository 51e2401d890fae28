"""The mock model of the bench fixture against its grammar."""

from __future__ import annotations

from typing import Any

import pytest

from benchmarks.mock_model import DENIED, MockModel
from perdure.errors import ModelRejected
from perdure.models.contract import Finish, HistoryMessage, ModelRequest

pytestmark = pytest.mark.anyio

STEP: Any = {"type": "step-start"}


def user(text: str) -> Any:
    return {"id": "u", "role": "user", "parts": [{"type": "text", "text": text}]}


def assistant(*parts: Any) -> Any:
    return {"id": "a", "role": "assistant", "parts": list(parts)}


def result(tool: str, output: Any) -> Any:
    return {"type": f"tool-{tool}", "toolCallId": "c", "state": "output-available", "input": {}, "output": output}


async def ask(*messages: Any, model: MockModel | None = None) -> list[Any]:
    history = [HistoryMessage.of(message) for message in messages]
    return [event async for event in (model or MockModel()).stream(ModelRequest(system="", history=history))]


def deltas(events: list[Any]) -> list[str]:
    return [event["delta"] for event in events[:-1] if event["type"] == "text-delta"]


def calls(events: list[Any]) -> list[Any]:
    found = [event for event in events[:-1] if event["type"] == "tool-input-available"]
    return [(event["toolName"], event["input"]) for event in found]


async def test_n_gives_that_many_deltas() -> None:
    events = await ask(user("N=3"))

    assert events == [
        {"type": "text-start", "id": "t"},
        {"type": "text-delta", "id": "t", "delta": "t0 "},
        {"type": "text-delta", "id": "t", "delta": "t1 "},
        {"type": "text-delta", "id": "t", "delta": "t2 "},
        {"type": "text-end", "id": "t"},
        events[-1],
    ]
    assert isinstance(events[-1], Finish)
    assert events[-1].reason == "stop"


async def test_s_pads_each_delta_with_dots() -> None:
    assert deltas(await ask(user("N=2 S=6"))) == ["t0 ...", "t1 ..."]


async def test_d_and_h_wait_before_each_delta_and_before_the_finish() -> None:
    waits: list[float] = []

    async def sleep(seconds: float) -> None:
        waits.append(seconds)

    await ask(user("N=2 D=5 H=70"), model=MockModel(sleep))

    assert waits == [0.005, 0.005, 0.07]


async def test_call_calls_the_tool_and_then_reports_its_result() -> None:
    events = await ask(user('CALL add {"a": 1, "b": 2}'))

    assert calls(events) == [("add", {"a": 1, "b": 2})]
    assert events[1]["inputTextDelta"] == '{"a":1,"b":2}'
    assert events[-1].reason == "tool-calls"
    told = await ask(user('CALL add {"a": 1, "b": 2}'), assistant(STEP, result("add", {"sum": 3, "of": [1, 2]})))
    assert deltas(told) == ['RESULT add {"sum":3,"of":[1,2]}']


async def test_a_call_without_arguments_has_an_empty_object() -> None:
    assert calls(await ask(user("CALL boom"))) == [("boom", {})]


async def test_several_calls_are_one_step_and_reported_in_the_order_of_the_parts() -> None:
    text = 'CALLS [["add", {"a": 1, "b": 2}], ["boom", {}]]'

    assert calls(await ask(user(text))) == [("add", {"a": 1, "b": 2}), ("boom", {})]
    failed = {"type": "tool-boom", "toolCallId": "d", "state": "output-error", "input": {}, "errorText": "boom"}
    told = await ask(user(text), assistant(STEP, result("add", {"sum": 3}), failed))
    assert deltas(told) == ['RESULT add {"sum":3} | boom boom']


@pytest.mark.parametrize(
    ("part", "shown"),
    [
        (result("x", "text"), "text"),
        (result("x", None), "null"),
        (result("x", {}) | {"state": "output-denied", "approval": {"id": "1", "reason": "not today"}}, "not today"),
        (result("x", {}) | {"state": "output-denied"}, DENIED),
        (result("x", 5) | {"type": "dynamic-tool", "toolName": "x"}, "5"),
    ],
)
async def test_results_are_told_as_the_model_is_shown_them(part: Any, shown: str) -> None:
    assert deltas(await ask(user("CALL x"), assistant(part))) == [f"RESULT x {shown}"]


async def test_results_of_earlier_turns_do_not_count() -> None:
    earlier = [user("CALL x"), assistant(STEP, result("x", "old"))]

    assert calls(await ask(*earlier, user("CALL y"))) == [("y", {})]


async def test_loop_makes_that_many_steps() -> None:
    parts: list[Any] = []
    for _ in range(3):
        events = await ask(user('LOOP 3 add {"a":1}'), *([assistant(*parts)] if parts else []))
        assert calls(events) == [("add", {"a": 1})]
        parts += [STEP, result("add", {"sum": 1})]

    assert deltas(await ask(user('LOOP 3 add {"a":1}'), assistant(*parts))) == ["DONE 3"]


async def test_steps_may_be_spread_over_messages() -> None:
    message = assistant(STEP, result("add", 1))

    assert deltas(await ask(user("LOOP 2 add {}"), message, message)) == ["DONE 2"]
    assert calls(await ask(user("LOOP 3 add {}"), message, message)) == [("add", {})]


async def test_a_step_that_has_begun_does_not_count() -> None:
    message = assistant(STEP, result("add", 1), STEP)

    assert deltas(await ask(user("CALL add {}"), message)) == ["RESULT add 1"]
    assert calls(await ask(user("LOOP 2 add {}"), message)) == [("add", {})]


async def test_call_ids_do_not_repeat() -> None:
    model = MockModel()
    text = 'CALLS [["a", {}], ["b", {}]]'
    events = await ask(user(text), model=model) + await ask(user(text), model=model)
    events += await ask(user(text), model=MockModel())

    ids = [event["toolCallId"] for event in events if isinstance(event, dict) and event["type"] == "tool-input-start"]
    assert len(set(ids)) == 6


@pytest.mark.parametrize(
    ("text", "answer"),
    [
        ("ECHO  two  spaces", " two  spaces"),
        ("  hello there ", "You said: hello there"),
        ("", "You said: "),
        ("COUNT the stars", "You said: COUNT the stars"),
        ("CALL add {broken", "You said: CALL add {broken"),
        ("CALLS 5", "You said: CALLS 5"),
        ("LOOP x", "You said: LOOP x"),
        ("ECHOES", "You said: ECHOES"),
    ],
)
async def test_text_is_echoed(text: str, answer: str) -> None:
    assert deltas(await ask(user(text))) == [answer]


async def test_parts_of_a_message_are_joined() -> None:
    message = {"id": "u", "role": "user", "parts": [{"type": "text", "text": "ECHO a"}, {"type": "text", "text": "b"}]}

    assert deltas(await ask(message)) == ["ab"]


async def test_count_counts_the_users_messages() -> None:
    assert deltas(await ask(user("hi"), assistant(STEP), user("hi"), assistant(), user("COUNT"))) == ["users=3"]


async def test_reason_gives_reasoning_and_ok() -> None:
    events = await ask(user("REASON why not"))

    assert [event["type"] for event in events[:3]] == ["reasoning-start", "reasoning-delta", "reasoning-end"]
    assert events[1]["delta"] == "why not"
    assert deltas(events) == ["ok"]


async def test_error_fails_before_any_output() -> None:
    with pytest.raises(ModelRejected, match=r"^out of cheese$") as caught:
        await ask(user("ERROR out of cheese"))

    assert caught.value.status == 400


async def test_only_the_end_of_the_history_is_decoded() -> None:
    broken = HistoryMessage("not JSON: decoding it would fail")
    last = HistoryMessage.of(user("ECHO fine"))
    request = ModelRequest(system="", history=[broken] * 3 + [last])

    assert deltas([event async for event in MockModel().stream(request)]) == ["fine"]


async def test_without_a_user_message_it_still_answers() -> None:
    assert deltas(await ask()) == ["You said: "]
