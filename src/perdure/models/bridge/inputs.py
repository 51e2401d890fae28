"""The final input of a tool call as a chunk. Pure."""

from __future__ import annotations

from typing import Any

from perdure.models.contract import Chunk
from perdure.protocol import codec

__all__ = ["input_chunk"]


def input_chunk(call_id: str, name: str, text: str, data: dict[str, Any] | None = None) -> Chunk:
    """The input of a call: an object, or an error with the text that is none.

    Args:
        call_id: the call.
        name: its tool.
        text: the arguments as the model wrote them; empty is an empty object.
        data: the arguments, from a provider that sends them as an object.
    """
    chunk: Chunk = {"type": "tool-input-available", "toolCallId": call_id, "toolName": name}
    if data is not None:
        chunk["input"] = data
    elif not text.strip():
        chunk["input"] = {}
    else:
        try:
            chunk["input"] = codec.decode(text)
        except (codec.DecodeError, RecursionError):
            chunk["input"] = None
        if not isinstance(chunk["input"], dict):
            chunk["type"] = "tool-input-error"
            chunk["input"] = text
            chunk["errorText"] = f"The arguments for the tool '{name}' are not a JSON object."
    return chunk
