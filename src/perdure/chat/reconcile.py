"""What a posted conversation changes: the client posts all it knows, the server owns the history.

New user messages are taken, a user message with a known id and other content is an edit, a repetition changes nothing,
and what a client says of assistant messages is not taken over (reference: README 8 and 9, protocol §6.9). Pure.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, Protocol

import msgspec

from perdure.chat.clean import without_reserved
from perdure.errors import BadRequest
from perdure.protocol import codec
from perdure.protocol.client_frames import PostedMessage, check_user_message

__all__ = ["MAX_NEW", "Changes", "Known", "NewMessage", "reconcile"]


MAX_NEW = 1_000
"""Most new messages in one request. A page adds one; one that was offline sends a request for each."""


class Known(Protocol):
    """A stored message, as far as reconciling looks at it."""

    @property
    def id(self) -> str: ...
    @property
    def parent(self) -> str | None: ...
    @property
    def role(self) -> str: ...
    @property
    def text(self) -> str | None: ...


class NewMessage(msgspec.Struct, frozen=True):
    """A message to append."""

    id: str
    role: str
    text: str


class Changes(msgspec.Struct, frozen=True):
    """What to do before the turn runs."""

    append: list[NewMessage]
    """New messages, each following the one before; the first follows ``parent``."""
    parent: str | None
    """Id of the message that the first new one follows; without new ones, that the answer follows."""
    origin_ids: list[str]
    """Ids of the posted user messages that the turn answers; its terminal frame repeats them."""
    extends: str | None = None
    """Id of the answer that the turn goes on with, instead of making a new one."""


def reconcile(
    posted: Sequence[PostedMessage],
    *,
    regenerate: bool,
    known: Mapping[str, Known],
    leaf: str | None,
    new_id: Callable[[], str],
) -> Changes:
    """Compare what was posted with what is stored.

    Args:
        posted: The client's conversation, oldest first.
        regenerate: Whether another answer to the last posted message is wanted.
        known: The stored messages by id, on the active path or off it: at least those that were posted. ``text`` is
            looked at for the last posted one only; ``None`` when it cannot be read.
        leaf: Id of the last message of the active path; ``None`` when there is none.
        new_id: Makes the id of an edited message.

    Raises:
        BadRequest: a new or edited message cannot be stored, or there are more than :data:`MAX_NEW`.
    """
    origin_ids = _trailing_user_ids(posted)
    last = posted[-1] if posted else None
    stored = known.get(last.id) if last else None
    if last and stored and _is_edit(last, stored):
        identifier = new_id()
        return Changes([NewMessage(identifier, "user", _renamed(last.text, identifier))], stored.parent, origin_ids)
    new = _new_user_messages(posted, known)
    if len(new) > MAX_NEW:
        raise BadRequest(f"The chat request brings {len(new):,} new messages; at most {MAX_NEW:,} are taken at once.")
    if codec.has_too_many_values(",".join(message.text for message in new)):
        raise BadRequest(f"The chat request brings new messages of more than {codec.MAX_VALUES:,} values.")
    append = [_checked(message) for message in new]
    if regenerate and stored and not append:
        return Changes([], stored.id, origin_ids)
    return Changes(append, leaf, origin_ids)


def _trailing_user_ids(posted: Sequence[PostedMessage]) -> list[str]:
    ids: list[str] = []
    for message in reversed(posted):
        if message.role != "user":
            break
        ids.append(message.id)
    return ids[::-1]


def _new_user_messages(posted: Sequence[PostedMessage], known: Mapping[str, Known]) -> Collection[PostedMessage]:
    new: dict[str, PostedMessage] = {}
    for message in posted:
        if message.role == "user" and message.id not in known:
            new.setdefault(message.id, message)
    return new.values()


def _checked(message: PostedMessage) -> NewMessage:
    check_user_message(message)
    return NewMessage(message.id, message.role, without_reserved(message.text))


def _is_edit(posted: PostedMessage, stored: Known) -> bool:
    if posted.role != "user" or stored.role != "user" or stored.text is None or posted.text == stored.text:
        return False
    check_user_message(posted)
    # A browser may write the same message with its keys in another order, or with fields of its own beside the parts.
    return codec.decode(posted.text).get("parts") != codec.decode(stored.text).get("parts")


def _renamed(text: str, identifier: str) -> str:
    message: dict[str, Any] = codec.decode(without_reserved(text))
    return codec.encode_text({**message, "id": identifier})
