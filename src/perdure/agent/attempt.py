"""Tries to answer: takes what the turn brings, asks the application, runs the steps, and says how it ended."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from perdure.agent.answer import Answer
from perdure.agent.ending import Ending
from perdure.agent.hooks import call, overridden, prepare
from perdure.agent.inputs import as_messages
from perdure.agent.loop import run_steps
from perdure.agent.overtaking import overtake
from perdure.agent.room import Room
from perdure.agent.stopping import is_stopping
from perdure.agent.think import Think
from perdure.agent.turn import Turn
from perdure.agent.turn_config import ChatErrorContext
from perdure.chat.builder import MessageBuilder
from perdure.errors import ModelError, PerdureError
from perdure.models.contract import HistoryMessage
from perdure.observability import emit
from perdure.protocol import codec
from perdure.storage.contract import Operation

__all__ = ["attempt"]

logger = logging.getLogger(__name__)

INTERNAL_ERROR = "Something went wrong on the server. The details are in its log."


async def attempt(turn: Turn, answer: Answer, room: Room) -> Ending:
    """One try to answer. What was emitted when it is cancelled stays with the answer."""
    try:
        await overtake(room, turn)
        if (ending := await _take_inputs(turn, room)) is not None:
            return ending
        if turn.scope.cancel_called:
            return Ending("aborted")  # stopped before it began: nothing is asked of anybody
        approved = [] if turn.group is None else room.interactions.to_run(turn.group)
        history = await _history(turn, room)
        job = await prepare(room.think, turn, history, room.services.new_id, approved)
        if not history and job.instead is None:
            return Ending("skipped")  # an empty conversation: there is nothing that a model could be asked
        answer.open(job.metadata)
        await run_steps(job, answer)
    except (Exception, asyncio.CancelledError) as error:
        if isinstance(error, asyncio.CancelledError) and is_stopping():
            raise
        # The application's own code runs in there: whatever it raises ends this turn and nothing else.
        text = await _explain(error, turn, answer, room.think)
        in_stream = answer.opened and isinstance(error, ModelError)
        if in_stream:
            answer.fail(text)
        return Ending("error", text, told=in_stream)
    return Ending("completed")


async def _take_inputs(turn: Turn, room: Room) -> Ending | None:
    """Add the messages that the server's own code gave the turn. An ending when there is nothing to answer."""
    transcript = room.transcript
    if turn.continuation:
        _repair(turn, room)
        extended = transcript.leaf if turn.group is None else turn.message_id
        if extended is not None:
            await transcript.reach([extended], extended)
        last = transcript.known.get(extended or "")
        if last is None or last.message is None or last.role != "assistant" or not transcript.is_on_path(last.id):
            return Ending("skipped")
        turn.parent, turn.builder = last.parent, MessageBuilder.going_on(last.message.message)
        return None
    if turn.inputs is None:
        return None
    given: Any = turn.inputs
    if callable(given):
        given = await call(given, transcript.messages())
        if turn.scope.cancel_called:
            # Stopped, or the conversation cleared, while the application looked for messages.
            return Ending("aborted")
    operations: list[Operation] = []
    messages = as_messages(given, room.services.new_id)
    await transcript.reach([message["id"] for message in messages])
    for message in messages:
        if message["id"] not in transcript.known:
            text = codec.encode_text(message)
            now = room.services.now_ms()
            operations += transcript.append(message["id"], message["role"], text, transcript.tip(None), now)
    if operations:
        room.services.write(operations)
        room.show()
    turn.parent = transcript.tip(None)
    return None


async def _history(turn: Turn, room: Room) -> Sequence[HistoryMessage]:
    """The conversation as the model is shown it."""
    _repair(turn, room)
    if operations := room.transcript.take_in(turn.parent):
        room.services.write(operations)
    return await room.transcript.history(turn.parent, room.think.truncation_step)


def _repair(turn: Turn, room: Room) -> None:
    """Put right, once and for everybody, what is odd in the conversation."""
    repairs = room.transcript.repair(room.interactions.unsettled)
    if repairs.operations:
        calls = sorted({*repairs.settled, *repairs.normalised})
        emit(
            "chat:transcript:repaired",
            requestId=turn.id,
            removedToolCalls=len(repairs.settled),
            normalizedInputs=len(repairs.normalised),
            toolCallIds=calls,
        )
        room.services.write(repairs.operations)
        room.show()


async def _explain(error: BaseException, turn: Turn, answer: Answer, think: Think) -> str:
    """The text that people are shown: the application's, else the error's own when that is safe to show."""
    if isinstance(error, PerdureError):
        logger.warning("Turn %s failed: %s", turn.id, error)
        text = str(error)
    else:
        logger.error("Turn %s failed", turn.id, exc_info=error)
        text = INTERNAL_ERROR
    context = ChatErrorContext(
        request_id=turn.id, stage="stream" if answer.opened else "turn", continuation=turn.continuation
    )
    try:
        if overridden(think, Think.classify_chat_error):
            context = replace(context, classification=await call(think.classify_chat_error, error, context))
        shown = await call(think.on_chat_error, error, context)
    except Exception:
        logger.exception("The hooks for errors failed for turn %s", turn.id)
        return text
    return text if shown is None else str(shown)
