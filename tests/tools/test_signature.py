"""What the model is told about a function, and what it is told when its arguments do not fit."""

from __future__ import annotations

import enum
from datetime import date
from typing import Annotated, Any, Literal

import pytest
from pydantic import BaseModel, Field
from typing_extensions import TypedDict

from perdure.errors import ConfigurationError, InvalidToolInput
from perdure.tools import ToolContext, tool

pytestmark = pytest.mark.anyio

CONTEXT = ToolContext(agent="the agent", tool_call_id="c1", turn_id="t1")


class Point(BaseModel):
    x: int
    y: int = 0


class Place(TypedDict):
    city: str


class Unit(enum.Enum):
    METRIC = "metric"
    IMPERIAL = "imperial"


@tool
def every_kind(
    text: str,
    count: int,
    ratio: float,
    flag: bool,
    tags: list[str],
    mode: Literal["fast", "slow"],
    point: Point,
    place: Place,
    unit: Unit,
    when: date | None = None,
    limit: int = 10,
) -> dict[str, Any]:
    return locals()


GOOD = {
    "text": "a",
    "count": 1,
    "ratio": 0.5,
    "flag": True,
    "tags": ["b"],
    "mode": "fast",
    "point": {"x": 1},
    "place": {"city": "Paris"},
    "unit": "metric",
}


@pytest.mark.parametrize(
    ("name", "schema"),
    [
        ("text", {"type": "string"}),
        ("count", {"type": "integer"}),
        ("ratio", {"type": "number"}),
        ("flag", {"type": "boolean"}),
        ("tags", {"type": "array", "items": {"type": "string"}}),
        ("mode", {"type": "string", "enum": ["fast", "slow"]}),
        ("point", {"$ref": "#/$defs/Point"}),
        ("place", {"$ref": "#/$defs/Place"}),
        ("unit", {"$ref": "#/$defs/Unit"}),
        ("when", {"anyOf": [{"type": "string", "format": "date"}, {"type": "null"}], "default": None}),
        ("limit", {"type": "integer", "default": 10}),
    ],
)
def test_every_kind_of_parameter_has_its_schema(name: str, schema: dict[str, Any]) -> None:
    assert every_kind.spec.parameters["properties"][name] == schema


def test_parameters_without_a_default_are_required_and_others_are_refused() -> None:
    assert every_kind.spec.parameters["required"] == list(GOOD)
    assert every_kind.spec.parameters["additionalProperties"] is False
    assert every_kind.spec.parameters["type"] == "object"
    assert every_kind.spec.parameters["$defs"]["Point"]["required"] == ["x"]
    assert every_kind.spec.parameters["$defs"]["Unit"]["enum"] == ["metric", "imperial"]


async def test_the_function_receives_python_values_and_its_defaults() -> None:
    seen: dict[str, Any] = {}

    @tool
    def spy(point: Point, unit: Unit, place: Place, when: date | None = None, limit: int = 10) -> None:
        seen.update(point=point, unit=unit, place=place, when=when, limit=limit)

    await spy.run({"point": {"x": 1}, "unit": "imperial", "place": {"city": "Rome"}, "when": "2026-11-30"}, CONTEXT)

    assert seen == {
        "point": Point(x=1),
        "unit": Unit.IMPERIAL,
        "place": {"city": "Rome"},
        "when": date(2026, 11, 30),
        "limit": 10,
    }


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("text", 5, "- text: Input should be a valid string (got 5)"),
        ("count", 1.5, "- count: Input should be a valid integer, got a number with a fractional part (got 1.5)"),
        ("ratio", "x", '- ratio: Input should be a valid number, unable to parse string as a number (got "x")'),
        ("flag", "maybe", '- flag: Input should be a valid boolean, unable to interpret input (got "maybe")'),
        ("tags", ["a", 2], "- tags[1]: Input should be a valid string (got 2)"),
        ("mode", "medium", "- mode: Input should be 'fast' or 'slow' (got \"medium\")"),
        ("point", {"y": 1}, "- point.x: Field required"),
        ("place", {"city": None}, "- place.city: Input should be a valid string (got null)"),
        ("unit", "feet", "- unit: Input should be 'metric' or 'imperial' (got \"feet\")"),
        ("limit", None, "- limit: Input should be a valid integer (got null)"),
        ("nonsense", 1, "- nonsense: Extra inputs are not permitted (got 1)"),
    ],
)
async def test_a_wrong_argument_is_named_with_what_is_wrong(name: str, value: Any, message: str) -> None:
    with pytest.raises(InvalidToolInput) as caught:
        await every_kind.run(GOOD | {name: value}, CONTEXT)

    assert str(caught.value).splitlines() == ["Invalid input for tool every_kind:", message]


async def test_all_wrong_arguments_are_named_at_once() -> None:
    with pytest.raises(InvalidToolInput) as caught:
        await every_kind.run({"count": "x", "mode": "fast"}, CONTEXT)

    text = str(caught.value)
    assert all(f"- {name}: " in text for name in GOOD if name != "mode")
    assert "mode" not in text


async def test_a_text_with_many_or_long_mistakes_stays_short() -> None:
    @tool
    def takes_numbers(numbers: list[int], text: Literal["x"]) -> None: ...

    with pytest.raises(InvalidToolInput) as caught:
        await takes_numbers.run({"numbers": ["y"] * 500, "text": "z" * 100_000}, CONTEXT)

    assert "and 481 more" in str(caught.value)
    assert len(str(caught.value)) < 4_000


async def test_arguments_belong_to_the_function_alone() -> None:
    @tool
    def spoil(items: list[str]) -> None:
        items.append("spoiled")

    given = {"items": ["a"]}
    await spoil.run(given, CONTEXT)

    assert given == {"items": ["a"]}


async def test_a_mutable_default_is_new_for_every_call() -> None:
    @tool
    def collect(items: list[str] = []) -> list[str]:  # noqa: B006
        items.append("x")
        return items

    assert await collect.run({}, CONTEXT) == ["x"]
    assert await collect.run({}, CONTEXT) == ["x"]


async def test_a_default_without_json_form_works_and_is_not_in_the_schema() -> None:
    marker = object()

    @tool
    def marked(value: Any = marker) -> bool:
        return value is marker

    assert "default" not in marked.spec.parameters["properties"]["value"]
    assert await marked.run({}, CONTEXT) is True


async def test_parameters_may_have_any_name_and_no_annotation() -> None:
    @tool
    def odd(json, _hidden: int, model_config: int, copy: int = 1):
        return [json, _hidden, model_config, copy]

    assert list(odd.spec.parameters["properties"]) == ["json", "_hidden", "model_config", "copy"]
    assert await odd.run({"json": {"a": 1}, "_hidden": 2, "model_config": 3}, CONTEXT) == [{"a": 1}, 2, 3, 1]


async def test_positional_and_keyword_only_parameters_are_passed_as_such() -> None:
    @tool
    def strict(first: int, /, second: int, *, third: int) -> list[int]:
        return [first, second, third]

    assert await strict.run({"first": 1, "second": 2, "third": 3}, CONTEXT) == [1, 2, 3]


async def test_constraints_and_descriptions_of_annotations_count() -> None:
    @tool
    def order(
        amount: Annotated[int, Field(ge=1, le=9, description="From the annotation.")],
        note: str = Field(default="none", max_length=5),
    ) -> str:
        """Orders.

        Args:
            amount: From the docstring.
            note: A remark.
        """
        return f"{amount} {note}"

    assert order.spec.parameters["properties"] == {
        "amount": {"type": "integer", "minimum": 1, "maximum": 9, "description": "From the annotation."},
        "note": {"type": "string", "maxLength": 5, "default": "none", "description": "A remark."},
    }
    assert await order.run({"amount": 3}, CONTEXT) == "3 none"
    with pytest.raises(InvalidToolInput, match="amount: Input should be less than or equal to 9"):
        await order.run({"amount": 10}, CONTEXT)


@pytest.mark.parametrize("wanted", ["first", "last", "optional"])
async def test_a_context_parameter_is_filled_in_and_hidden_from_the_model(wanted: str) -> None:
    def first(context: ToolContext, city: str) -> list[Any]:
        return [context.agent, context.tool_call_id, context.turn_id, list(context.messages), city]

    def last(city: str, *, ctx: ToolContext) -> list[Any]:
        return first(ctx, city)

    def optional(city: str, ctx: ToolContext | None = None) -> list[Any]:
        assert ctx is not None
        return first(ctx, city)

    made = tool({"first": first, "last": last, "optional": optional}[wanted])

    assert list(made.spec.parameters["properties"]) == ["city"]
    assert await made.run({"city": "Rome"}, CONTEXT) == ["the agent", "c1", "t1", [], "Rome"]
    with pytest.raises(InvalidToolInput, match="Extra inputs"):
        await made.run({"city": "Rome", "ctx": {}}, CONTEXT)


def test_a_function_without_parameters_takes_an_empty_object() -> None:
    @tool
    def now() -> str:
        return ""

    assert now.spec.parameters == {"type": "object", "properties": {}, "additionalProperties": False}


GOOGLE = """Finds files.

        Looks everywhere.

        Args:
            pattern (str): What to look
                for.
            limit: How many at most.

        Returns:
            The names.

        Raises:
            OSError: never.
        """
NUMPY = """Finds files.

        Looks everywhere.

        Parameters
        ----------
        pattern : str
            What to look
            for.
        limit : int
            How many at most.

        Returns
        -------
        list
            The names.
        """
SPHINX = """Finds files.

        Looks everywhere.

        :param pattern: What to look
            for.
        :type pattern: str
        :param limit: How many at most.
        :returns: The names.
        """


@pytest.mark.parametrize("docstring", [GOOGLE, NUMPY, SPHINX], ids=["google", "numpy", "sphinx"])
def test_descriptions_come_from_the_docstring(docstring: str) -> None:
    def find(pattern: str, limit: int) -> list[str]:
        return []

    find.__doc__ = docstring
    spec = tool(find).spec

    assert spec.description == "Finds files.\n\nLooks everywhere."
    assert spec.parameters["properties"]["pattern"]["description"] == "What to look for."
    assert spec.parameters["properties"]["limit"]["description"] == "How many at most."


def test_notes_of_a_docstring_stay_in_the_description() -> None:
    @tool
    def act() -> None:
        """Acts.

        Note:
            Cannot be undone.
        """

    assert act.spec.description == "Acts.\n\nNote: Cannot be undone."


def test_without_a_docstring_the_description_is_empty() -> None:
    @tool
    def act(x: int) -> None: ...

    assert act.spec.description == ""


def test_open_ended_parameters_are_refused_with_a_remedy() -> None:
    @tool
    def anything(**options: Any) -> None: ...

    with pytest.raises(ConfigurationError, match=r"tool anything takes \*\*options: .*Name them"):
        _ = anything.spec


def test_a_type_that_cannot_be_resolved_is_named() -> None:
    @tool
    def broken(value: DoesNotExist) -> None: ...  # type: ignore[name-defined]  # noqa: F821

    with pytest.raises(ConfigurationError, match="tool broken cannot be read: name 'DoesNotExist' is not defined"):
        _ = broken.spec


def test_a_type_without_json_schema_is_refused() -> None:
    class Socket: ...

    def connect(socket) -> None: ...

    connect.__annotations__["socket"] = Socket

    with pytest.raises(ConfigurationError, match="the signature of tool connect cannot be used"):
        _ = tool(connect).spec


def test_closures_made_anew_for_every_turn_are_read_once() -> None:
    def make(extra: int) -> Any:
        @tool
        def scale(value: int) -> int:
            return value * extra

        return scale

    assert make(1).spec.parameters is make(2).spec.parameters


async def test_closures_that_differ_in_defaults_or_types_are_told_apart() -> None:
    def make(kind: Any, default: Any) -> Any:
        def echo(value=default):
            return value

        echo.__annotations__["value"] = kind
        return tool(echo)

    numbers, texts, other = make(int, 1), make(str, "a"), make(int, 2)

    assert [await made.run({}, CONTEXT) for made in (numbers, other, texts, numbers)] == [1, 2, "a", 1]
    assert texts.spec.parameters["properties"]["value"] == {"type": "string", "default": "a"}
