"""Several sources of tools as one set."""

from __future__ import annotations

from typing import Any

import pytest

from perdure.errors import ConfigurationError
from perdure.tools import Tool, ToolContext, ToolSet, merge, tool

pytestmark = pytest.mark.anyio

CONTEXT = ToolContext(agent=None, tool_call_id="c1", turn_id="t1")


def source(*names: str, says: str) -> list[Tool]:
    return [Tool(name, description=says, input_schema={}, execute=lambda value: says) for name in names]


async def test_a_later_source_wins_and_takes_the_earlier_place() -> None:
    tools = merge(source("read", "write", says="workspace"), source("read", "add", says="own"))

    assert list(tools) == ["read", "write", "add"]
    assert [spec.description for spec in tools.specs] == ["own", "workspace", "own"]
    assert await tools["read"].run({}, CONTEXT) == "own"


def test_every_order_of_sources_is_the_order_of_precedence() -> None:
    named = {says: source("read", says=says) for says in ("workspace", "own", "extension", "client")}

    for winner in named:
        rest = [tools for says, tools in named.items() if says != winner]
        assert merge(*rest, named[winner])["read"].description == winner


async def test_in_a_mapping_the_keys_are_the_names() -> None:
    @tool
    async def get_weather(city: str) -> str:
        return city

    tools = merge({"weather": get_weather, "forecast": get_weather, "get_weather": get_weather})

    assert [spec.name for spec in tools.specs] == ["weather", "forecast", "get_weather"]
    assert [tool.name for tool in tools.values()] == ["weather", "forecast", "get_weather"]
    assert tools["get_weather"] is get_weather
    assert await tools["forecast"].run({"city": "Rome"}, CONTEXT) == "Rome"


async def test_plain_functions_and_methods_are_tools_too() -> None:
    class Agent:
        def greet(self, name: str) -> str:
            return f"Hello {name}"

    def add(a: int, b: int) -> int:
        """Adds."""
        return a + b

    tools = merge([add, Agent().greet])

    assert tools.specs[0].description == "Adds."
    assert await tools["add"].run({"a": 1, "b": 2}, CONTEXT) == 3
    assert await tools["greet"].run({"name": "Ada"}, CONTEXT) == "Hello Ada"


def test_two_tools_of_one_name_in_a_list_are_refused_and_both_named() -> None:
    def make() -> Any:
        def add() -> None: ...

        return add

    with pytest.raises(ConfigurationError, match=r"two tools are named add: .*test_merge\..*make.*add and .*<lambda>"):
        merge([make(), Tool("add", description="", input_schema={}, execute=lambda value: value)])


@pytest.mark.parametrize("name", ["fs.read/file", "имя", "a" * 65, "a\nb", "__proto__", "constructor", "a-b_C9"])
def test_any_text_is_a_name(name: str) -> None:
    assert list(merge(source(name, says=""))) == [name]
    assert merge({name: source("fine", says="")[0]}).specs[0].name == name


@pytest.mark.parametrize("name", ["", 5, None])
def test_a_name_that_is_none_is_refused(name: Any) -> None:
    with pytest.raises(ConfigurationError, match=r"source.* is named .*: a name is a text"):
        merge(source(name, says=""))
    with pytest.raises(ConfigurationError, match="is named"):
        merge({name: source("fine", says="")[0]})


def test_something_else_than_a_tool_is_refused() -> None:
    with pytest.raises(ConfigurationError, match="'add' is no tool"):
        merge(["add"])  # type: ignore[list-item]


def test_a_set_is_a_mapping_that_makes_its_specs_once() -> None:
    tools = merge(source("a", "b", says=""))

    assert isinstance(tools, ToolSet)
    assert tools.specs is tools.specs
    assert "a" in tools
    assert tools.get("c") is None
    assert repr(tools) == "<ToolSet a, b>"
    assert (len(merge()), merge().specs) == (0, ())
