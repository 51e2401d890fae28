"""A server for chat agents whose work outlives the request.

Subclass :class:`Think`, give it tools, serve it with :class:`App`::

    from perdure import App, Think, tool

    @tool
    def add(a: int, b: int) -> int:
        "Add two numbers."
        return a + b

    class Assistant(Think):
        model = "demo"

        def get_tools(self):
            return [add]

    app = App(Assistant)
"""

from perdure._version import __version__
from perdure.agent.base import Agent
from perdure.agent.callables import callable
from perdure.agent.connection import Connection, ConnectionRequest, current_connection
from perdure.agent.retry import Retry
from perdure.agent.rpc import ReplyStream
from perdure.agent.schedules import Schedule
from perdure.agent.think import Think
from perdure.errors import (
    BadRequest,
    ConfigurationError,
    Fenced,
    InvalidToolInput,
    MissingExtra,
    ModelError,
    ModelRejected,
    ModelUnreachable,
    NewerSchema,
    PerdureError,
    ReadonlyConnection,
    StorageError,
    StorageInUse,
    ToolError,
    UnknownTool,
)
from perdure.models.contract import ChatModel, Finish, HistoryMessage, ModelRequest, ToolSpec, Usage
from perdure.models.registry import default_model, openai_compatible
from perdure.server.app import App
from perdure.server.limits import Limits
from perdure.tools import Tool, ToolContext, tool

__all__ = [
    "Agent",
    "App",
    "BadRequest",
    "ChatModel",
    "ConfigurationError",
    "Connection",
    "ConnectionRequest",
    "Fenced",
    "Finish",
    "HistoryMessage",
    "InvalidToolInput",
    "Limits",
    "MissingExtra",
    "ModelError",
    "ModelRejected",
    "ModelRequest",
    "ModelUnreachable",
    "NewerSchema",
    "PerdureError",
    "ReadonlyConnection",
    "ReplyStream",
    "Retry",
    "Schedule",
    "StorageError",
    "StorageInUse",
    "Think",
    "Tool",
    "ToolContext",
    "ToolError",
    "ToolSpec",
    "UnknownTool",
    "Usage",
    "__version__",
    "callable",
    "current_connection",
    "default_model",
    "openai_compatible",
    "tool",
]
