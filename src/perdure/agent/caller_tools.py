"""Tools that the caller of ``chat()`` runs: for one turn, and stored nowhere (reference: engine §4.2).

The caller is live code that dies with the process, so a call that the end of the process cut off is an orphan like any
other, and no person is waited for.
"""

from __future__ import annotations

import inspect
import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, cast

import anyio

from perdure.errors import BadRequest, ConfigurationError
from perdure.protocol import codec
from perdure.protocol.client_tools import parse_client_tools
from perdure.tools import Tool, ToolContext, ToolSet, page_tools

__all__ = ["CallerTools", "ClientTool", "ClientToolCall"]

logger = logging.getLogger(__name__)

ClientTool = Tool | Mapping[str, Any]
"""A client tool, or what a page would send: ``{"name": …, "description": …, "parameters": JSON Schema}``."""


@dataclass(frozen=True, kw_only=True, slots=True)
class ClientToolCall:
    """What ``on_client_tool_call`` is given."""

    tool_name: str
    input: dict[str, Any]
    """The arguments, which fit the schema."""
    tool_call_id: str


@dataclass(frozen=True, slots=True)
class CallerTools:
    """The client tools of one ``chat()``."""

    tools: ToolSet | None = None
    """``None`` when the caller gave none: the page's are offered then."""
    unanswered: frozenset[str] = field(default_factory=frozenset[str])
    """Those whose calls nobody runs."""

    @classmethod
    def of(cls, given: Sequence[ClientTool], executor: Callable[[ClientToolCall], Any] | None) -> CallerTools:
        """What was given to ``chat()``.

        Raises:
            ConfigurationError: something of it cannot be used.
        """
        if not given:
            return cls()
        tools = _tools(given)
        if executor is None:
            return cls(ToolSet(tools), frozenset(tools))
        return cls(ToolSet({name: _run_by(executor, tool) for name, tool in tools.items()}))


def _tools(given: Sequence[ClientTool]) -> dict[str, Tool]:
    tools: dict[str, Tool] = {}
    for entry in given:
        tool = entry if isinstance(entry, Tool) else _declared(entry)
        if tool.execute is not None:
            raise ConfigurationError(
                f"{tool.name} runs on the server: give client_tools made with client_tool(), or dicts with name, "
                "description and parameters."
            )
        if tool.name in tools:
            logger.warning("chat() was given two client tools named %s: the later one counts", tool.name)
        tools[tool.name] = tool
    return tools


def _declared(entry: Any) -> Tool:
    try:
        (tool,) = page_tools(parse_client_tools(codec.encode_text([entry]))).values()
    except (BadRequest, TypeError, ValueError) as error:
        raise ConfigurationError(
            f"{entry!r:.200} is no client tool ({error}): give client_tool(…), or a dict with name, description and "
            "parameters (JSON Schema)."
        ) from None
    return tool


def _run_by(executor: Callable[[ClientToolCall], Any], tool: Tool) -> Tool:
    """The tool with the caller's function as its own."""

    async def execute(input: Any, context: ToolContext) -> Any:
        arguments = cast("dict[str, Any]", codec.decode(codec.encode_text(input)))
        call = ClientToolCall(tool_name=tool.name, input=arguments, tool_call_id=context.tool_call_id)
        # Stopping the turn does not stop the caller's code; the turn ends when that is over.
        with anyio.CancelScope(shield=True):
            result = executor(call)
            return await result if inspect.isawaitable(result) else result

    return tool.run_by(execute)
