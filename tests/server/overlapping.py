"""What the tests of overlapping messages share: questions that come while the first answer is being made."""

from collections.abc import Sequence
from typing import Any

from perdure.protocol.messages import text_of as words_of
from perdure.testing import Gate, ScriptedModel, pause, say
from perdure.testing.scripted import RecordedRequest
from tests.support import Frame, Tab, user_message

__all__ = ["ask_all", "outcomes", "said", "shown", "slow"]


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


def outcomes(tab: Tab) -> list[tuple[str, str]]:
    """How requests ended, in the order in which they did."""
    return [(frame["id"], frame["outcome"]) for frame in tab.frames if frame.get("done")]
