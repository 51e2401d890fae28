"""Tools of several sources as one set: later sources replace earlier ones by name. Imports the contract and errors."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any

from perdure.errors import ConfigurationError
from perdure.models.contract import ToolSpec
from perdure.tools.contract import Tool
from perdure.tools.decorator import FunctionTool

__all__ = ["ToolSet", "ToolSource", "merge"]

ToolSource = Sequence[Tool | Callable[..., Any]] | Mapping[str, Tool | Callable[..., Any]]
"""Tools and plain functions; in a mapping the keys are the names."""


class ToolSet(Mapping[str, Tool]):
    """Tools by name, in the order in which the model is told about them. Does not change."""

    def __init__(self, tools: Mapping[str, Tool]) -> None:
        self._tools = dict(tools)

    @cached_property
    def specs(self) -> tuple[ToolSpec, ...]:
        """What the model is told.

        Raises:
            ConfigurationError: the input schema of one of the tools cannot be made or used.
        """
        return tuple(tool.spec for tool in self._tools.values())

    def __getitem__(self, name: str) -> Tool:
        return self._tools[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._tools)

    def __len__(self) -> int:
        return len(self._tools)

    def __repr__(self) -> str:
        return f"<ToolSet {', '.join(self._tools)}>"


def merge(*sources: ToolSource) -> ToolSet:
    """One set of all sources. A tool of a later source takes the place of an earlier one with its name.

    Raises:
        ConfigurationError: two tools in one list have the same name, a name is empty, or something is neither a tool
            nor a function.
    """
    tools: dict[str, Tool] = {}
    for source in sources:
        tools.update(_of_mapping(source) if isinstance(source, Mapping) else _of_list(source))
    return ToolSet(tools)


def _of_mapping(source: Mapping[str, Tool | Callable[..., Any]]) -> dict[str, Tool]:
    tools: dict[str, Tool] = {}
    for name, item in source.items():
        tool = _tool(item)
        _check_name(name, tool)
        tools[name] = tool if tool.name == name else tool.renamed(name)
    return tools


def _of_list(source: Sequence[Tool | Callable[..., Any]]) -> dict[str, Tool]:
    tools: dict[str, Tool] = {}
    for item in source:
        tool = _tool(item)
        _check_name(tool.name, tool)
        if tool.name in tools:
            raise ConfigurationError(
                f"two tools are named {tool.name}: {_origin(tools[tool.name])} and {_origin(tool)}. Rename one with "
                "@tool(name=…), or give a dict whose keys are the names."
            )
        tools[tool.name] = tool
    return tools


def _tool(item: Any) -> Tool:
    if isinstance(item, Tool):
        return item
    if callable(item):
        return FunctionTool(item)
    raise ConfigurationError(f"{item!r} is no tool: give functions, tools made with @tool, or Tool(…)")


def _check_name(name: Any, tool: Tool) -> None:
    if not isinstance(name, str) or not name:
        raise ConfigurationError(
            f"the tool of {_origin(tool)} is named {name!r:.40}: a name is a text of some characters"
        )


def _origin(tool: Tool) -> str:
    function = tool.execute
    if function is None:
        return "a client tool"
    name = getattr(function, "__qualname__", None) or type(function).__qualname__
    return f"{getattr(function, '__module__', '?')}.{name}"
