"""Tools that run in the user's browser: declared on the server, or sent by the page with its request.

Imports ``protocol``, ``errors`` and the contract beside it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from perdure.errors import BadRequest, ConfigurationError, InvalidToolInput
from perdure.protocol.client_tools import ClientToolSpec
from perdure.tools.approval import NeedsApproval
from perdure.tools.contract import Tool
from perdure.tools.merge import ToolSet

__all__ = ["client_tool", "page_tools"]


def client_tool(
    name: str,
    description: str = "",
    schema: Mapping[str, Any] | type[Any] | None = None,
    *,
    needs_approval: NeedsApproval = False,
) -> Tool:
    """A tool without a body: the model may call it, and a page gives the result (``onToolCall``, ``addToolOutput``).

    Args:
        name: Its name.
        description: Tells the model what it does and when to use it.
        schema: What it takes: JSON Schema of an object, a pydantic model, a ``TypedDict`` or a dataclass; any object
            by default.
        needs_approval: Whether a person has to approve a call before the page may answer it: always, or when this
            function of the arguments says so.
    """
    return Tool(
        name,
        description=description,
        input_schema={"type": "object"} if schema is None else schema,
        needs_approval=needs_approval,
    )


def page_tools(specs: Sequence[ClientToolSpec]) -> ToolSet:
    """The tools that a page offers, as the model is told of them. Of two with one name the later counts.

    Raises:
        BadRequest: the parameters of one are no JSON Schema of an object.
    """
    tools: dict[str, Tool] = {}
    for spec in specs:
        tool = client_tool(spec.name, spec.description, spec.parameters)
        try:
            tool.check({})
        except ConfigurationError as error:
            raise BadRequest(f"The client tool {spec.name!r:.60} cannot be used: {error}") from None
        except InvalidToolInput:
            pass
        tools[spec.name] = tool
    return ToolSet(tools)
