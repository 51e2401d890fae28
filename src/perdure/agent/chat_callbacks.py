"""Whom ``chat()`` tells of its turn: a function for the chunks, or an object that wants to know more."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from perdure.errors import TurnFailed
from perdure.models.contract import Chunk

__all__ = ["INTERRUPTED", "ChatCallbacks", "callbacks_of"]

INTERRUPTED = "The turn was interrupted: its agent went out of memory."

_NAMES = ("on_start", "on_event", "on_done", "on_error", "on_interrupted")


class ChatCallbacks:
    """What :meth:`~perdure.Think.chat` calls. Subclass it, or give any object that has some of these methods.

    Each may be ``async``. Of ``on_done``, ``on_error`` and ``on_interrupted`` one is called, at the end; none of them
    when the turn is stopped.
    """

    def on_start(self, request_id: str) -> Any:
        """The turn was accepted under this id, with which it can be stopped (``cancel_chat``). Empty when there is
        nothing to answer."""

    def on_event(self, chunk: Chunk) -> Any:
        """A chunk of the answer. Do not change it."""

    def on_done(self) -> Any:
        """The turn is over and stored."""

    def on_error(self, error: str) -> Any:
        """The turn failed; ``error`` is what clients are shown. What this raises, ``chat()`` raises; by default
        :class:`~perdure.TurnFailed`."""
        raise TurnFailed(error)

    def on_interrupted(self) -> Any:
        """The agent went out of memory before the turn was over, as when the server stops. By default ``chat()`` raises
        :class:`~perdure.TurnFailed` then."""
        raise TurnFailed(INTERRUPTED)


class _Function(ChatCallbacks):
    def __init__(self, function: Callable[[Chunk], Any] | None) -> None:
        if function is not None:
            setattr(self, "on_event", function)  # noqa: B010 - its parameter has no name to agree on


class _Some(ChatCallbacks):
    def __init__(self, given: Any) -> None:
        for name in _NAMES:
            if callable(method := getattr(given, name, None)):
                setattr(self, name, method)


def callbacks_of(given: Any) -> ChatCallbacks:
    """The callbacks in any of the forms in which they may be given.

    Raises:
        TypeError: it is none of them.
    """
    if isinstance(given, ChatCallbacks):
        return given
    if any(callable(getattr(given, name, None)) for name in _NAMES):
        return _Some(given)
    if given is None or callable(given):
        return _Function(given)
    raise TypeError(f"A callback is a function, or an object like ChatCallbacks; {type(given).__name__} is neither.")
