"""Where a message to the demo model mentions tools, and the values near each mention. Knows no schema.

Imports nothing of perdure.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

__all__ = ["Segment", "mentions"]


def _set(words: str) -> frozenset[str]:
    return frozenset(words.split())


_VERBS = _set(
    """add call check create current delete do edit exec fetch find get give grep list load look make open put read run
    save search send set show start stop tell update use write"""
)
_PREPOSITIONS = _set("in for of to at about from")
_FILLERS = _set(
    """a also an and are can could do does hows i is it its like me my now please right so some tell the then there this
    today tomorrow tonight us was what whats when where will would you your"""
)
_POLITE = _set("can could now please so then will would you")
_NEGATIONS = _set("no not off false without")

_TYPED_QUOTES = str.maketrans("\u201c\u201d\u2018\u2019", "\"\"''")

_WORD = re.compile(r"\S+")
_EDGES = "?!.,;:()[]\"'`"
_QUOTED = re.compile(r"\"([^\"]+)\"|`([^`]+)`|(?<!\w)'([^']+)'(?!\w)")
_NUMBER = re.compile(r"-?\d+(?:\.\d+)?")
_JOINT = re.compile(r",|\band\b|&", re.IGNORECASE)
_CLAUSE_END = re.compile(r"[?!;\n]|(?<=\w\w\w)\.(?=\s|$)")  # "St." is no end
_CAMEL = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")


class _Word(NamedTuple):
    text: str
    start: int
    end: int

    @property
    def plain(self) -> str:
        return self.text.strip(_EDGES).lower().removesuffix("'s").replace("'", "")


class Segment(NamedTuple):
    """The stretch of a message that belongs to one tool."""

    tool: str
    text: str
    after_name: str
    """What follows the words of the tool's name."""
    whole: str
    """The whole message, for values that several tools share."""

    @property
    def numbers(self) -> list[int | float]:
        """The numbers that stand alone, in order."""
        words = (word.strip(_EDGES) for word in _QUOTED.sub(" ", self.text).split())
        return [float(word) if "." in word else int(word) for word in words if _NUMBER.fullmatch(word)]

    @property
    def negative(self) -> bool:
        """Whether it says no."""
        return any(word.plain in _NEGATIONS for word in _words(self.text))

    def choice(self, options: Sequence[Any]) -> Any:
        """The option that appears."""
        said = f" {' '.join(word.plain for word in _words(self.text))} "
        return next((option for option in options if f" {str(option).lower()} " in said), None)

    def texts(self, *, several: bool, skip_numbers: bool) -> list[str]:
        """Values for text parameters.

        Args:
            several: One parameter wants a text: what is joined by "and" or commas are several values.
            skip_numbers: Numbers are taken by other parameters.
        """
        quoted = [next(filter(None, match.groups())) for match in _QUOTED.finditer(self.text)]
        if quoted and several:
            return quoted
        for source in (self.text, self.whole):
            phrases = [phrase for phrase in _phrases(source) if not (skip_numbers and _NUMBER.match(phrase))]
            if phrases:
                return _split(phrases[0]) if several else quoted + [_clean(phrase) for phrase in phrases]
        rest = _clean(re.split(r"[?!;\n]", self.after_name)[0])
        found = [value for value in _split(rest) if not (skip_numbers and _NUMBER.match(value))]
        return found if several else quoted + [value for value in [rest] if value]


def mentions(text: str, tools: Sequence[str]) -> list[Segment]:
    """The tools that ``text`` mentions, in its order, each with the stretch that belongs to it."""
    text = text.translate(_TYPED_QUOTES)
    words = list(_words(text))
    found: dict[str, list[_Word]] = {}
    for tool in tools:
        places = _places(tool, words)
        if places:
            found[tool] = places
    tools_in_order = sorted(_most_specific(found), key=lambda tool: found[tool][0].start)
    starts = [0, *(found[tool][0].start for tool in tools_in_order[1:]), len(text)]
    return [
        Segment(tool, text[start:end], text[found[tool][-1].end : end], text)
        for tool, start, end in zip(tools_in_order, starts, starts[1:], strict=False)
    ]


def _places(tool: str, words: Sequence[_Word]) -> list[_Word]:
    """The words that name ``tool``: all of them, or none."""
    name = [part.lower() for part in re.split(r"[_\-\s]+", _CAMEL.sub("_", tool)) if part]
    telling = [part for part in name if part not in _VERBS]
    if not telling:
        first = next((index for index, word in enumerate(words) if word.plain not in _POLITE), len(words))
        opening = list(words[first : first + len(name)])
        return opening if [word.plain for word in opening] == name else []
    if exact := [word for word in words if word.plain == tool.lower()]:
        return exact[:1]
    places = [next((word for word in words if _stem(word.plain) == _stem(part)), None) for part in telling]
    return sorted((place for place in places if place), key=lambda place: place.start) if all(places) else []


def _most_specific(found: dict[str, list[_Word]]) -> Iterator[str]:
    """The tools but those whose words are only some of the words of another: "weather" beside "weather forecast"."""
    for tool, places in found.items():
        if not any(set(places) < set(others) for others in found.values()):
            yield tool


def _words(text: str) -> Iterator[_Word]:
    return (_Word(match[0], *match.span()) for match in _WORD.finditer(text))


def _stem(word: str) -> str:
    for ending in ("ing", "es", "s", "e"):
        if word.endswith(ending) and len(word) - len(ending) >= 3:
            return word.removesuffix(ending)
    return word


def _phrases(text: str) -> Iterator[str]:
    """What follows each preposition, up to the next one or the end of the clause."""
    for clause in _CLAUSE_END.split(text):
        phrase: list[str] | None = None
        for word in clause.split():
            if word.strip(_EDGES).lower() in _PREPOSITIONS:
                if phrase and (phrase[-1].lower() in ("and", "&") or phrase[-1].endswith(",")):
                    continue  # "in Paris and in Rome"
                if cleaned := _clean(" ".join(phrase or [])):
                    yield cleaned
                phrase = []
            elif phrase is not None:
                phrase.append(word)
        if cleaned := _clean(" ".join(phrase or [])):
            yield cleaned


def _split(phrase: str) -> list[str]:
    return [value for value in map(_clean, _JOINT.split(phrase)) if value]


def _clean(phrase: str) -> str:
    """``phrase`` without fillers and punctuation at its ends. Capital letters are kept: "The Hague"."""
    words = phrase.split()
    while words and words[0].strip(_EDGES) in _FILLERS | {""}:
        words.pop(0)
    while words and words[-1].strip(_EDGES).lower() in _FILLERS | {""}:
        words.pop()
    return " ".join(words).strip(" ?!,;:\"'`").removesuffix(".")
