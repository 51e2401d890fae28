"""JSON in and out, as the published clients read and write it.

Owns the one encoder and decoder. Knows no frame, no message and no clock; imports nothing of perdure.
"""

from __future__ import annotations

import json
import math
import re
from typing import Any, TypeVar, cast

import msgspec

__all__ = ["MAX_VALUES", "DecodeError", "decode", "decode_as", "encode", "encode_text", "has_too_many_values", "quote"]

T = TypeVar("T")

DecodeError = msgspec.DecodeError
"""Raised by :func:`decode` and :func:`decode_as` for text that is not JSON, or not of the wanted shape."""

MAX_VALUES = 250_000
"""Most values in what is taken over from a client: a byte or two of JSON may be a hundred in memory."""

_NO_STRUCTURE = bytes(set(range(256)) - set(b'"[{,'))
_QUOTE = ord('"')
_PIECES = re.compile(rb'"[^"]*"|[^"]+')

_encoder = msgspec.json.Encoder()
_decoder = msgspec.json.Decoder()

_REFUSALS = (msgspec.DecodeError, UnicodeEncodeError, RecursionError)
"""What the fast decoder raises for text that it does not take."""


def encode_text(value: Any) -> str:
    """JSON text of ``value``: compact, UTF-8 safe, always valid JSON.

    Lone surrogates become U+FFFD and NaN and the infinities become ``null``, as a browser could not read them.

    Raises:
        TypeError: ``value`` holds something that has no JSON form.
    """
    try:
        return _encoder.encode(value).decode()
    except UnicodeEncodeError:
        plain = msgspec.to_builtins(value, enc_hook=_of_raw)  # what is no list or dict may hold them as well
        return _encoder.encode(_without_lone_surrogates(plain)).decode()


def encode(value: Any) -> bytes:
    """Like :func:`encode_text`, as UTF-8 bytes."""
    return encode_text(value).encode()


def quote(text: str) -> str:
    """``text`` as a JSON string, quotes included."""
    return encode_text(text)


def sound(value: Any) -> Any:
    """``value`` as it is read again once it is stored: with U+FFFD for lone surrogates, null for NaN.

    Raises:
        TypeError: ``value`` holds something that has no JSON form.
    """
    text = encode_text(value)
    if text.isascii() and "null" not in text:
        return value
    read = decode(text)
    return value if read == value else read


def decode(text: str | bytes) -> Any:
    """The value of a JSON text.

    Lone surrogates, which browsers may send as escapes, become U+FFFD.

    Raises:
        DecodeError: not JSON.
    """
    try:
        return _decoder.decode(text)
    except _REFUSALS:
        return _decode_leniently(text)


def decode_as(kind: type[T], text: str | bytes) -> T:
    """The value of a JSON text, checked against ``kind``.

    Raises:
        DecodeError: not JSON, or not of that shape.
    """
    try:
        return msgspec.json.decode(text, type=kind)
    except msgspec.ValidationError:
        raise
    except _REFUSALS:
        # By way of text, as raw parts of the wanted shape can be cut from text only.
        return msgspec.json.decode(_encoder.encode(_decode_leniently(text)), type=kind)


def has_too_many_values(text: str | bytes) -> bool:
    """Whether a JSON text has more than about :data:`MAX_VALUES` values: known without decoding it."""
    if len(text) <= MAX_VALUES:
        return False
    data = text.encode(errors="replace") if isinstance(text, str) else text
    if b"\\" in data:
        data = data.replace(b"\\\\", b"").replace(b'\\"', b"")
    structure = data.translate(None, _NO_STRUCTURE)
    if len(structure) - structure.count(b'"') <= MAX_VALUES:
        return False
    # Some of it may stand in strings. Between two strings there is at least a comma, so this ends soon.
    values = 0
    for piece in _PIECES.finditer(structure):
        if structure[piece.start()] != _QUOTE:
            values += piece.end() - piece.start()
        if values > MAX_VALUES:
            return True
    return False


def _decode_leniently(text: str | bytes) -> Any:
    """A second try for what the fast decoder refuses and a browser may still send: lone surrogates."""
    if has_too_many_values(text):
        raise msgspec.DecodeError(f"not JSON, or more than {MAX_VALUES:,} values with halves of characters")
    try:
        return _without_lone_surrogates(json.loads(text, parse_constant=_refuse_constant))
    except RecursionError:
        raise msgspec.DecodeError("nested too deeply") from None
    except ValueError as error:
        raise msgspec.DecodeError(f"not JSON: {error}") from None


def _of_raw(value: Any) -> Any:
    if isinstance(value, msgspec.Raw):
        return decode(bytes(value))
    raise TypeError(f"Encoding objects of type {type(value).__name__} is unsupported")


def _refuse_constant(name: str) -> None:
    raise ValueError(f"{name} is not JSON")


def _without_lone_surrogates(value: Any) -> Any:
    if isinstance(value, str):
        return value.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    if isinstance(value, dict):
        items = cast("dict[Any, Any]", value).items()
        return {_without_lone_surrogates(key): _without_lone_surrogates(item) for key, item in items}
    if isinstance(value, (list, tuple)):
        return [_without_lone_surrogates(item) for item in cast("list[Any]", value)]
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value
