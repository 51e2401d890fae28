"""What clients are told when their agent cannot go on. Safe texts: the details are in the log."""

from __future__ import annotations

from perdure.errors import Fenced, StorageError

__all__ = ["close_reason", "error_text"]


def error_text(error: BaseException) -> str:
    """For the turns that were not over."""
    if isinstance(error, Fenced):
        return "The conversation is served elsewhere now. Please try again."
    if isinstance(error, StorageError):
        return "The server could not store the conversation. Please try again later."
    return "Something went wrong on the server. The details are in its log."


def close_reason(error: BaseException) -> str:
    """For the connections; at most 123 bytes, as WebSockets have it."""
    if isinstance(error, Fenced):
        return "The agent is served elsewhere now. Reconnect to go on."
    if isinstance(error, StorageError):
        return "The agent's data could not be stored or read. Reconnect to see what is kept."
    return "The agent could not be served. See the server's log."
