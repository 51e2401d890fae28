"""Agent classes made on the spot, for tests that only care about the model and the tools."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from perdure import ChatModel, Think, Tool

__all__ = ["agent"]


def agent(model: ChatModel | None, *tools: Tool, name: str = "Agent", **fields: Any) -> type[Think]:
    """A class that answers with ``model`` and has these tools; ``fields`` are its attributes and methods."""

    def get_tools(self: Think) -> Sequence[Tool]:
        return tools

    return type(name, (Think,), {"model": model, "get_tools": get_tools, **fields})
