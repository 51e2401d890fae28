"""Answers that were broken off."""

import pytest

from perdure.chat.recovery import rebuild
from perdure.chat.repair import INTERRUPTED
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
