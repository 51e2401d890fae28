"""Control tokens of chat templates in what a model writes.

pydantic-ai puts a zero-width joiner into ``<|im_start|>`` and the like before it shows them to a model whose server may
take them for the real thing. The model copies the joiner, or another invisible character for it; here it is taken out
again. Pure; imports nothing of perdure.
"""

from __future__ import annotations

import re
from typing import Any, cast

__all__ = ["Restorer", "restored", "restored_in"]

_ZERO_WIDTH = "\u200b\u200c\u200d\u2060\ufeff"
_NAME = rf'[^\s<>|"{_ZERO_WIDTH}]'
_WIDE_NAME = rf'[^\s<>｜"{_ZERO_WIDTH}]'
_BRACKETED = (
    *("|system|]", "|tool|]", "|assistant|]", "|user|]", "|endofturn|]", "INST]", "/INST]", "SYSTEM_PROMPT]"),
    *("/SYSTEM_PROMPT]", "AVAILABLE_TOOLS]", "/AVAILABLE_TOOLS]", "TOOL_RESULTS]", "/TOOL_RESULTS]", "TOOL_CALLS]"),
    "e~[",
)
_TAILS = {
    "<": ("start_of_turn>", "end_of_turn>"),
    "[": _BRACKETED,
    "]": ("~b]", "~!b["),
}
"""Tokens by their first character and the rest."""

_NAMED = (rf"\|{_NAME}{{1,64}}\|>", rf"｜{_WIDE_NAME}{{1,64}}｜>", r"\|[a-z_]{1,32}>", r"[a-z_]{1,32}\|>")
"""The rest of tokens that have a name of their own; each begins with ``<``."""

_JOINER = re.compile(
    "|".join(
        [rf"(?<=<)[{_ZERO_WIDTH}](?={'|'.join(_NAMED)})"]
        + [
            rf"(?<={re.escape(first)})[{_ZERO_WIDTH}](?={'|'.join(re.escape(tail) for tail in tails)})"
            for first, tails in _TAILS.items()
        ]
    )
)
"""A joiner in a token."""
_POSSIBLE_JOINER = re.compile(rf"(?<=[<\[\]])[{_ZERO_WIDTH}]")
_BEGINNINGS = {tail[:length] for tails in _TAILS.values() for tail in tails for length in range(len(tail))}
_BEGUN = re.compile(
    "|".join(
        [
            *(rf"\|{_NAME}{{0,64}}\|?", rf"｜{_WIDE_NAME}{{0,64}}｜?", r"[a-z_]{1,32}\|?"),
            *map(re.escape, sorted(_BEGINNINGS)),
        ]
    )
)
"""What may stand after a joiner in a token that has not come whole yet."""
_INVISIBLE = re.compile(f"[{_ZERO_WIDTH}]")


def restored(text: str) -> str:
    """``text`` without joiners in tokens."""
    return _JOINER.sub("", text) if not text.isascii() else text


def restored_in(value: Any) -> Any:
    """A JSON value whose texts and keys are :func:`restored`."""
    if isinstance(value, str):
        return restored(value)
    if isinstance(value, dict):
        return {restored(key): restored_in(item) for key, item in cast("dict[str, Any]", value).items()}
    if isinstance(value, list):
        return [restored_in(item) for item in cast("list[Any]", value)]
    return value


class Restorer:
    """Restores a text that comes in pieces.

    Held back is only what may be a joiner, with what follows it, until it shows whether it stands in a token.
    """

    __slots__ = ("_held", "_last")

    def __init__(self) -> None:
        self._held = ""
        self._last = ""
        """The last character that was given out."""

    def feed(self, piece: str) -> str:
        """What can be given out now."""
        if not self._held and (piece.isascii() or not _INVISIBLE.search(piece)):
            self._last = piece[-1:] or self._last
            return piece
        text = _JOINER.sub("", self._last + self._held + piece)
        end = _end_of_certain(text)
        given, self._held = text[len(self._last) : end], text[end:]
        self._last = given[-1:] or self._last
        return given

    def flush(self) -> str:
        """What is held, when no more comes."""
        held, self._held = self._held, ""
        return held


def _end_of_certain(text: str) -> int:
    """Where the last joiner stands that may turn out to be in a token; the end if there is none."""
    possible = [match.start() for match in _POSSIBLE_JOINER.finditer(text)]
    return possible[-1] if possible and _BEGUN.fullmatch(text, possible[-1] + 1) else len(text)
