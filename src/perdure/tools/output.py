"""Results of tools as JSON values. Imports ``errors`` and the media beside it."""

from __future__ import annotations

import enum
import math
from collections import deque
from collections.abc import Iterable, Mapping, Set
from pathlib import PurePath
from typing import Any, cast

import msgspec

from perdure.errors import ToolError
from perdure.tools.media import Media, data_url

__all__ = ["json_ready"]

_BYTES = (bytes, bytearray, memoryview)
_INT_MIN, _INT_MAX = -(2**63), 2**64 - 1


def json_ready(value: Any, tool: str) -> Any:
    """``value`` as a new JSON value that shares nothing with it.

    - ``None``, NaN and the infinities become null.
    - pydantic models, dataclasses, named fields of structs and attrs classes become objects.
    - Sets, tuples and arrays (what has ``tolist``) become lists; the order of a set is its own.
    - Dates, times, UUIDs, paths and decimals become text, durations ISO 8601 text, enums their value.
    - Bytes and :class:`~perdure.Media` become a ``data:`` URL: base64 text that says what it is (PNG, JPEG, GIF, WebP
      and PDF are recognised).
    - Integers beyond 64 bits become text.

    Raises:
        ToolError: something in it has no JSON form, or it contains itself.
    """
    try:
        return _plain(value)
    except _NoJSON as error:
        raise ToolError(f"Tool {tool} returned {error}, which has no JSON form.") from None
    except RecursionError:
        raise ToolError(f"Tool {tool} returned a value that contains itself or is nested too deeply.") from None


class _NoJSON(Exception):
    pass


def _plain(value: object) -> Any:
    kind = type(value)
    if value is None or kind is str or kind is bool:
        return value
    if kind is dict:
        return {_key(key): _plain(item) for key, item in cast("dict[Any, Any]", value).items()}
    if kind is list or kind is tuple:
        return [_plain(item) for item in cast("list[Any]", value)]
    if isinstance(value, enum.Enum):
        return _plain(value.value)
    return _number(value) if isinstance(value, int | float) else _other(value)


def _number(value: int | float) -> int | float | str | None:
    if isinstance(value, float):
        return float(value) if math.isfinite(value) else None
    return int(value) if _INT_MIN <= value <= _INT_MAX else str(value)


def _other(value: Any) -> Any:
    if isinstance(value, str):
        return str.__str__(value)
    if isinstance(value, Mapping):
        return {_key(key): _plain(item) for key, item in cast("Mapping[Any, Any]", value).items()}
    if isinstance(value, list | tuple | Set | deque | range):
        return [_plain(item) for item in cast("Iterable[Any]", value)]
    return _plain(_convert(value))


def _convert(value: Any) -> Any:
    """One step towards JSON for what is neither a scalar nor a plain container."""
    found, converted = _special(value)
    if found:
        return converted
    try:
        return msgspec.to_builtins(value, builtin_types=_BYTES, enc_hook=_nested)
    except (TypeError, ValueError):
        raise _NoJSON(_name_of(value)) from None


def _nested(value: Any) -> Any:
    """What msgspec does not know, inside something that it does."""
    found, converted = _special(value)
    if not found:
        raise _NoJSON(_name_of(value))
    return converted


def _special(value: Any) -> tuple[bool, Any]:
    if isinstance(value, _BYTES):
        return True, data_url(bytes(cast("bytes", value)))
    if isinstance(value, Media):
        return True, data_url(value.data, value.media_type)
    if isinstance(value, PurePath):
        return True, str(value)
    if isinstance(value, type):
        return False, None
    if callable(dump := getattr(value, "model_dump", None)):
        try:
            return True, dump(mode="json")
        except ValueError as error:
            raise _NoJSON(f"a {type(value).__qualname__} ({error})") from None
    if callable(to_list := getattr(value, "tolist", None)):
        return True, to_list()
    return False, None


def _name_of(value: Any) -> str:
    if hasattr(value, "__aiter__") or hasattr(value, "__next__"):
        return f"a generator or iterator ({type(value).__name__})"
    return f"a {type(value).__qualname__}"


def _key(key: Any) -> str:
    if isinstance(key, enum.Enum):
        key = key.value
    plain = key if type(key) is str else _plain(key)
    if isinstance(plain, str):
        return plain
    if plain is None or isinstance(plain, bool):
        return {None: "null", True: "true", False: "false"}[plain]
    if isinstance(plain, int | float):
        return str(plain)
    raise _NoJSON(f"an object with {key!r} as a key")
