"""Answers HTTP requests with the application's own method of an agent. Knows no route and no CORS."""

from __future__ import annotations

import inspect
import logging
from typing import Any, cast

from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import PlainTextResponse, Response
from starlette.types import Message, Receive, Scope, Send

from perdure.agent.base import Agent
from perdure.errors import ConfigurationError

__all__ = ["answer_request"]

logger = logging.getLogger(__name__)


async def answer_request(agent: Agent, scope: Scope, receive: Receive, send: Send) -> None:
    """Answer one request. What fails before anything was sent becomes a 500 that says nothing of the inside."""
    begun = False

    async def sending(message: Message) -> None:
        nonlocal begun
        begun = True
        await send(message)

    try:
        response = await _response(agent, Request(scope, receive))
        await response(scope, receive, sending)
    except ClientDisconnect:
        return  # nobody is left to answer
    except HTTPException as error:
        if begun:
            raise
        await PlainTextResponse(error.detail, error.status_code, error.headers)(scope, receive, send)
    except Exception:
        # The application's own code: only the log says what went wrong.
        if begun:
            raise
        logger.exception("%s.on_request failed", type(agent).__name__)
        await PlainTextResponse("Internal Server Error", 500)(scope, receive, send)


async def _response(agent: Agent, request: Request) -> Response:
    result: Any = agent.on_request(request)
    if inspect.isawaitable(result):
        result = await cast("Any", result)
    if not isinstance(result, Response):
        raise ConfigurationError(
            f"{type(agent).__name__}.on_request returned {result!r:.60}: "
            "it must return one of the responses of starlette.responses."
        )
    return result
