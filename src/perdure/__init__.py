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
from perdure.agent.caller_tools import ClientToolCall
from perdure.agent.chat_callbacks import ChatCallbacks
from perdure.agent.connection import Connection, ConnectionRequest, current_connection
from perdure.agent.family import SubAgentInfo
from perdure.agent.queueing import QueueItem
from perdure.agent.refusal import Refuse
from perdure.agent.retry import Retry
from perdure.agent.rpc import ReplyStream
from perdure.agent.schedules import Schedule
from perdure.agent.think import Think
from perdure.agent.turn_config import (
    ChatErrorContext,
    ChatResponse,
    PendingApproval,
    StepConfig,
    StepContext,
    StepResult,
    ToolCallContext,
    ToolCallDecision,
    ToolCallResult,
    TurnConfig,
    TurnContext,
    TurnResult,
    allow,
    block,
    substitute,
)
from perdure.chat.concurrency import Debounce
from perdure.errors import (
    AgentStopped,
    BadRequest,
    ConfigurationError,
    Fenced,
    InvalidToolInput,
    MissingExtra,
    ModelError,
    ModelRejected,
    ModelUnreachable,
    NestedTurn,
    NewerSchema,
    PerdureError,
    ReadonlyConnection,
    StorageError,
    StorageInUse,
    ToolError,
    TurnError,
    TurnFailed,
    UnknownTool,
)
from perdure.models.contract import ChatModel, Finish, HistoryMessage, ModelRequest, ToolSpec, Usage
from perdure.models.registry import default_model, openai_compatible
from perdure.observability import Event
from perdure.server.app import App
from perdure.server.limits import Limits
from perdure.server.requests import IncomingRequest
from perdure.tools import Media, Tool, ToolContext, client_tool, tool

__all__ = [
    "Agent",
    "AgentStopped",
    "App",
    "BadRequest",
    "ChatCallbacks",
    "ChatErrorContext",
    "ChatModel",
    "ChatResponse",
    "ClientToolCall",
    "ConfigurationError",
    "Connection",
    "ConnectionRequest",
    "Debounce",
    "Event",
    "Fenced",
    "Finish",
    "HistoryMessage",
    "IncomingRequest",
    "InvalidToolInput",
    "Limits",
    "Media",
    "MissingExtra",
    "ModelError",
    "ModelRejected",
    "ModelRequest",
    "ModelUnreachable",
    "NestedTurn",
    "NewerSchema",
    "PendingApproval",
    "PerdureError",
    "QueueItem",
    "ReadonlyConnection",
    "Refuse",
    "ReplyStream",
    "Retry",
    "Schedule",
    "StepConfig",
    "StepContext",
    "StepResult",
    "StorageError",
    "StorageInUse",
    "SubAgentInfo",
    "Think",
    "Tool",
    "ToolCallContext",
    "ToolCallDecision",
    "ToolCallResult",
    "ToolContext",
    "ToolError",
    "ToolSpec",
    "TurnConfig",
    "TurnContext",
    "TurnError",
    "TurnFailed",
    "TurnResult",
    "UnknownTool",
    "Usage",
    "__version__",
    "allow",
    "block",
    "callable",
    "client_tool",
    "current_connection",
    "default_model",
    "openai_compatible",
    "substitute",
    "tool",
]
