"""JSON texts that no encoder would write: numbers without bounds, NaN, keys that come twice, bottomless nesting."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any, TypeVar

from hypothesis import strategies as st

__all__ = ["ODD_TEXTS", "Pairs", "Raw", "junk", "mutated", "render", "weighted"]

T = TypeVar("T")


class Raw(str):
    """JSON text, or what pretends to be, that is written as it stands."""

    __slots__ = ()

    def __repr__(self) -> str:
        return f"Raw({str(self)[:40]!r}…)" if len(self) > 40 else f"Raw({str(self)!r})"


class Pairs(list[tuple[str, Any]]):
    """An object by its keys and values, in which a key may stand twice."""

    __slots__ = ()


def render(value: Any) -> str:
    """The text of a value."""
    match value:
        case Raw():
            return str(value)
        case Pairs():
            return _object(value)
        case dict():
            return _object(list(value.items()))
        case list():
            return "[" + ",".join(render(item) for item in value) + "]"
        case _:
            return json.dumps(value)


def _object(pairs: Sequence[tuple[str, Any]]) -> str:
    return "{" + ",".join(f"{json.dumps(key)}:{render(value)}" for key, value in pairs) + "}"


def weighted(*choices: tuple[int, st.SearchStrategy[T]]) -> st.SearchStrategy[T]:
    """One of several strategies, each as often as its number says."""
    numbers = [index for index, (weight, _) in enumerate(choices) for _ in range(weight)]
    return st.sampled_from(numbers).flatmap(lambda index: choices[index][1])


ODD_TEXTS = st.sampled_from(
    ["", " ", "\0", "\ud800", "a\udfffb", "x" * 3000, "__proto__", "null", "🐎", "\u2028", "\x7f", '"', "\\ud800", "0"]
)

_NUMBERS = st.sampled_from(
    [0, -1, 2**31, 2**53 + 1, 2**63, 2**64, -(2**70), 1e308, -0.5]
    + [Raw(text) for text in ("1" + "0" * 400, "1e999", "-0", "NaN", "-Infinity", "01", "1.", "+1", "0x1")]
)

_DEEP = st.builds(
    lambda depth, kind: Raw("[" * depth + "]" * depth if kind else '{"a":' * depth + "1" + "}" * depth),
    st.sampled_from([3, 98, 99, 100, 101, 102, 500, 1100, 30_000]),
    st.booleans(),
)

_LEAVES = weighted(
    (2, st.none()),
    (2, st.booleans()),
    (2, st.integers(-3, 300)),
    (2, _NUMBERS),
    (3, ODD_TEXTS),
    (1, st.text(max_size=8)),
    (2, _DEEP),
    (1, st.just(Raw("{"))),
)

junk: st.SearchStrategy[Any] = weighted(
    (3, _LEAVES),
    (
        1,
        st.recursive(
            _LEAVES,
            lambda inner: st.one_of(
                st.lists(inner, max_size=3),
                st.dictionaries(st.sampled_from(["type", "id", "a", ""]), inner, max_size=3),
            ),
            max_leaves=6,
        ),
    ),
)
"""Any value, and some that are none."""


@st.composite
def mutated(draw: st.DrawFn, values: st.SearchStrategy[Any]) -> Any:
    """One of ``values`` with one or two things in it that should not be there, or are not there."""
    value = draw(values)
    for _ in range(draw(st.integers(1, 2))):
        value = _changed(draw, value)
    return value


def _changed(draw: st.DrawFn, value: Any) -> Any:
    """Go down a random way, and change what is at its end."""
    if isinstance(value, dict) and value and not isinstance(value, Pairs):
        key = draw(st.sampled_from(sorted(value)))
        match draw(st.sampled_from(["into", "into", "into", "without", "twice", "junk", "null"])):
            case "into":
                return {**value, key: _changed(draw, value[key])}
            case "without":
                return {name: item for name, item in value.items() if name != key}
            case "twice":
                pairs = [*value.items(), (key, draw(junk))]
                return Pairs(draw(st.permutations(pairs)))
            case "null":
                return {**value, key: None}
            case _:
                return {**value, key: draw(junk)}
    if isinstance(value, list) and value and not isinstance(value, Pairs) and draw(st.booleans()):
        index = draw(st.integers(0, len(value) - 1))
        return [*value[:index], _changed(draw, value[index]), *value[index + 1 :]]
    return draw(st.one_of(junk, st.just([value]), st.just({"x": value})))
