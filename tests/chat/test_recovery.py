"""Answers that were broken off."""

from typing import Any

import pytest

from perdure.chat.interactions import Interaction
from perdure.chat.recovery import rebuild
from perdure.chat.repair import INTERRUPTED
from perdure.protocol.messages import UIMessage
from tests.chat.chunks import Chunk, called, said

START: list[Chunk] = [{"type": "start", "messageId": "a1"}, {"type": "start-step"}]


def test_an_answer_that_broke_off_is_kept_as_far_as_it_went_and_closed() -> None:
    chunks = [*START, *said("Let me see.", id="0"), *called("add", "c1", {"a": 1}), *said("It is", id="1")[:-1]]
    assert rebuild("m", chunks) == {
        "id": "a1",
        "role": "assistant",
        "parts": [
            {"type": "step-start"},
            {"type": "text", "text": "Let me see.", "state": "done"},
            {
                "type": "tool-add",
                "toolCallId": "c1",
                "state": "output-error",
                "input": {"a": 1},
                "errorText": INTERRUPTED,
            },
            {"type": "text", "text": "It is", "state": "done"},
        ],
    }


def test_a_call_whose_result_was_recorded_keeps_it() -> None:
    output = {"type": "tool-output-available", "toolCallId": "c1", "output": 3}
    message = rebuild("m", [*START, *called("add", "c1", {}), output])
    assert message is not None
    assert (message["parts"][1]["state"], message["parts"][1]["output"]) == ("output-available", 3)


@pytest.mark.parametrize("chunks", [[], START[:1], START, [*START, {"type": "finish-step"}]])
def test_there_is_nothing_to_keep_of_an_answer_that_said_nothing(chunks: list[Chunk]) -> None:
    assert rebuild("m", chunks) is None


def test_a_continuation_that_broke_off_keeps_the_message_that_it_went_on_with() -> None:
    message = rebuild("m", [*START, *said("Hi")])
    assert message is not None
    extended = rebuild("other", [{"type": "start"}, {"type": "start-step"}, *said("lo")[:-1]], message)
    assert extended is not None
    assert extended["id"] == "a1"
    assert [part.get("text") for part in extended["parts"]] == [None, "Hi", None, "lo"]
    assert len(message["parts"]) == 2
    assert rebuild("other", [{"type": "start"}, {"type": "start-step"}], message) is None, "nothing came of it"


def test_an_answer_whose_beginning_is_lost_has_the_id_that_was_noted_for_it() -> None:
    message = rebuild("m", said("Hi"))
    assert message is not None
    assert message["id"] == "m"


def test_what_a_tool_showed_before_it_was_interrupted_is_no_result() -> None:
    call = {"type": "tool-input-available", "toolCallId": "c1", "toolName": "work", "input": {}}
    shown = {"type": "tool-output-available", "toolCallId": "c1", "output": 10, "preliminary": True}
    message = rebuild("a1", [call, shown])
    assert message is not None
    (part,) = message["parts"]
    assert (part["state"], part["errorText"]) == ("output-error", INTERRUPTED)
    assert not {"output", "preliminary"} & set(part)


# ── calls that wait, and what was answered meanwhile ────────────────


def asks(call: str, approval: str = "ap") -> Chunk:
    return {"type": "tool-approval-request", "toolCallId": call, "approvalId": approval}


def answered(call: str, **fields: Any) -> Interaction:
    given: dict[str, Any] = {"runs": "server", "approval": "ap", **fields}
    return Interaction(call=call, turn="t", message="a1", tool="add", input={"a": 1}, asked_ms=1, **given)


def approved(call: str) -> UIMessage | None:
    """The message of a turn that asked; the answer was yes."""
    made = answered(call, decision="approved")
    return rebuild("m", [*START, *called("add", call, {}), asks(call)], interactions=[made], left={call})


def part_of(message: UIMessage | None, call: str) -> dict[str, Any]:
    assert message is not None
    (part,) = [part for part in message["parts"] if part.get("toolCallId") == call]
    return part


def test_a_call_that_somebody_is_asked_about_stays_open_beside_one_that_has_no_outcome() -> None:
    chunks = [*START, *called("add", "c1", {}), *called("add", "c2", {}), asks("c2"), *called("add", "c3", {})]
    message = rebuild("m", chunks, interactions=[answered("c2"), answered("c3", approval=None)], left={"c2", "c3"})
    assert [part_of(message, call)["state"] for call in ("c1", "c2", "c3")] == [
        "output-error",
        "approval-requested",
        "input-available",
    ]
    assert part_of(message, "c2")["approval"] == {"id": "ap"}


@pytest.mark.parametrize(
    ("decision", "state"),
    [("approved", "approval-responded"), ("denied", "output-denied"), (None, "approval-requested")],
)
def test_a_decision_that_was_made_in_mid_stream_is_in_the_message(decision: Any, state: str) -> None:
    made = answered("c1", decision=decision, reason="So.", edited={"a": 2} if decision == "approved" else None)
    message = rebuild("m", [*START, *called("add", "c1", {"a": 1}), asks("c1")], interactions=[made], left={"c1"})
    part = part_of(message, "c1")
    assert part["state"] == state
    assert part["input"] == ({"a": 2} if decision == "approved" else {"a": 1})
    assert part["approval"] == {
        "id": "ap",
        **({} if decision is None else {"approved": decision == "approved", "reason": "So."}),
    }


def test_a_result_keeps_the_decision_that_came_before_it() -> None:
    output = {"type": "tool-output-available", "toolCallId": "c1", "output": 3, "preliminary": False}
    made = answered("c1", runs="client", state="settled", decision="approved", edited={"a": 2})
    message = rebuild("m", [*START, *called("add", "c1", {"a": 1}), asks("c1"), output], interactions=[made])
    part = part_of(message, "c1")
    assert (part["state"], part["output"], part["input"]) == ("output-available", 3, {"a": 2})
    assert part["approval"]["approved"] is True


def test_a_result_that_somebody_gave_says_nothing_of_a_decision() -> None:
    output = {"type": "tool-output-available", "toolCallId": "c1", "output": 3}
    made = answered("c1", state="settled", decision="answered")
    message = rebuild("m", [*START, *called("add", "c1", {}), asks("c1"), output], interactions=[made])
    assert part_of(message, "c1")["approval"] == {"id": "ap"}


def test_a_call_that_was_denied_is_left_alone() -> None:
    denied = answered("c1", state="settled", decision="denied")
    message = rebuild("m", [*START, *called("add", "c1", {}), asks("c1")], interactions=[denied])
    assert part_of(message, "c1")["state"] == "output-denied"
    assert "errorText" not in part_of(message, "c1")


@pytest.mark.parametrize("left", [set[str](), {"c1"}])
def test_an_approved_call_of_a_message_that_was_gone_on_with_is_settled_unless_it_is_still_to_run(
    left: set[str],
) -> None:
    before = rebuild(
        "m",
        [*START, *called("add", "c1", {}), asks("c1")],
        interactions=[answered("c1", decision="approved")],
        left={"c1"},
    )
    message = rebuild("other", [{"type": "start"}], before, left=left)
    if left:
        assert message is None, "nothing has changed"
    else:
        assert part_of(message, "c1")["errorText"] == INTERRUPTED


def test_the_result_of_an_approved_call_is_on_the_part_of_the_message_that_was_gone_on_with() -> None:
    before = rebuild(
        "m",
        [*START, *called("add", "c1", {}), asks("c1")],
        interactions=[answered("c1", decision="approved")],
        left={"c1"},
    )
    output = {"type": "tool-output-available", "toolCallId": "c1", "output": 3}
    message = rebuild("other", [{"type": "start"}, output, {"type": "start-step"}, *said("Three")[:-1]], before)
    assert part_of(message, "c1")["output"] == 3
    assert message is not None
    assert [part["type"] for part in message["parts"]] == ["step-start", "tool-add", "step-start", "text"]


def test_damaged_chunks_are_no_questions() -> None:
    odd: list[Chunk] = [
        {"type": "tool-approval-request", "toolCallId": value, "approvalId": "ap"} for value in ([], {}, None, 5)
    ]
    message = rebuild("m", [*START, *called("add", "c1", {}), *odd], interactions=[answered("c1", decision="approved")])
    assert part_of(message, "c1")["state"] == "output-error"
