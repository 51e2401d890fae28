"""What an answer does to the part that waited for it."""

from typing import Any

import pytest

from perdure.chat.answers import decided, failed, finished, refused, with_part
from perdure.chat.interactions import Interaction
from tests.requirements import requirement

OPEN: dict[str, Any] = {
    "type": "tool-remove",
    "toolCallId": "c1",
    "state": "approval-requested",
    "input": {"path": "x"},
    "callProviderMetadata": {"p": {"signature": "s"}},
    "approval": {"id": "ap-7", "asked": "politely"},
}


def decision(approved: bool = True, **more: Any) -> Interaction:
    return Interaction(
        call="c1",
        turn="t1",
        message="m1",
        tool="remove",
        runs="server",
        input={"path": "x"},
        asked_ms=1,
        approval="ap-7",
        decision="approved" if approved else "denied",
        **more,
    )


@requirement("fault:AP-05", "protocol:68", "engine:66")
@pytest.mark.parametrize(("approved", "state"), [(True, "approval-responded"), (False, "output-denied")])
def test_a_decision_keeps_what_is_known_of_the_question(approved: bool, state: str) -> None:
    part = decided(OPEN, decision(approved))
    assert part == {**OPEN, "state": state, "approval": {"id": "ap-7", "asked": "politely", "approved": approved}}
    assert OPEN["state"] == "approval-requested", "the given part is not changed"


@requirement("fault:AP-05", "protocol:68")
@pytest.mark.parametrize("question", [None, {}, {"id": ""}, {"id": None}, "yes", ["ap-7"]])
def test_a_question_without_an_id_gets_that_of_the_call(question: Any) -> None:
    for part in ({**OPEN, "approval": question}, {key: OPEN[key] for key in OPEN if key != "approval"}):
        assert decided(part, decision())["approval"] == {"id": "c1", "approved": True}
        assert decided(part, decision(False))["approval"] == {"id": "c1", "approved": False}


def test_a_reason_and_edited_arguments_are_shown_with_the_decision() -> None:
    part = decided(OPEN, decision(reason="Fine.", edited={"path": "y"}))
    assert (part["input"], part["approval"]["reason"]) == ({"path": "y"}, "Fine.")
    denied = decided(OPEN, decision(approved=False, reason=""))
    assert (denied["input"], denied["approval"]["reason"]) == ({"path": "x"}, "")


def test_a_refused_decision_is_the_question_with_the_error() -> None:
    part = refused(OPEN, "No such path.")
    assert part == {**OPEN, "approval": {**OPEN["approval"], "error": "No such path."}}


@pytest.mark.parametrize("before", [{}, {"output": 1, "preliminary": True}, {"errorText": "old"}])
def test_a_result_takes_the_place_of_what_was_there(before: dict[str, Any]) -> None:
    ended = {**OPEN, "state": "output-available", "output": None, "preliminary": False}
    assert finished({**OPEN, **before}, None) == ended
    assert failed({**OPEN, **before}, "boom") == {**OPEN, "state": "output-error", "errorText": "boom"}


def test_the_first_open_part_of_a_call_is_changed_and_settled_ones_never() -> None:
    settled = {**OPEN, "state": "output-available", "output": 1}
    message = {"id": "m1", "role": "assistant", "parts": [{"type": "text", "text": "x"}, settled, OPEN, OPEN]}
    changed = with_part(message, "c1", lambda part: failed(part, "boom"))
    assert changed is not None
    assert [part.get("state") for part in changed["parts"]] == [
        None,
        "output-available",
        "output-error",
        "approval-requested",
    ]
    assert with_part({**message, "parts": [settled]}, "c1", lambda part: failed(part, "boom")) is None
    assert with_part(message, "c2", lambda part: failed(part, "boom")) is None
