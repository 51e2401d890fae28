"""How a turn ends: what is kept of it, what people are sent, what whoever asked for it learns. Decides nothing."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from perdure.agent.hooks import call, overridden
from perdure.agent.stopping import is_stopping
from perdure.agent.stream import ChunkLog
from perdure.agent.think import Think
from perdure.agent.turn import Turn
from perdure.agent.turn_config import ChatResponse, TurnResult
from perdure.protocol import server_frames as frames

__all__ = ["Ending", "Failure", "report", "tell_application", "terminal_frame"]

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Ending:
    """How a turn ended."""

    outcome: frames.Outcome
    error: str | None = None
    """The text that people are shown."""
    told: bool = False
    """Whether it was said in the stream already."""


@dataclass(frozen=True, slots=True)
class Failure:
    """The turn that failed last, kept for clients that were away."""

    log: ChunkLog
    message: str
    """Id of the message that holds what was said, if there is one."""
    text: str
    origin_ids: Sequence[str]


def terminal_frame(turn: Turn, ending: Ending) -> str:
    """The frame after which nothing more of a turn comes."""
    end = frames.ChunkFrames(turn.id, continuation=turn.continuation)
    if ending.error is None or ending.told:
        return end.terminal(ending.outcome, turn.origin_ids)
    return end.terminal_error(ending.error, turn.origin_ids)


def report(turn: Turn, ending: Ending, *, stale: bool) -> None:
    """Whoever waits for the turn learns how it ended. ``stale``: the conversation was cleared meanwhile."""
    if turn.result is None or turn.result.done():
        return
    completed = ending.outcome == "completed" and not stale
    turn.result.set_result(
        TurnResult(
            request_id=turn.id,
            status="skipped" if ending.outcome == "completed" and stale else _status(ending),
            error=ending.error,
            message=turn.builder.message() if completed and turn.builder.has_content else None,
            continuation=turn.continuation,
        )
    )


async def tell_application(think: Think, turn: Turn, ending: Ending) -> None:
    """Call ``on_chat_response``, if the class has it."""
    if not overridden(think, Think.on_chat_response):
        return
    response = ChatResponse(
        request_id=turn.id,
        status=_status(ending),
        message=turn.builder.message(),
        continuation=turn.continuation,
        error=ending.error,
    )
    try:
        await call(think.on_chat_response, response)
    except (Exception, asyncio.CancelledError) as error:
        if isinstance(error, asyncio.CancelledError) and is_stopping():
            raise
        # The turn is over and stored: what the application makes of it changes nothing.
        logger.exception("on_chat_response failed for turn %s", turn.id)


def _status(ending: Ending) -> Any:
    return "aborted" if ending.outcome == "recovering" else ending.outcome
