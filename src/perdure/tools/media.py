"""Files as results of tools. Imports nothing of perdure."""

from __future__ import annotations

import base64

import msgspec

__all__ = ["Media", "data_url"]

_SIGNATURES: tuple[tuple[bytes, str], ...] = (
    (b"\x89PNG\r\n\x1a\n", "image/png"),
    (b"\xff\xd8\xff", "image/jpeg"),
    (b"GIF8", "image/gif"),
    (b"%PDF-", "application/pdf"),
)


class Media(msgspec.Struct, frozen=True):
    """A file that a tool gives: by itself, or anywhere inside its result.

    It is kept as a ``data:`` URL. The model is shown images and PDFs; of other files it is told type and size.
    """

    data: bytes
    media_type: str | None = None
    """As in ``image/png``. PNG, JPEG, GIF, WebP and PDF are recognised when it is not given."""


def data_url(data: bytes, media_type: str | None = None) -> str:
    """The bytes as a ``data:`` URL."""
    return f"data:{media_type or _recognised(data)};base64,{base64.b64encode(data).decode()}"


def _recognised(data: bytes) -> str:
    if data[:4] == b"RIFF" and data[8:12] == b"WEBP":
        return "image/webp"
    return next((kind for start, kind in _SIGNATURES if data.startswith(start)), "application/octet-stream")
