"""Results of tools as the model is given them: text, and the files that are in it. Does no I/O."""

from __future__ import annotations

from typing import Any, cast

from pydantic_ai.messages import BinaryContent

from perdure.models.bridge.files import binary_of
from perdure.protocol import codec

__all__ = ["output_content"]

_SHOWN = frozenset({"image/png", "image/jpeg", "image/gif", "image/webp", "application/pdf"})
"""What models look at. Of other files they are told type and size: base64 text says nothing to them."""


def output_content(output: Any) -> Any:
    """A text; or, where there are files in it, the text and the files in order."""
    if isinstance(output, str) and not output.startswith("data:"):
        return output
    text = codec.encode_text(output)
    if '"data:' not in text:
        return text
    files: list[BinaryContent] = []
    rest = _without_files(output, files)
    if not files:
        return rest if isinstance(rest, str) else codec.encode_text(rest)
    if isinstance(output, str):
        return files[0]
    return [codec.encode_text(rest), *files]


def _without_files(value: Any, files: list[BinaryContent]) -> Any:
    if isinstance(value, str):
        return _note(value, files) if value.startswith("data:") else value
    if isinstance(value, list):
        return [_without_files(item, files) for item in cast("list[Any]", value)]
    if isinstance(value, dict):
        return {key: _without_files(item, files) for key, item in cast("dict[str, Any]", value).items()}
    return value


def _note(url: str, files: list[BinaryContent]) -> str:
    """What stands for a file in the text. A ``data:`` URL that holds no file, or only text, stays."""
    head, comma, _ = url.partition(",")
    if not comma or ";base64" not in head or head.startswith("data:text/"):
        return url
    file = binary_of({"url": url})
    if file is None:
        return url
    if file.media_type not in _SHOWN:
        return f"[{file.media_type}, {len(file.data)} bytes]"
    files.append(file)
    return f"[{file.media_type}, {len(file.data)} bytes, shown as {file.identifier}]"
