"""Inputs that are read from a function: parameters, types and defaults from its signature, words from its docstring.

pydantic is imported on first use. Imports ``errors`` and the modules beside it.
"""

from __future__ import annotations

import inspect
import typing
from collections.abc import Callable
from functools import partial
from types import CodeType
from typing import Annotated, Any, NamedTuple, get_args, get_origin
from weakref import WeakKeyDictionary

from perdure.errors import ConfigurationError
from perdure.protocol import codec
from perdure.tools.contract import ToolContext
from perdure.tools.definition import Definition, signature_of
from perdure.tools.docstrings import read_docstring
from perdure.tools.schemas import PydanticInput

__all__ = ["FunctionDefinition"]


class FunctionDefinition(Definition):
    """The definition of a tool that is a function. Reads the function when it is first asked."""

    def __init__(self, function: Callable[..., Any], description: str | None = None) -> None:
        self._function = function
        self._description = description
        self._reads = _Shared()
        self._bound_reads = _Shared()

    def bound_to(self, method: Callable[..., Any]) -> FunctionDefinition:
        """The definition for the function bound to an object. What is read is the same for all objects, and kept."""
        bound = FunctionDefinition(method, self._description)
        bound._reads = self._bound_reads
        return bound

    @property
    def description(self) -> str:
        return self._reading.description if self._description is None else self._description

    @property
    def schema(self) -> dict[str, Any]:
        return self._reading.input.schema

    def bind(self, name: str, execute: Callable[..., Any], input: dict[str, Any], context: Any) -> partial[Any]:
        values: dict[str, Any] = self._reading.input.parse(name, input).__dict__
        args: list[Any] = []
        kwargs: dict[str, Any] = {}
        for slot in self._reading.slots:
            value = context if slot.field is None else values[slot.field]
            if slot.positional_only:
                args.append(value)
            else:
                kwargs[slot.parameter] = value
        return partial(execute, *args, **kwargs)

    @property
    def _reading(self) -> _Reading:
        if self._reads.reading is None:
            self._reads.reading = _read_once(self._function)
        return self._reads.reading


class _Shared:
    """Where definitions that read the same keep what they read."""

    reading: _Reading | None = None


class _Slot(NamedTuple):
    parameter: str
    positional_only: bool
    field: str | None
    """The field of the input that fills it; ``None`` for the context."""


class _Reading(NamedTuple):
    """What a function's signature and docstring say. Holds no reference to the function."""

    description: str
    input: PydanticInput
    slots: tuple[_Slot, ...]


class _Sources(NamedTuple):
    """What a reading is made from."""

    parameters: tuple[inspect.Parameter, ...]
    hints: dict[str, Any]
    docstring: str

    def same(self, other: _Sources) -> bool:
        """Whether both give the same reading. Defaults are compared by identity: they may be anything."""
        return (
            self.hints == other.hints
            and self.docstring == other.docstring
            and len(self.parameters) == len(other.parameters)
            and all(
                mine.name == theirs.name and mine.kind is theirs.kind and mine.default is theirs.default
                for mine, theirs in zip(self.parameters, other.parameters, strict=True)
            )
        )


_readings: WeakKeyDictionary[CodeType, tuple[_Sources, _Reading]] = WeakKeyDictionary()
"""The last reading of each piece of code: tools that are defined anew for every turn, as closures, are read once."""


def _read_once(function: Callable[..., Any]) -> _Reading:
    plain = _plain(function)
    signature = signature_of(function, _name(function))
    sources = _Sources(tuple(signature.parameters.values()), _hints(function), inspect.getdoc(plain) or "")
    code = getattr(plain, "__code__", None)
    if code is None:
        return _read(function, sources)
    known = _readings.get(code)
    if known is None or not known[0].same(sources):
        known = _readings[code] = (sources, _read(function, sources))
    return known[1]


def _read(function: Callable[..., Any], sources: _Sources) -> _Reading:
    description, words = read_docstring(sources.docstring)
    fields: dict[str, Any] = {}
    slots: list[_Slot] = []
    for parameter in sources.parameters:
        _check(parameter, function)
        hint = sources.hints.get(parameter.name, Any)
        field = None
        if not _is_context(hint):
            field = f"field_{len(fields)}"
            fields[field] = (_annotation(parameter.name, hint, words.get(parameter.name)), _default(parameter))
        slots.append(_Slot(parameter.name, parameter.kind is inspect.Parameter.POSITIONAL_ONLY, field))
    return _Reading(description, _input(function, fields), tuple(slots))


def _input(function: Callable[..., Any], fields: dict[str, Any]) -> PydanticInput:
    """The input as a pydantic model. Its fields are numbered and named by alias, so that any parameter name works."""
    from pydantic import ConfigDict, PydanticUserError, create_model

    place = f"the signature of tool {_name(function)}"
    config = ConfigDict(extra="forbid")
    try:
        model = create_model(_name(function), __config__=config, **fields)
    except PydanticUserError as error:
        raise ConfigurationError(f"{place} cannot be used: {error}") from None
    return PydanticInput(model, place)


def _check(parameter: inspect.Parameter, function: Callable[..., Any]) -> None:
    if parameter.kind in (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD):
        raise ConfigurationError(
            f"tool {_name(function)} takes {parameter}: a model can fill named parameters only. "
            "Name them, or use Tool(…, input_schema=…)."
        )
    if parameter.name == "self":
        raise ConfigurationError(
            f"tool {_name(function)} is a method: use it through its object, as self.{_name(function)}"
        )


def _hints(function: Callable[..., Any]) -> dict[str, Any]:
    plain = _plain(function)
    try:
        return typing.get_type_hints(plain, include_extras=True)
    except NameError as error:
        raise ConfigurationError(
            f"the signature of tool {_name(function)} cannot be read: {error}. Types of parameters must be importable "
            "where the function is defined, not only under TYPE_CHECKING or inside another function."
        ) from None


def _plain(function: Any) -> Any:
    """The function below partials, methods and callable objects: what carries hints, code and docstring."""
    while isinstance(function, partial):
        function = function.func
    function = inspect.unwrap(function)
    if not inspect.isroutine(function):
        function = type(function).__call__
    return getattr(function, "__func__", function)


def _name(function: Any) -> str:
    return getattr(_plain(function), "__name__", type(function).__name__)


def _is_context(hint: Any) -> bool:
    return hint is ToolContext or ToolContext in get_args(hint)


def _annotation(name: str, hint: Any, words: str | None) -> Any:
    """``hint`` with the parameter's name and the docstring's words; what the annotation itself says comes later and
    wins."""
    from pydantic import Field

    base, metadata = (hint.__origin__, hint.__metadata__) if get_origin(hint) is Annotated else (hint, ())
    return Annotated[(base, Field(alias=name, description=words), *metadata)]


def _default(parameter: inspect.Parameter) -> Any:
    """The default as pydantic wants it. One without a JSON form is kept out of the schema."""
    from pydantic import Field
    from pydantic.fields import FieldInfo

    default = parameter.default
    if default is inspect.Parameter.empty:
        return ...
    if isinstance(default, FieldInfo):
        return default
    try:
        codec.encode_text(default)
    except TypeError:
        return Field(default_factory=lambda: default)
    return default
