"""Takes large inline files out of a message's text, and puts them back so that every byte is as it was.

A file part may carry its content as base64 in a ``data:`` URL. The text that is kept beside the attachments is the same
text without that base64. Pure.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
from collections.abc import Iterable, Mapping
from typing import Any, cast

import msgspec

from perdure.protocol import codec
from perdure.storage.contract import AttachmentRef

__all__ = ["SMALLEST", "Split", "cut_out", "put_back", "split"]

SMALLEST = 32 * 1024
"""Bytes of the smallest file that is taken out."""

_SMALLEST_TEXT = SMALLEST * 4 // 3


class Split(msgspec.Struct, frozen=True):
    """A message's text in two."""

    text: str
    """What is left."""
    references: tuple[AttachmentRef, ...]
    """What was taken out of it, in order."""
    data: Mapping[str, bytes]
    """The files, by digest."""


def split(text: str) -> Split | None:
    """Take the large files out of a message's JSON text; ``None`` when there are none."""
    if len(text) < _SMALLEST_TEXT or '"data:' not in text:
        return None
    references: list[AttachmentRef] = []
    data: dict[str, bytes] = {}
    kept: list[str] = []
    end = offset = 0
    for payload in _payloads(codec.decode(text)):
        start = text.find(payload, end)
        if start < 0 or (content := _content(payload)) is None:
            continue
        digest = hashlib.sha256(content).hexdigest()
        data[digest] = content
        kept.append(text[end:start])
        offset += start - end
        references.append(AttachmentRef(offset, digest, len(payload)))
        end = start + len(payload)
    if not references:
        return None
    return Split("".join([*kept, text[end:]]), tuple(references), data)


def put_back(text: str, references: Iterable[AttachmentRef], data: Mapping[str, bytes]) -> str:
    """The whole text. What ``data`` lacks stays out."""
    pieces: list[str] = []
    end = 0
    for reference in references:
        pieces.append(text[end : reference.offset])
        pieces.append(base64.b64encode(data.get(reference.digest, b"")).decode())
        end = reference.offset
    return "".join([*pieces, text[end:]])


def cut_out(whole: str, references: Iterable[AttachmentRef]) -> str:
    """The text that is left of a whole one when what the references name is taken out again."""
    pieces: list[str] = []
    end = taken = 0
    for reference in references:
        pieces.append(whole[end : reference.offset + taken])
        taken += reference.size
        end = reference.offset + taken
    return "".join([*pieces, whole[end:]])


def _payloads(message: Any) -> Iterable[str]:
    """The base64 texts of the message's large files."""
    parts: Any = cast("dict[str, Any]", message).get("parts") if isinstance(message, dict) else None
    for part in cast("list[Any]", parts) if isinstance(parts, list) else ():
        if isinstance(part, dict) and part.get("type") in ("file", "reasoning-file"):  # pyright: ignore[reportUnknownMemberType]
            url = cast("dict[str, Any]", part).get("url")
            if isinstance(url, str) and len(url) >= _SMALLEST_TEXT and url.startswith("data:"):
                head, _, payload = url.partition(",")
                if head.endswith(";base64") and len(payload) >= _SMALLEST_TEXT:
                    yield payload


def _content(payload: str) -> bytes | None:
    """The bytes, if the text is the one that they are encoded to: only then can it be made again."""
    try:
        content = base64.b64decode(payload, validate=True)
    except (binascii.Error, ValueError):
        return None
    if len(content) < SMALLEST or base64.b64encode(content).decode() != payload:
        return None
    return content
