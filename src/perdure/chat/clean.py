"""What messages are freed from before they are stored (reference: engine §2.12). Pure.

Of an assistant message: ids that only OpenAI's own storage knows, reasoning that says nothing. Of a client's message:
metadata that is the server's to set.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

from perdure.chat.repair import normalise_inputs
from perdure.protocol import codec
from perdure.protocol.messages import Part, UIMessage

__all__ = ["clean_answer", "without_reserved"]

_OPENAI_ONLY = frozenset({"itemId", "reasoningEncryptedContent"})
_RESERVED = frozenset({"channel", "turnMetadata"})


def clean_answer(message: UIMessage) -> UIMessage:
    """An assistant message as it is stored. The parts of the given one are not changed.

    What the bridge keeps for providers (``id``, ``signature``, ``details``) stays: it goes back to them.
    """
    parts = [_clean_part(part) for part in message["parts"]]
    kept = [normalise_inputs(part) or part for part in parts if not _says_nothing(part)]
    return {**message, "parts": kept}


def _clean_part(part: Part) -> Part:
    changed: Part = {}
    for key in ("providerMetadata", "callProviderMetadata"):
        metadata = part.get(key)
        if isinstance(metadata, dict) and (cleaned := _clean_metadata(cast("dict[str, Any]", metadata))) != metadata:
            changed[key] = cleaned
    if not changed:
        return part
    return {key: value for key, value in {**part, **changed}.items() if not (key in changed and not value)}


def _clean_metadata(metadata: dict[str, Any]) -> dict[str, Any]:
    openai = metadata.get("openai")
    if not isinstance(openai, dict) or not _OPENAI_ONLY & openai.keys():
        return metadata
    left = {key: value for key, value in cast("dict[str, Any]", openai).items() if key not in _OPENAI_ONLY}
    others = {key: value for key, value in metadata.items() if key != "openai"}
    return {**others, "openai": left} if left else others


def _says_nothing(part: Part) -> bool:
    return part.get("type") == "reasoning" and not part.get("text") and not part.get("providerMetadata")


def without_reserved(text: str) -> str:
    """A client's message without metadata that only the server sets; the same text when it has none."""
    if '"metadata"' not in text:
        return text
    message: dict[str, Any] = codec.decode(text)
    metadata = message.get("metadata")
    if not isinstance(metadata, Mapping) or not _RESERVED & metadata.keys():
        return text
    left = {key: value for key, value in cast("Mapping[str, Any]", metadata).items() if key not in _RESERVED}
    if left:
        message["metadata"] = left
    else:
        del message["metadata"]
    return codec.encode_text(message)
