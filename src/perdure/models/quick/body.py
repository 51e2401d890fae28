"""The body and the options of a request, from the arguments of an SDK call. Needs the ``openai`` extra."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec
import pydantic
from openai import NotGiven, Omit, RequestOptions, not_given

from perdure.protocol import codec

__all__ = ["Unwritable", "encode", "split"]


class Unwritable(Exception):
    """There is something in a request that only the SDK's own transformation can write."""


def split(params: Mapping[str, Any]) -> tuple[dict[str, Any], RequestOptions]:
    """The JSON fields and the options that the SDK would make of the arguments of a streamed call."""
    extra: dict[str, Any] = params.get("extra_body") or {}
    body = {key: value for key, value in params.items() if key not in _OPTIONS}
    body = {key: value for key, value in {**body, "stream": True, **extra}.items() if _given(value)}
    options: RequestOptions = {"security": {"bearer_auth": True}}
    if params.get("extra_headers") is not None:
        options["headers"] = params["extra_headers"]
    if params.get("extra_query") is not None:
        options["params"] = params["extra_query"]
    timeout = params.get("timeout", not_given)
    if not isinstance(timeout, NotGiven):
        options["timeout"] = timeout
    return body, options


def encode(value: Any) -> bytes:
    """JSON as the SDK would write it.

    Raises:
        Unwritable: it is not JSON.
    """
    try:
        return _encoder.encode(value)
    except UnicodeEncodeError:
        return codec.encode(msgspec.to_builtins(value, enc_hook=_encode_model))
    except TypeError as error:
        raise Unwritable(str(error)) from error


_OPTIONS = frozenset({"extra_body", "extra_headers", "extra_query", "timeout"})


def _given(value: object) -> bool:
    return not isinstance(value, (Omit, NotGiven))


def _encode_model(value: Any) -> Any:
    if isinstance(value, pydantic.BaseModel):
        return value.model_dump(mode="json", by_alias=True, exclude_unset=True)
    raise TypeError(f"{type(value).__name__} is not JSON")


_encoder = msgspec.json.Encoder(enc_hook=_encode_model)
