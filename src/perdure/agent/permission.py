"""Asks the application whether a connection may do what a frame of the chat layer says."""

from __future__ import annotations

import inspect
import logging
from typing import Any, assert_never

from perdure.agent.connection import Connection
from perdure.agent.think import ChatFrameKind, Think
from perdure.protocol import client_frames

__all__ = ["accepts", "kind_of"]

logger = logging.getLogger(__name__)


def kind_of(frame: client_frames.ChatFrame | client_frames.Unusable) -> ChatFrameKind | None:
    """What a frame would change; ``None`` for one that changes nothing."""
    match frame:
        case client_frames.ChatRequest():
            return "request"
        case client_frames.ToolResult():
            return "result"
        case client_frames.ToolApproval():
            return "approval"
        case client_frames.Clear():
            return "clear"
        case client_frames.Cancel():
            return "cancel"
        case client_frames.Probe() | client_frames.Ack() | client_frames.Upload() | client_frames.Unusable():
            return None
        case _:
            assert_never(frame)


def accepts(think: Think, connection: Connection, frame: client_frames.ChatFrame | client_frames.Unusable) -> bool:
    """Whether the frame is to be handled. When the application cannot say, it is not."""
    kind = kind_of(frame)
    if kind is None:
        return True
    try:
        answer: Any = think.accepts_chat_frame(connection, kind)
    except Exception:
        # The application's own code: what it raises keeps this frame out, and nothing else.
        logger.exception("accepts_chat_frame failed: the %s was refused", kind)
        return False
    if inspect.isawaitable(answer):
        if inspect.iscoroutine(answer):
            answer.close()
        logger.error("accepts_chat_frame must not be async: the %s was refused", kind)
        return False
    return bool(answer)
