"""What clients send: the frames of the chat layer, checked as they come in (reference: protocol §3, §6.1).

:func:`parse` never raises: what cannot be used comes back as :class:`Unusable` with the reason. Pure.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Annotated, Any, Literal, cast

import msgspec

from perdure.errors import BadRequest
from perdure.protocol import codec
from perdure.protocol.messages import Role

__all__ = [
    "MAX_ID",
    "MAX_NESTING",
    "Ack",
    "Cancel",
    "ChatBody",
    "ChatFrame",
    "ChatRequest",
    "Clear",
    "ClientFrame",
    "Id",
    "PostedMessage",
    "Probe",
    "RpcRequest",
    "StateUpdate",
    "Unusable",
    "Upload",
    "check_user_message",
    "parse",
    "parse_chat_body",
]


MAX_NESTING = 100
"""How deep lists and objects may stand in each other in what is taken over from a client. Whoever handles it later goes
down to its bottom, and may have less of the stack left than there was here."""

MAX_ID = 1024
"""Most characters of an id that a client chooses: it is kept, and sent back with every frame."""

MAX_MESSAGES = 100_000
"""Most messages in a posted conversation, known and new."""

Id = Annotated[str, msgspec.Meta(min_length=1, max_length=MAX_ID)]


class ChatInit(msgspec.Struct):
    method: str = ""
    body: str = ""


class ChatRequest(msgspec.Struct):
    """``cf_agent_use_chat_request``: answer this conversation."""

    id: Id
    init: ChatInit


class Cancel(msgspec.Struct):
    """``cf_agent_chat_request_cancel``: stop the turn of this request."""

    id: Id


class Clear(msgspec.Struct):
    """``cf_agent_chat_clear``: forget the conversation."""


class Probe(msgspec.Struct):
    """``cf_agent_stream_resume_request``: is there a stream to attach to?"""

    probeId: Annotated[str, msgspec.Meta(max_length=MAX_ID)] | None = None  # noqa: N815 - the name on the wire


class Ack(msgspec.Struct):
    """``cf_agent_stream_resume_ack``: replay this stream to me."""

    id: Id


class Upload(msgspec.Struct):
    """``cf_agent_chat_messages`` from a client. The server owns the history: it changes nothing."""


class StateUpdate(msgspec.Struct):
    """``cf_agent_state`` from a client: this is the state now."""

    state: Any


class RpcRequest(msgspec.Struct):
    """``rpc``: call a method."""

    id: str
    method: str
    args: list[Any]


class Unusable(msgspec.Struct):
    """A frame that cannot be used."""

    reason: str
    request_id: str | None = None
    """The chat request that it was meant to be, when it says so."""
    foreign: bool = False
    """Whether it is none of the protocol's frames: the application may know it."""


ChatFrame = ChatRequest | Cancel | Clear | Probe | Ack | Upload
ClientFrame = ChatFrame | StateUpdate | RpcRequest | Unusable

_KINDS: dict[str, type[ChatFrame | StateUpdate | RpcRequest]] = {
    "cf_agent_use_chat_request": ChatRequest,
    "cf_agent_chat_request_cancel": Cancel,
    "cf_agent_chat_clear": Clear,
    "cf_agent_stream_resume_request": Probe,
    "cf_agent_stream_resume_ack": Ack,
    "cf_agent_chat_messages": Upload,
    "cf_agent_state": StateUpdate,
    "rpc": RpcRequest,
}


class _Head(msgspec.Struct):
    # As they are: whatever stands there is decoded only where it is a text.
    type: msgspec.Raw = msgspec.Raw(b"null")
    id: msgspec.Raw = msgspec.Raw(b"null")


def parse(text: str) -> ClientFrame:
    """One text frame."""
    try:
        head = codec.decode_as(_Head, text)
    except codec.DecodeError as error:
        return Unusable(f"not a JSON object: {error}", foreign=True)
    name = _text(head.type) or ""
    kind = _KINDS.get(name)
    if kind is None:
        return Unusable(f"unknown type {name!r:.60}", foreign=True)
    try:
        if kind in {StateUpdate, RpcRequest}:
            _check_values(text)
        frame = codec.decode_as(kind, text)
        if isinstance(frame, StateUpdate):
            _check_nesting([frame.state])
        elif isinstance(frame, RpcRequest):
            _check_nesting(frame.args)
        return frame
    except codec.DecodeError as error:
        wanted = _text(head.id) or None if kind is ChatRequest else None
        return Unusable(f"{name}: {error}", wanted, foreign=kind in {StateUpdate, RpcRequest})


def _text(raw: msgspec.Raw) -> str | None:
    data = bytes(raw)
    return codec.decode(data) if data.startswith(b'"') else None


class PostedMessage(msgspec.Struct, frozen=True):
    """One message of a posted conversation, not decoded further than needed."""

    id: str
    role: Role
    text: str
    """The message as JSON text, exactly as posted."""


class ChatBody(msgspec.Struct, frozen=True):
    """The body of a chat request."""

    messages: list[PostedMessage]
    trigger: Literal["submit-message", "regenerate-message"]
    custom: dict[str, Any]
    """Every other field that the page sent."""


class _Conversation(msgspec.Struct):
    messages: msgspec.Raw = msgspec.Raw(b"null")


class _PostedHead(msgspec.Struct):
    id: Id
    role: Role


class _Part(msgspec.Struct):
    type: str


class _UserMessage(msgspec.Struct):
    id: str
    parts: list[_Part]


_RESERVED = frozenset({"messages", "trigger", "clientTools"})


def parse_chat_body(init: ChatInit) -> ChatBody:
    """The body of a chat request.

    Raises:
        BadRequest: not a POST, no body, not JSON, or ``messages`` is not a list of messages.
    """
    if init.method != "POST":
        raise BadRequest(f"The chat request has method {init.method!r:.20}; it must be POST.")
    if not init.body.strip():
        raise BadRequest("The chat request has no body.")
    try:
        _check_extras(init.body)
        fields = codec.decode_as(dict[str, msgspec.Raw], init.body)
        posted = codec.decode_as(list[msgspec.Raw], bytes(fields.get("messages", msgspec.Raw(b"null"))))
        if len(posted) > MAX_MESSAGES:
            raise msgspec.ValidationError(f"more than {MAX_MESSAGES:,} messages")
        messages = [_posted(raw) for raw in posted]
        trigger = codec.decode(bytes(fields.get("trigger", msgspec.Raw(b"null"))))
        custom = {key: codec.decode(bytes(raw)) for key, raw in fields.items() if key not in _RESERVED}
        _check_nesting(custom.values())
    except codec.DecodeError as error:
        raise BadRequest(f"The chat request's body cannot be read: {error}") from error
    # Without a message it does not say which answer it wants again (reference: protocol §6.8).
    again = trigger == "regenerate-message" and bool(messages)
    return ChatBody(messages, "regenerate-message" if again else "submit-message", custom)


def _check_extras(body: str) -> None:
    """Check what a page sent beside the conversation, before it is decoded."""
    if len(body) > codec.MAX_VALUES:
        messages = bytes(codec.decode_as(_Conversation, body).messages)
        _check_values(body.encode(errors="replace").replace(messages, b"", 1))


def _posted(raw: msgspec.Raw) -> PostedMessage:
    head = codec.decode_as(_PostedHead, bytes(raw))
    return PostedMessage(head.id, head.role, str(bytes(raw), "utf-8"))


def check_user_message(message: PostedMessage) -> None:
    """Check a message that is about to be stored.

    Raises:
        BadRequest: it has no list of parts, a part has no type, it nests deeper than :data:`MAX_NESTING`, or it has
            more values than :data:`codec.MAX_VALUES`.
    """
    try:
        _check_values(message.text)
        codec.decode_as(_UserMessage, message.text)
        _check_nesting([codec.decode(message.text)])
    except codec.DecodeError as error:
        raise BadRequest(f"The message {message.id!r:.60} cannot be stored: {error}") from error


def _check_values(text: str | bytes) -> None:
    if codec.has_too_many_values(text):
        raise msgspec.ValidationError(f"more than {codec.MAX_VALUES:,} values")


def _check_nesting(values: Iterable[Any]) -> None:
    level: list[Any] = [value for value in values if isinstance(value, dict | list)]
    for _ in range(MAX_NESTING):
        level = [child for value in level for child in _children(value) if isinstance(child, dict | list)]
        if not level:
            return
    raise msgspec.ValidationError(f"nested deeper than {MAX_NESTING} levels")


def _children(value: Any) -> Iterable[Any]:
    return cast("dict[str, Any]", value).values() if isinstance(value, dict) else value
