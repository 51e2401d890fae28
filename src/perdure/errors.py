"""Every exception that perdure raises, as one tree.

::

    PerdureError
    ├── ConfigurationError      the app, an agent class or a setting is wrong
    │   └── MissingExtra        an optional part is not installed
    ├── BadRequest              what a client sent cannot be used
    ├── ReadonlyConnection      a connection that may only read asked for a change
    ├── AgentStopped            an agent that was called is not there (any more)
    ├── StorageError            what should be kept cannot be kept
    │   ├── StorageInUse        another process has the data folder open
    │   ├── NewerSchema         the data was written by a newer perdure
    │   └── Fenced              another process owns the agent now
    ├── ModelError              the model did not answer
    │   ├── ModelRejected       the provider refused the request
    │   └── ModelUnreachable    the provider could not be reached, or broke off
    ├── TurnError               a turn cannot be, or came to nothing
    │   ├── NestedTurn          something would wait for what waits for it
    │   └── TurnFailed          a turn that was waited for ended with an error
    └── ToolError               a tool call did not give a result
        ├── UnknownTool         the model asked for a tool that is not there
        └── InvalidToolInput    the model's arguments do not fit the tool

``code`` is stable and safe to show to clients; ``str(error)`` says what is wrong and, where there is one, the remedy.
"""

from __future__ import annotations

from typing import ClassVar

__all__ = [
    "AgentStopped",
    "BadRequest",
    "ConfigurationError",
    "Fenced",
    "InvalidToolInput",
    "MissingExtra",
    "ModelError",
    "ModelRejected",
    "ModelUnreachable",
    "NestedTurn",
    "NewerSchema",
    "PerdureError",
    "ReadonlyConnection",
    "StorageError",
    "StorageInUse",
    "ToolError",
    "TurnError",
    "TurnFailed",
    "UnknownTool",
]


class PerdureError(Exception):
    """Root of the tree."""

    code: ClassVar[str] = "internal"


class ConfigurationError(PerdureError):
    """The app, an agent class or a setting is wrong; the text names the place and the fix."""

    code = "configuration"


class MissingExtra(ConfigurationError):
    """An optional part is needed and not installed."""

    code = "missing_extra"

    def __init__(self, what: str, command: str) -> None:
        self.what = what
        """What was asked for, for example ``the model "anthropic:claude-sonnet-5"``."""
        self.command = command
        """The one command that installs it."""
        super().__init__(what, command)

    def __str__(self) -> str:
        return f"{self.what} needs a part that is not installed. Install it with: {self.command}"


class BadRequest(PerdureError):
    """What a client sent cannot be used. The text is safe to send back."""

    code = "bad_request"


class ReadonlyConnection(PerdureError):
    """A connection that may only read asked for a change of the state."""

    code = "readonly"

    def __str__(self) -> str:
        return "Connection is readonly"


class AgentStopped(PerdureError):
    """An agent that was called is not there: it was stopped or deleted, or it could not be brought into memory."""

    code = "agent_stopped"


class StorageError(PerdureError):
    """What should be kept cannot be kept (disk full, file locked, file damaged)."""

    code = "storage"


class StorageInUse(StorageError):
    """Another process has the data folder open."""

    code = "storage_in_use"

    def __init__(self, folder: str) -> None:
        self.folder = folder
        super().__init__(folder)

    def __str__(self) -> str:
        return (
            f"The data folder {self.folder} is in use by another perdure process. "
            "Stop that process, or give this one another folder with --data."
        )


class NewerSchema(StorageError):
    """The data was written by a newer perdure."""

    code = "newer_schema"

    def __init__(self, path: str, found: int, known: int) -> None:
        self.path = path
        self.found = found
        """Schema version in the file."""
        self.known = known
        """Newest schema version that this perdure knows."""
        super().__init__(path, found, known)

    def __str__(self) -> str:
        return (
            f"{self.path} has schema version {self.found}; this perdure knows versions up to {self.known}. "
            "Upgrade perdure, or use the data folder of the older version."
        )


class Fenced(StorageError):
    """Another process owns the agent now; nothing of this write was stored."""

    code = "fenced"


class ModelError(PerdureError):
    """The model did not answer. The text is the provider's, or says what happened."""

    code = "model"


class ModelRejected(ModelError):
    """The provider refused the request."""

    code = "model_rejected"

    def __init__(self, message: str, *, status: int | None = None) -> None:
        self.message = message
        self.status = status
        """HTTP status, where there is one."""
        super().__init__(message)


class ModelUnreachable(ModelError):
    """The provider could not be reached, or broke off in the middle of an answer."""

    code = "model_unreachable"


class TurnError(PerdureError):
    """A turn cannot be, or came to nothing."""

    code = "turn"


class NestedTurn(TurnError):
    """Something would wait for ever: for the turn that it runs in, or for an agent that waits for it."""

    code = "nested_turn"

    def __init__(self, what: str) -> None:
        self.what = what
        """What was called."""
        super().__init__(what)

    def __str__(self) -> str:
        return (
            f"{self.what} cannot be called here: this code runs for a turn, or for the start, of an agent that would "
            "have to be over before the call could begin. Use add_messages() to add to the conversation, or make the "
            "call when that is over."
        )


class TurnFailed(TurnError):
    """A turn that was waited for ended with an error. The text is what clients were shown."""

    code = "turn_failed"


class ToolError(PerdureError):
    """A tool call did not give a result. The model sees the text."""

    code = "tool"


class UnknownTool(ToolError):
    """The model asked for a tool that is not there."""

    code = "unknown_tool"

    def __init__(self, name: str, available: list[str]) -> None:
        self.name = name
        self.available = available
        super().__init__(name, available)

    def __str__(self) -> str:
        known = ", ".join(self.available) or "none"
        return f"Model tried to call unavailable tool '{self.name}'. Available tools: {known}."


class InvalidToolInput(ToolError):
    """The model's arguments do not fit the tool."""

    code = "invalid_tool_input"
