"""Inputs that are declared: as JSON Schema, or as a pydantic model, a TypedDict or a dataclass.

pydantic and jsonschema-rs are imported on first use. Imports ``protocol``, ``errors`` and the definition beside it.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from functools import cached_property, lru_cache, partial
from typing import TYPE_CHECKING, Any, cast

from perdure.errors import ConfigurationError
from perdure.protocol import codec
from perdure.tools.definition import Definition, Problem, invalid_input, shown, signature_of

if TYPE_CHECKING:
    from jsonschema_rs import Validator
    from pydantic import TypeAdapter

__all__ = ["DeclaredDefinition", "PydanticInput", "compile_schema"]


class DeclaredDefinition(Definition):
    """The definition of a tool whose author gave a schema."""

    def __init__(
        self,
        name: str,
        description: str,
        input_schema: Mapping[str, Any] | type[Any],
        execute: Callable[..., Any] | None,
    ) -> None:
        self._name = name
        self._description = description
        self._input_schema = input_schema
        self._execute = execute
        self._takes_context = execute is not None and required_positionals(execute, name) > 1

    @property
    def description(self) -> str:
        return self._description

    @property
    def schema(self) -> dict[str, Any]:
        return self._input.schema

    def bind(self, name: str, execute: Callable[..., Any], input: dict[str, Any], context: Any) -> partial[Any]:
        value = self._input.parse(name, input)
        takes_context = self._takes_context if execute is self._execute else required_positionals(execute, name) > 1
        return partial(execute, value, context) if takes_context else partial(execute, value)

    @cached_property
    def _input(self) -> JSONSchemaInput | PydanticInput:
        place = f"the input_schema of tool {self._name}"
        if isinstance(self._input_schema, Mapping):
            return JSONSchemaInput(self._input_schema, place)
        return PydanticInput(self._input_schema, place)


class JSONSchemaInput:
    """An input described by JSON Schema; it stays a ``dict``."""

    def __init__(self, schema: Mapping[str, Any], place: str) -> None:
        self.schema = _object_schema(dict(schema), place)
        text = codec.encode_text(self.schema)
        self.schema = codec.decode(text)
        try:
            self._validator = compile_schema(text)
        except ValueError as error:
            raise ConfigurationError(f"{place} is no valid JSON Schema: {error}") from None

    def parse(self, name: str, input: dict[str, Any]) -> dict[str, Any]:
        """A copy of ``input`` that fits the schema."""
        problems: list[Problem] = [(error.instance_path, error.message) for error in self._validator.iter_errors(input)]
        if problems:
            raise invalid_input(name, problems)
        return codec.decode(codec.encode_text(input))


class PydanticInput:
    """An input described by a type that pydantic understands."""

    def __init__(self, kind: Any, place: str) -> None:
        self._adapter = _adapter(kind, place)
        self.schema = _object_schema(_schema_of(self._adapter, place), place)

    def parse(self, name: str, input: dict[str, Any]) -> Any:
        """``input`` as the type."""
        from pydantic import ValidationError

        try:
            # As JSON: strict models read dates and enums from text only there, and nothing is shared with the input
            return self._adapter.validate_json(codec.encode_text(input))
        except ValidationError as error:
            details = error.errors(include_url=False, include_context=False)
            raise invalid_input(name, [_problem(cast("dict[str, Any]", item)) for item in details]) from None


@lru_cache(maxsize=1024)
def compile_schema(text: str) -> Validator:
    """The validator of a JSON Schema given as JSON text; cached by the text. Never fetches what a ``$ref`` points at.

    Raises:
        ValueError: no valid JSON Schema, or one that refers to another document.
    """
    import jsonschema_rs

    try:
        return jsonschema_rs.validator_for(codec.decode(text), retriever=_refuse_remote)
    except jsonschema_rs.ValidationError as error:
        raise ValueError(error.message) from None
    except jsonschema_rs.ReferencingError as error:
        raise ValueError(str(error)) from None


def _refuse_remote(uri: str) -> Any:
    raise ValueError(f"{uri} is another document; schemas may refer to themselves only")


def _adapter(kind: Any, place: str) -> TypeAdapter[Any]:
    from pydantic import PydanticUserError, TypeAdapter

    try:
        return TypeAdapter(kind)
    except (PydanticUserError, NameError) as error:
        raise ConfigurationError(f"{place} cannot be used: {error}") from None


def _schema_of(adapter: TypeAdapter[Any], place: str) -> dict[str, Any]:
    from pydantic import PydanticUserError

    try:
        schema = adapter.json_schema(schema_generator=_generator())
    except PydanticUserError as error:
        raise ConfigurationError(f"{place} cannot be described to a model: {error}") from None
    own = schema.pop("$ref", None)
    if own is not None:  # a type that contains itself
        schema |= schema["$defs"][own.removeprefix("#/$defs/")]
    schema.pop("title", None)
    return schema


@lru_cache(maxsize=1)
def _generator() -> Any:
    from pydantic.json_schema import GenerateJsonSchema

    class WithoutFieldTitles(GenerateJsonSchema):
        """A title that only repeats the field's name costs tokens and says nothing."""

        def field_title_should_be_set(self, schema: Any) -> bool:
            return False

    return WithoutFieldTitles


def _object_schema(schema: dict[str, Any], place: str) -> dict[str, Any]:
    kind = schema.setdefault("type", "object")
    if kind != "object":
        raise ConfigurationError(
            f"{place} must describe an object, not {shown(kind)}: models call tools with named values"
        )
    return schema


def _problem(item: dict[str, Any]) -> Problem:
    message = item["msg"]
    if item["type"] != "missing" and isinstance(item["input"], str | int | float | bool | None):
        message += f" (got {shown(item['input'])})"
    return item["loc"], message


def required_positionals(function: Callable[..., Any], name: str) -> int:
    parameters = signature_of(function, name).parameters.values()
    positional = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    return sum(1 for item in parameters if item.kind in positional and item.default is inspect.Parameter.empty)
