"""Who gets in: asks the application's hooks, and turns what they say into answers (reference: protocol §1.9, §1.12)."""

from __future__ import annotations

import inspect
import logging
from collections.abc import Awaitable, Callable
from typing import NamedTuple, cast

from starlette.responses import PlainTextResponse, Response

from perdure.agent.refusal import Refuse
from perdure.errors import ConfigurationError
from perdure.server.requests import IncomingRequest

__all__ = ["Closing", "Hook", "Verdict", "ask", "closing", "rejection", "response"]

logger = logging.getLogger(__name__)


Verdict = IncomingRequest | Refuse | Response
"""What comes of asking: go on with this request, or an answer that ends it."""
Hook = Callable[[IncomingRequest], "Verdict | Awaitable[Verdict | None] | None"]
"""A hook of the application: ``None`` lets the request in as it is."""


class Closing(NamedTuple):
    """How a WebSocket is closed."""

    code: int
    reason: str


async def ask(hook: Hook | None, request: IncomingRequest) -> Verdict:
    """What the hook says. One that fails keeps everybody out: the log says why, the client does not."""
    if hook is None:
        return request
    try:
        verdict = hook(request)
        if inspect.isawaitable(verdict):
            verdict = await verdict
        if verdict is None:
            return request
        if not isinstance(cast("object", verdict), (IncomingRequest, Refuse, Response)):
            raise ConfigurationError(
                f"A hook returned {verdict!r:.60}: return None to let the request in, Refuse(status, reason), a "
                "response, or the request with other headers."
            )
    except Exception:
        # The application's code: it may not let in whom it could not check.
        logger.exception("A hook failed for a request to %s/%s", request.class_name, request.agent_name)
        return Refuse(500, "Internal Server Error")
    return verdict


def response(refusal: Refuse | Response) -> Response:
    """A refusal as an answer to an HTTP request."""
    if isinstance(refusal, Response):
        return refusal
    status = refusal.status
    if status >= 1000:
        status = status - 4000 if 4400 <= status <= 4499 else 403
    return PlainTextResponse(refusal.reason or "Forbidden", status)


def closing(refusal: Refuse | Response) -> Closing:
    """A refusal as the end of a WebSocket. A response's text becomes the reason."""
    if isinstance(refusal, Response):
        body: bytes = getattr(refusal, "body", b"")
        text = bytes(body).decode(errors="replace") if refusal.media_type == "text/plain" else ""
        status, reason = refusal.status_code, text
    else:
        status, reason = refusal.status, refusal.reason
    if status >= 1000:
        code = status
    elif 400 <= status <= 499:
        code = 4000 + status
    elif status >= 500:
        code = 1013 if status == 503 else 1011
    else:
        code = 1008
    return Closing(code, reason or f"Connection rejected ({status})")


def rejection(refusal: Refuse) -> Closing:
    """The refusal of an agent above a sub-agent as the end of a WebSocket (reference: protocol §1.11)."""
    status = refusal.status
    if status >= 1000:
        code = status
    elif status <= 499:
        code = 4000 + status
    else:
        code = 1011
    return Closing(code, f"Sub-agent connection rejected ({status})")
