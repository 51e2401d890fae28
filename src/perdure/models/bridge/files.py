"""Files of a conversation as the model is given them. Reads nothing: a file is in its ``data:`` URL, or the provider
fetches it. Knows no message.
"""

from __future__ import annotations

import base64
import binascii
import re
from typing import Any
from urllib.parse import unquote_to_bytes

from pydantic_ai.messages import AudioUrl, BinaryContent, DocumentUrl, ImageUrl, VideoUrl

from perdure.protocol.messages import Part

__all__ = ["FileContent", "binary_of", "file_content"]

FileContent = str | BinaryContent | ImageUrl | AudioUrl | VideoUrl | DocumentUrl

_BY_FAMILY: dict[str, type[ImageUrl | AudioUrl | VideoUrl]] = {"image": ImageUrl, "audio": AudioUrl, "video": VideoUrl}


def file_content(part: Part) -> FileContent:
    """A file part for a user's message: its bytes, its address, or a note where neither can be given."""
    url = _text(part.get("url"))
    media_type = _text(part.get("mediaType"))
    if url.startswith("data:"):
        binary = binary_of(part)
        if binary is not None and _is_known(binary):
            return binary
    elif url.startswith(("http://", "https://")):
        kind = _BY_FAMILY.get(media_type.split("/", 1)[0], DocumentUrl)
        return kind(url=url, media_type=media_type or None)
    name = _text(part.get("filename")) or "unnamed"
    return f"[The file {name} ({media_type or 'unknown type'}) could not be attached.]"


def binary_of(part: Part) -> BinaryContent | None:
    """The bytes in a file part's ``data:`` URL; None if it has no such URL, or a broken one."""
    head, comma, payload = _text(part.get("url")).partition(",")
    if not head.startswith("data:") or not comma:
        return None
    declared, *options = head.removeprefix("data:").split(";")
    media_type = _text(part.get("mediaType")) or declared or "text/plain"
    data = unquote_to_bytes(payload)
    if "base64" in options:
        try:
            data = base64.b64decode(data, validate=True)
        except binascii.Error:
            return None
    if _TEXT_LIKE.search(media_type):
        # Adapters put text files into the prompt as text and give up on bytes that are not UTF-8.
        data = data.decode(errors="replace").encode()
    return BinaryContent(data=data, media_type=media_type)


def _is_known(file: BinaryContent) -> bool:
    """Whether adapters have a form for the file at all, be it only a refusal."""
    text_like = _TEXT_LIKE.search(file.media_type) is not None
    return text_like or file.is_image or file.is_audio or file.is_video or file.is_document


_TEXT_LIKE = re.compile(r"^text/|[/+](json|xml|yaml|x-yaml|toml)$")


def _text(value: Any) -> str:
    return value if isinstance(value, str) else ""
