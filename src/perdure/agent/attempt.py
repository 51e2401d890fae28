"""Tries to answer: takes what the turn brings, asks the application, runs the steps, and says how it ended."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from perdure.agent.answer import Answer
from perdure.agent.hooks import call, overridden, prepare
from perdure.agent.inputs import as_messages
from perdure.agent.loop import run_steps
from perdure.agent.room import Room
from perdure.agent.think import Think
from perdure.agent.turn import Turn
from perdure.agent.turn_config import ChatErrorContext
from perdure.chat.builder import MessageBuilder
from perdure.errors import ModelError, PerdureError
from perdure.models.contract import HistoryMessage
from perdure.protocol import codec
from perdure.protocol import server_frames as frames
from perdure.storage.contract import Operation

__all__ = ["INTERNAL_ERROR", "Ending", "attempt", "take_inputs"]

logger = logging.getLogger(__name__)

INTERNAL_ERROR = "Something went wrong on the server. The details are in its log."


@dataclass(frozen=True, slots=True)
class Ending:
    """How a turn ended."""

    outcome: frames.Outcome
    error: str | None = None
    """The text that people are shown."""
    told: bool = False
    """Whether it was said in the stream already."""


async def take_inputs(turn: Turn, room: Room) -> Ending | None:
    """Add the messages that the server's own code gave the turn. An ending when there is nothing to answer."""
    transcript = room.transcript
    if turn.inputs is None and not turn.continuation:
        return None
    if turn.continuation:
        leaf = transcript.known.get(transcript.leaf or "")
        if leaf is None or leaf.role != "assistant":
            return Ending("skipped")
        turn.parent, turn.builder = leaf.parent, MessageBuilder.going_on(leaf.message.message)
        return None
    given: Any = turn.inputs
    if callable(given):
        given = await call(given, transcript.messages())
    operations: list[Operation] = []
    for message in as_messages(given, room.services.new_id):
        if message["id"] not in transcript.known:
            text = codec.encode_text(message)
            now = room.services.now_ms()
            operations += transcript.append(message["id"], message["role"], text, transcript.tip(None), now)
    if operations:
        room.services.write(operations)
        room.show()
    turn.parent = transcript.tip(None)
    return None


async def attempt(turn: Turn, answer: Answer, room: Room) -> Ending:
    """One try to answer."""
    try:
        job = await prepare(room.think, turn, _history(turn, room))
        answer.open(job.metadata)
        await run_steps(job, answer)
    except Exception as error:
        # The application's own code runs in there: whatever it raises ends this turn and nothing else.
        text = await _explain(error, turn, answer, room.think)
        in_stream = answer.opened and isinstance(error, ModelError)
        if in_stream:
            answer.fail(text)
        return Ending("error", text, told=in_stream)
    return Ending("completed")


def _history(turn: Turn, room: Room) -> Sequence[HistoryMessage]:
    return room.transcript.history(turn.parent)


async def _explain(error: Exception, turn: Turn, answer: Answer, think: Think) -> str:
    """The text that people are shown: the application's, else the error's own when that is safe to show."""
    if isinstance(error, PerdureError):
        logger.warning("Turn %s failed: %s", turn.id, error)
        text = str(error)
    else:
        logger.error("Turn %s failed", turn.id, exc_info=error)
        text = INTERNAL_ERROR
    if not overridden(think, Think.on_chat_error):
        return text
    context = ChatErrorContext(
        request_id=turn.id, stage="stream" if answer.opened else "turn", continuation=turn.continuation
    )
    try:
        shown = await call(think.on_chat_error, error, context)
    except Exception:
        logger.exception("on_chat_error failed for turn %s", turn.id)
        return text
    return text if shown is None else str(shown)
