"""What the server sends, as text that is ready for every socket (reference: protocol §2–§4, Appendix B).

Each function gives one frame. Fields that do not apply are absent, never ``null``. Messages and chunk bodies come in as
the JSON text that is kept, so nothing is encoded twice. Pure.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Literal

from perdure.protocol.codec import encode_text, quote

__all__ = [
    "ChunkFrames",
    "body_of",
    "cleared",
    "identity",
    "mcp_servers",
    "message_updated",
    "nothing_to_resume",
    "pending",
    "resuming",
    "rpc_error",
    "rpc_result",
    "state",
    "state_error",
    "terminal",
    "terminal_error",
    "transcript",
]

Outcome = Literal["completed", "error", "aborted", "skipped", "recovering"]


def identity(name: str, agent: str, *, state_follows: bool = False) -> str:
    """Who answers on this socket; with ``state_follows`` the next frame must be :func:`state`."""
    mark = {"stateFollows": True} if state_follows else {}
    return encode_text({"type": "cf_agent_identity", "name": name, "agent": agent, **mark})


def state(value: str) -> str:
    """The agent's state. ``value`` is its JSON text."""
    return f'{{"type":"cf_agent_state","state":{value}}}'


def state_error(text: str) -> str:
    """A client's state was not taken."""
    return encode_text({"type": "cf_agent_state_error", "error": text})


def rpc_result(call: str, value: str | None, *, done: bool = True) -> str:
    """A call's result, or with ``done=False`` one of several. ``value`` is its JSON text, ``None`` for no value."""
    result = "" if value is None else f',"result":{value}'
    return f'{{"type":"rpc","id":{quote(call)},"success":true,"done":{"true" if done else "false"}{result}}}'


def rpc_error(call: str, text: str) -> str:
    """A call failed."""
    return encode_text({"type": "rpc", "id": call, "success": False, "error": text})


def mcp_servers() -> str:
    """The connected MCP servers: none."""
    return encode_text(
        {"type": "cf_agent_mcp_servers", "mcp": {"servers": {}, "tools": [], "prompts": [], "resources": []}}
    )


def transcript(messages: Iterable[str], *, connect: bool = False) -> str:
    """The whole conversation.

    Args:
        messages: The messages' JSON texts, oldest first.
        connect: Whether this is the copy that a new connection is greeted with.
    """
    mark = '"connect":true,' if connect else ""
    return f'{{"type":"cf_agent_chat_messages",{mark}"messages":[{",".join(messages)}]}}'


def message_updated(message: str) -> str:
    """A tool call of a message changed. ``message`` is the whole message as JSON text."""
    return f'{{"type":"cf_agent_message_updated","message":{message}}}'


def cleared() -> str:
    """The conversation was forgotten."""
    return '{"type":"cf_agent_chat_clear"}'


def resuming(request_id: str, probe_id: str | None = None) -> str:
    """A stream is on offer."""
    return _answer("cf_agent_stream_resuming", id=request_id, probeId=probe_id)


def pending(request_id: str, probe_id: str | None = None) -> str:
    """A turn is accepted; its stream has not started."""
    return _answer("cf_agent_stream_pending", id=request_id, probeId=probe_id)


def nothing_to_resume(reason: str | None = None, probe_id: str | None = None) -> str:
    """There is no stream to attach to; with reason ``idle`` that is certain."""
    return _answer("cf_agent_stream_resume_none", reason=reason, probeId=probe_id)


def _answer(kind: str, **fields: str | None) -> str:
    return encode_text({"type": kind, **{key: value for key, value in fields.items() if value is not None}})


class ChunkFrames:
    """The ``cf_agent_use_chat_response`` frames of one stream.

    A chunk's body travels as a JSON string; it is quoted once and that text serves the live frame, every replay and the
    stored log.
    """

    __slots__ = ("_head", "_mark")

    def __init__(self, request_id: str, *, continuation: bool = False) -> None:
        self._head = f'{{"type":"cf_agent_use_chat_response","id":{quote(request_id)},"body":'
        self._mark = ',"continuation":true}' if continuation else "}"

    def live(self, body: str, seq: int) -> str:
        """A chunk as it is made. ``body`` is the quoted chunk, ``seq`` its number in the stream."""
        return f'{self._head}{body},"done":false,"seq":{seq}{self._mark}'

    def replayed(self, body: str, seq: int) -> str:
        """The same chunk again, for one connection that asked."""
        return f'{self._head}{body},"done":false,"replay":true,"seq":{seq}{self._mark}'

    def replay_complete(self) -> str:
        """The replay is over; live chunks follow."""
        return f'{self._head}"","done":false,"replay":true,"replayComplete":true{self._mark}'

    def replay_done(self) -> str:
        """The replay is over, and so is the stream."""
        return f'{self._head}"","done":true,"replay":true{self._mark}'

    def error(self, text: str, message_ids: Sequence[str]) -> str:
        """The model failed in mid-stream; a terminal frame follows. ``text`` is for people to read."""
        return f'{self._head}{quote(text)},"done":false,"error":true{_ids(message_ids)}{self._mark}'

    def terminal(self, outcome: Outcome, message_ids: Sequence[str]) -> str:
        """The request is over."""
        return f'{self._head}"","done":true,"outcome":"{outcome}"{_ids(message_ids)}{self._mark}'

    def terminal_error(self, text: str, message_ids: Sequence[str]) -> str:
        """The request is over, and this is why it failed."""
        return f'{self._head}{quote(text)},"done":true,"error":true,"outcome":"error"{_ids(message_ids)}{self._mark}'


def terminal(request_id: str, outcome: Outcome, message_ids: Sequence[str]) -> str:
    """:meth:`ChunkFrames.terminal` for a request that has no stream."""
    return ChunkFrames(request_id).terminal(outcome, message_ids)


def terminal_error(request_id: str, text: str, message_ids: Sequence[str] = ()) -> str:
    """:meth:`ChunkFrames.terminal_error` for a request that has no stream."""
    return ChunkFrames(request_id).terminal_error(text, message_ids)


def _ids(message_ids: Sequence[str]) -> str:
    return f',"messageIds":{encode_text(list(message_ids))}' if message_ids else ""


def body_of(chunk: dict[str, Any]) -> str:
    """A chunk as the quoted text that its frames carry."""
    return quote(encode_text(chunk))
