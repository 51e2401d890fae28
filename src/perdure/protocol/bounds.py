"""How large what clients send may be, beside its bytes: ids, messages, values, nesting. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Annotated, Any, cast

import msgspec

from perdure.protocol import codec

__all__ = ["MAX_ID", "MAX_MESSAGES", "MAX_NESTING", "Id", "check_nesting", "check_values"]

MAX_ID = 1024
"""Most characters of an id that a client chooses: it is kept, and sent back with every frame."""

MAX_MESSAGES = 100_000
"""Most messages in a posted conversation, known and new."""

MAX_NESTING = 100
"""How deep lists and objects may stand in each other in what is taken over from a client. Whoever handles it later goes
down to its bottom, and may have less of the stack left than there was here."""

Id = Annotated[str, msgspec.Meta(min_length=1, max_length=MAX_ID)]
"""An id that a client chooses."""


def check_values(text: str | bytes) -> None:
    """Check how much a JSON text holds, before it is decoded.

    Raises:
        ValidationError: it has more values than :data:`codec.MAX_VALUES`.
    """
    if codec.has_too_many_values(text):
        raise msgspec.ValidationError(f"more than {codec.MAX_VALUES:,} values")


def check_nesting(values: Iterable[Any]) -> None:
    """Check how deep values are.

    Raises:
        ValidationError: one nests deeper than :data:`MAX_NESTING`.
    """
    level: list[Any] = [value for value in values if isinstance(value, dict | list)]
    for _ in range(MAX_NESTING):
        level = [child for value in level for child in _children(value) if isinstance(child, dict | list)]
        if not level:
            return
    raise msgspec.ValidationError(f"nested deeper than {MAX_NESTING} levels")


def _children(value: Any) -> Iterable[Any]:
    return cast("dict[str, Any]", value).values() if isinstance(value, dict) else value
