"""What goes wrong between us and a provider, as our own errors with the provider's own words."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from typing import Any, cast

import httpx2
from pydantic_ai.exceptions import (
    FallbackExceptionGroup,
    ModelAPIError,
    ModelHTTPError,
    UnexpectedModelBehavior,
    UserError,
)

from perdure.errors import ModelRejected, ModelUnreachable

__all__ = ["provider_errors", "refused_requests"]


@contextmanager
def provider_errors(name: str) -> Generator[None]:
    """Turns provider errors into ours. ``name`` is the model's.

    Raises:
        ModelRejected: the provider answered with an error; ``status`` is its HTTP status, also for an error that it put
            into a stream, and None if it gave none.
        ModelUnreachable: no connection, a timeout, a broken connection, or an answer that makes no sense.
    """
    try:
        yield
    except ModelHTTPError as error:
        raise ModelRejected(_words_of(error), status=error.status_code) from error
    except ModelAPIError as error:
        # Errors of the transport carry no body; an error object without a clear status does.
        if error.body is not None:
            raise ModelRejected(_words_of(error)) from error
        raise ModelUnreachable(f"{name}: {_with_cause(error)}") from error
    except FallbackExceptionGroup as error:
        reasons = "; ".join(str(one) for one in error.exceptions)
        raise ModelUnreachable(f"{name}: {error.message} ({reasons})") from error
    except UnexpectedModelBehavior as error:
        raise ModelUnreachable(f"{name}: {error.message}") from error
    except httpx2.HTTPError as error:
        raise ModelUnreachable(f"{name}: {str(error) or type(error).__name__}") from error


@contextmanager
def refused_requests(name: str) -> Generator[None]:
    """Turns into :class:`ModelRejected` what an adapter raises for a conversation that its provider has no form for.

    For example a video for a provider that takes none. Adapters use several built-in classes for it, so this encloses
    nothing but the opening of a request.
    """
    try:
        yield
    except (AssertionError, NotImplementedError, UserError, ValueError) as error:
        raise ModelRejected(f"{name} cannot be sent this conversation: {error}") from error


def _words_of(error: ModelAPIError) -> str:
    return _message_in(error.body) or error.message


def _with_cause(error: ModelAPIError) -> str:
    """The error's text and, as "Connection error." says little, what the transport said."""
    cause: BaseException = error
    while cause.__cause__ is not None:
        cause = cause.__cause__
    detail = str(cause)
    return error.message if not detail or detail in error.message else f"{error.message} ({detail})"


def _message_in(body: Any) -> str | None:
    """The text of an error body: ``{"error": {"message": …}}`` and what else is in use."""
    if isinstance(body, str):
        return body.strip() or None
    if isinstance(body, dict):
        fields = cast("dict[str, Any]", body)
        for key in ("error", "message", "detail"):
            if text := _message_in(fields.get(key)):
                return text
    return None
