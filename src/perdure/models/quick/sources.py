"""The sources that a chat completion names, as chunks. Needs the ``openai`` extra."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from openai.types.chat.chat_completion_message import Annotation
from pydantic import TypeAdapter, ValidationError

from perdure.models.contract import Chunk

__all__ = ["citations_in", "source_chunks"]

_one = TypeAdapter(Annotation)


def citations_in(annotations: Sequence[Any]) -> list[Annotation]:
    """Those of ``annotations`` that cite an address."""
    found: list[Annotation] = []
    for annotation in annotations:
        try:
            found.append(_one.validate_python(annotation))
        except ValidationError:
            continue  # servers have kinds of their own, which are not sources
    return found


def source_chunks(citations: Sequence[Annotation], new_id: Callable[[], str]) -> list[Chunk]:
    """A chunk for each address."""
    chunks: dict[str, Chunk] = {}
    for citation in citations:
        source = citation.url_citation
        chunk: Chunk = {"type": "source-url", "sourceId": new_id(), "url": source.url}
        if source.title:
            chunk["title"] = source.title
        chunks.setdefault(source.url, chunk)
    return list(chunks.values())
