"""Runs what clients call, and sends the replies (reference: protocol §11)."""

from __future__ import annotations

import contextlib
import inspect
import logging
import typing
from collections.abc import AsyncGenerator, Callable, Generator
from typing import Any, cast

from perdure.agent.connection import Connection, current_connection
from perdure.observability import emit
from perdure.protocol import codec
from perdure.protocol import server_frames as frames
from perdure.protocol.client_frames import RpcRequest

__all__ = ["ReplyStream", "answer_call"]

logger = logging.getLogger(__name__)


class ReplyStream:
    """The replies to one call, sent one by one. What is sent after the end goes nowhere."""

    def __init__(self, connection: Connection, call: str) -> None:
        self._connection = connection
        self._call = call
        self.closed = False
        """Whether the call has its last reply."""

    def send(self, value: Any) -> bool:
        """Send one value. False when the stream is closed, or the client gone.

        Raises:
            TypeError: the value has no JSON form.
        """
        if self.closed:
            logger.warning("A value was sent on a stream that is closed: call %s", self._call)
            return False
        self._connection.send(frames.rpc_result(self._call, codec.encode_text(value), done=False))
        return not self._connection.closed

    def end(self, *value: Any) -> bool:
        """End the stream, with a last value if one is given. False when it is closed already."""
        if self.closed:
            return False
        text = codec.encode_text(value[0]) if value else None
        self.closed = True
        self._connection.send(frames.rpc_result(self._call, text))
        return True

    def error(self, text: str) -> bool:
        """End the stream with an error. False when it is closed already."""
        if self.closed:
            return False
        self.closed = True
        self._connection.send(frames.rpc_error(self._call, text))
        return True


async def answer_call(method: Callable[..., Any], connection: Connection, request: RpcRequest) -> None:
    """Run ``method`` for a client and send what comes of it. Whatever it raises is its reply."""
    current_connection.set(connection)
    replies = ReplyStream(connection, request.id)
    try:
        takes_stream = _takes_stream(method)
        streams = takes_stream or inspect.isasyncgenfunction(method) or inspect.isgeneratorfunction(method)
        emit("rpc", method=request.method, streaming=streams or None)
        result = method(replies, *request.args) if takes_stream else method(*request.args)
        if inspect.isawaitable(result):
            result = await result
        if not takes_stream:
            await _reply(method, result, replies)
    except Exception as error:
        # A method of the application: what it raises belongs to whoever called it.
        logger.info("The call %s failed", request.method, exc_info=True)
        text = str(error) or type(error).__name__
        emit("rpc:error", method=request.method, error=text)
        replies.error(text)


async def _reply(method: Callable[..., Any], result: Any, replies: ReplyStream) -> None:
    """Send what a method gave: all values of a generator, or the one value."""
    if inspect.isasyncgen(result):
        async with contextlib.aclosing(cast("AsyncGenerator[Any, None]", result)) as values:
            async for value in values:
                if not replies.send(value):
                    return  # nobody is there any more
        replies.end()
    elif inspect.isgenerator(result):
        with contextlib.closing(cast("Generator[Any, Any, Any]", result)) as values:
            for value in values:
                if not replies.send(value):
                    return
        replies.end()
    elif result is None and _promises_nothing(method):
        replies.end()
    else:
        replies.end(result)


def _promises_nothing(method: Callable[..., Any]) -> bool:
    """Whether a method says that it gives no value. For any other, ``None`` is the value null."""
    promised: Any = inspect.signature(method).return_annotation
    return promised is None or (isinstance(promised, str) and promised == "None")


def _takes_stream(method: Callable[..., Any]) -> bool:
    parameters = iter(inspect.signature(method).parameters.values())
    first = next(parameters, None)
    if first is None or first.annotation is inspect.Parameter.empty:
        return False
    if first.annotation is ReplyStream:
        return True
    try:
        return typing.get_type_hints(method).get(first.name) is ReplyStream
    except (NameError, TypeError):
        return isinstance(first.annotation, str) and first.annotation.rpartition(".")[2] == "ReplyStream"
