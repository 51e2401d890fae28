"""What clients send: the frames of the chat layer, checked as they come in (reference: protocol §3, §6.1).

:func:`parse` never raises: what cannot be used comes back as :class:`Unusable` with the reason. Pure.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

import msgspec

from perdure.errors import BadRequest
from perdure.protocol import codec
from perdure.protocol.bounds import MAX_ID, MAX_MESSAGES, Id, check_nesting, check_values
from perdure.protocol.client_tools import ClientToolSpec, parse_client_tools
from perdure.protocol.messages import Role

__all__ = [
    "Ack",
    "Cancel",
    "ChatBody",
    "ChatFrame",
    "ChatRequest",
    "Clear",
    "ClientFrame",
    "PostedMessage",
    "Probe",
    "RpcRequest",
    "StateUpdate",
    "ToolApproval",
    "ToolResult",
    "Unusable",
    "Upload",
    "check_user_message",
    "parse",
    "parse_chat_body",
    "read_client_tools",
]


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


class ToolResult(msgspec.Struct):
    """``cf_agent_tool_result``: a page gives the result of a call."""

    toolCallId: Id  # noqa: N815 - the names on the wire
    toolName: str = ""  # noqa: N815
    output: Any = None
    state: str | None = None
    """``output-error`` for a call that failed; anything else means that it did not."""
    errorText: str | None = None  # noqa: N815
    autoContinue: bool = False  # noqa: N815
    clientTools: msgspec.Raw = msgspec.Raw(b"null")  # noqa: N815
    """As in a chat request; an empty list changes nothing here."""


class ToolApproval(msgspec.Struct):
    """``cf_agent_tool_approval``: a person says whether a call may run."""

    toolCallId: Id  # noqa: N815
    approved: bool
    autoContinue: bool = False  # noqa: N815
    reason: str | None = None
    """What the person said with it. Not sent by the published hook."""
    input: dict[str, Any] | None = None
    """The arguments that are approved instead of the model's. Not sent by the published hook."""


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


ChatFrame = ChatRequest | Cancel | Clear | Probe | Ack | Upload | ToolResult | ToolApproval
ClientFrame = ChatFrame | StateUpdate | RpcRequest | Unusable

_KINDS: dict[str, type[ChatFrame | StateUpdate | RpcRequest]] = {
    "cf_agent_use_chat_request": ChatRequest,
    "cf_agent_chat_request_cancel": Cancel,
    "cf_agent_chat_clear": Clear,
    "cf_agent_stream_resume_request": Probe,
    "cf_agent_stream_resume_ack": Ack,
    "cf_agent_chat_messages": Upload,
    "cf_agent_tool_result": ToolResult,
    "cf_agent_tool_approval": ToolApproval,
    "cf_agent_state": StateUpdate,
    "rpc": RpcRequest,
}


_WITH_VALUES = frozenset({StateUpdate, RpcRequest, ToolResult, ToolApproval})
"""The frames of which more is decoded than a few texts."""


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
        if kind in _WITH_VALUES:
            check_values(text)
        frame = codec.decode_as(kind, text)
        if isinstance(frame, StateUpdate):
            check_nesting([frame.state])
        elif isinstance(frame, RpcRequest):
            check_nesting(frame.args)
        elif isinstance(frame, ToolResult | ToolApproval):
            check_nesting([frame.output if isinstance(frame, ToolResult) else frame.input])
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
    client_tools: list[ClientToolSpec] | None = None
    """The tools that the page offers; ``None`` when it says nothing of them."""


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
        BadRequest: not a POST, no body, not JSON, ``messages`` is not a list of messages, or ``clientTools`` cannot be
            used.
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
        check_nesting(custom.values())
        tools = read_client_tools(fields.get("clientTools"))
    except codec.DecodeError as error:
        raise BadRequest(f"The chat request's body cannot be read: {error}") from error
    # Without a message it does not say which answer it wants again (reference: protocol §6.8).
    again = trigger == "regenerate-message" and bool(messages)
    return ChatBody(messages, "regenerate-message" if again else "submit-message", custom, tools)


def _check_extras(body: str) -> None:
    """Check what a page sent beside the conversation, before it is decoded."""
    if len(body) > codec.MAX_VALUES:
        messages = bytes(codec.decode_as(_Conversation, body).messages)
        check_values(body.encode(errors="replace").replace(messages, b"", 1))


def read_client_tools(raw: msgspec.Raw | None) -> list[ClientToolSpec] | None:
    """The tools that a page offers; ``None`` when it says nothing of them.

    Raises:
        BadRequest: they cannot be used.
    """
    text = b"null" if raw is None else bytes(raw)
    if text == b"null":
        return None
    tools = parse_client_tools(text)
    try:
        check_nesting(tool.parameters for tool in tools)
    except msgspec.ValidationError as error:
        raise BadRequest(f"The parameters of a client tool are {error}.") from None
    return tools


def _posted(raw: msgspec.Raw) -> PostedMessage:
    head = codec.decode_as(_PostedHead, bytes(raw))
    return PostedMessage(head.id, head.role, str(bytes(raw), "utf-8"))


def check_user_message(message: PostedMessage) -> None:
    """Check a message that is about to be stored.

    Raises:
        BadRequest: it has no list of parts, a part has no type, or it exceeds the bounds.
    """
    try:
        check_values(message.text)
        codec.decode_as(_UserMessage, message.text)
        check_nesting([codec.decode(message.text)])
    except codec.DecodeError as error:
        raise BadRequest(f"The message {message.id!r:.60} cannot be stored: {error}") from error
