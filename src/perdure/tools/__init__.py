"""What a model may call: the Tool contract, ``@tool``, input checks, JSON-ready outputs, and the merging of sources.

Imports ``models``, ``protocol`` and ``errors`` only. Importing this package imports neither pydantic nor a schema
library: schemas are made when they are first asked for.
"""

from __future__ import annotations

from perdure.tools.approval import NeedsApproval
from perdure.tools.client import client_tool, page_tools
from perdure.tools.contract import Tool, ToolContext
from perdure.tools.decorator import FunctionTool, tool
from perdure.tools.media import Media
from perdure.tools.merge import ToolSet, merge

__all__ = [
    "FunctionTool",
    "Media",
    "NeedsApproval",
    "Tool",
    "ToolContext",
    "ToolSet",
    "client_tool",
    "merge",
    "page_tools",
    "tool",
]
