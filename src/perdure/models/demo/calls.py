"""Tool calls in what a user writes to the demo model: exact ones, and ones in own words. Imports the model contract.

Own words call a tool when the words of its name appear, leaving out verbs that many tools share (``get_weather``:
"weather"). A tool whose name is nothing but such verbs (``read``) must come first, "please" aside. What belongs to a
tool reaches from there to the next tool's name. In it, values for the required parameters are found like this:

- text: what is quoted, then what follows in, for, of, to, at, about or from, then what follows the tool's name. Where a
  tool needs one text and "and" or commas join several, each gets its own call;
- one of several given texts: the one that appears;
- numbers: the numbers, in order; those that are left over go to optional number parameters;
- yes or no: no when the message says no, not, off, false or without.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from perdure.models.contract import ToolSpec
from perdure.models.demo.words import Segment, mentions
from perdure.protocol import codec

__all__ = ["Found", "PlannedCall", "exact_calls", "example", "find_calls"]

_EXAMPLES = {
    "city": "Paris",
    "place": "Paris",
    "location": "Paris",
    "path": "/notes.txt",
    "query": "tea",
    "question": "Coffee or tea?",
    "title": "shopping",
}


class PlannedCall(NamedTuple):
    """A call that the demo model makes, or why it cannot."""

    tool: str
    input: dict[str, Any]
    problem: str = ""


class Found(NamedTuple):
    """What own words ask for."""

    calls: tuple[PlannedCall, ...]
    missing: list[tuple[ToolSpec, list[str]]]
    """Tools that cannot be called, each with the parameters for which there is no value."""


def exact_calls(text: str) -> tuple[PlannedCall, ...]:
    """The calls in ``NAME {…}``, further ones each on a line that starts with ``call``."""
    return tuple(map(_exact_call, re.split(r"\n\s*call\s+", text, flags=re.IGNORECASE)))


def _exact_call(text: str) -> PlannedCall:
    name, *rest = text.split(maxsplit=1)
    try:
        input: Any = codec.decode(rest[0]) if rest else {}
    except codec.DecodeError:
        input = None
    if not isinstance(input, dict):
        return PlannedCall(name, {}, f"The arguments of {name} must be a JSON object.")
    return PlannedCall(name, input)  # pyright: ignore[reportUnknownArgumentType] - whatever the user wrote


def find_calls(text: str, tools: Sequence[ToolSpec]) -> Found:
    """The calls that ``text`` asks for in its own words, in the order of the text."""
    by_name = {spec.name: spec for spec in tools}
    calls: list[PlannedCall] = []
    missing: list[tuple[ToolSpec, list[str]]] = []
    for segment in mentions(text, list(by_name)):
        spec = by_name[segment.tool]
        inputs, unfilled = _fill(spec.parameters, segment)
        if unfilled:
            missing.append((spec, unfilled))
        else:
            calls += [PlannedCall(spec.name, input) for input in inputs]
    return Found(tuple(calls), missing)


def _fill(schema: Mapping[str, Any], segment: Segment) -> tuple[list[dict[str, Any]], list[str]]:
    """One input for each call, and the required parameters without a value."""
    properties: dict[str, Any] = schema.get("properties", {})
    required = [name for name in schema.get("required", []) if name in properties]
    numbers = dict(zip(_numeric(properties, required), segment.numbers, strict=False))
    free_texts = [name for name in required if _kind(properties[name]) == "string"]
    texts = segment.texts(several=len(free_texts) == 1, skip_numbers=bool(numbers))
    shared: dict[str, Any] = {}
    for name in properties:
        match _kind(properties[name]):
            case "number" if name in numbers:
                shared[name] = numbers[name]
            case "choice" if name in required and (choice := segment.choice(properties[name]["enum"])) is not None:
                shared[name] = choice
            case "boolean" if name in required:
                shared[name] = not segment.negative
            case _:
                pass
    if len(free_texts) == 1:
        inputs = [{**shared, free_texts[0]: value} for value in texts] or [shared]
    else:
        inputs = [shared | dict(zip(free_texts, texts, strict=False))]
    return [_in_order(input, properties) for input in inputs], [name for name in required if name not in inputs[0]]


def _in_order(input: dict[str, Any], properties: Mapping[str, Any]) -> dict[str, Any]:
    return {name: input[name] for name in properties if name in input}


def _numeric(properties: Mapping[str, Any], required: Sequence[str]) -> Iterator[str]:
    numeric = [name for name, schema in properties.items() if _kind(schema) == "number"]
    yield from (name for name in numeric if name in required)
    yield from (name for name in numeric if name not in required)


def _kind(schema: Any) -> str:
    if "enum" in schema:
        return "choice"
    kind = schema.get("type")
    return {"integer": "number"}.get(kind, kind) if isinstance(kind, str) else ""


def example(spec: ToolSpec) -> str:
    """How ``spec`` is called exactly."""
    properties: dict[str, Any] = spec.parameters.get("properties", {})
    input = {name: _sample(name, properties.get(name, {})) for name in spec.parameters.get("required", [])}
    text = ", ".join(f"{codec.quote(name)}: {codec.encode_text(value)}" for name, value in input.items())
    return f"call {spec.name} {{{text}}}"


def _sample(name: str, schema: Any) -> Any:
    match _kind(schema):
        case "choice":
            return schema["enum"][0]
        case "number":
            return 2
        case "boolean":
            return True
        case "array":
            return []
        case "object":
            return {}
        case _:
            return _EXAMPLES.get(name, "text")
