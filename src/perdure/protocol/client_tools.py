"""The tools that a page offers with its request: names, descriptions and schemas (reference: protocol §8.1). Pure.

What comes from a client is checked and bounded here; whether a schema makes sense is for whoever compiles it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

import msgspec

from perdure.errors import BadRequest
from perdure.protocol import codec

__all__ = ["MAX_BYTES", "MAX_NAME", "MAX_TOOLS", "ClientToolSpec", "parse_client_tools"]

MAX_TOOLS = 128
"""Most tools that a page may offer: no provider takes more."""
MAX_NAME = 256
"""Most characters of a name."""
MAX_BYTES = 256 * 1024
"""Most bytes of JSON that all of them may take: the model is sent them with every step."""


class ClientToolSpec(msgspec.Struct, frozen=True):
    """One tool of a page."""

    name: str
    description: str
    parameters: dict[str, Any]
    """JSON Schema of its input."""


def parse_client_tools(raw: str | bytes) -> list[ClientToolSpec]:
    """The tools in a ``clientTools`` list. What has no name is left out; of two with one name the later counts.

    Raises:
        BadRequest: it is no list, or it is larger than the limits say.
    """
    if len(raw) > MAX_BYTES:
        raise BadRequest(f"The client tools take {len(raw)} bytes; at most {MAX_BYTES} are allowed.")
    try:
        given: Any = codec.decode(raw)
    except codec.DecodeError as error:
        raise BadRequest(f"The client tools cannot be read: {error}") from None
    if not isinstance(given, list):
        raise BadRequest(f"clientTools must be a list of tools, not {type(given).__name__}.")
    entries = cast("Sequence[Any]", given)
    if len(entries) > MAX_TOOLS:
        raise BadRequest(f"There are {len(entries)} client tools; at most {MAX_TOOLS} are allowed.")
    tools = [tool for entry in entries if (tool := _spec(entry)) is not None]
    return list({tool.name: tool for tool in tools}.values())


def _spec(entry: Any) -> ClientToolSpec | None:
    if not isinstance(entry, dict):
        return None
    fields = cast("dict[str, Any]", entry)
    name, description, parameters = fields.get("name"), fields.get("description"), fields.get("parameters")
    if not isinstance(name, str) or not name:
        return None
    if len(name) > MAX_NAME:
        raise BadRequest(f"The name of the client tool {name:.40}… has {len(name)} characters; {MAX_NAME} are allowed.")
    if parameters is None:
        parameters = {"type": "object"}
    if not isinstance(parameters, dict):
        raise BadRequest(f"The parameters of the client tool {name:.60} must be a JSON Schema object.")
    text = description if isinstance(description, str) else ""
    return ClientToolSpec(name, text, cast("dict[str, Any]", parameters))
