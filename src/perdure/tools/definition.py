"""What a tool needs to know about its input, wherever that came from; and how input errors are told to the model.

Imports ``protocol`` and ``errors`` only.
"""

from __future__ import annotations

import inspect
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Any

from perdure.errors import ConfigurationError, InvalidToolInput
from perdure.protocol import codec

__all__ = ["Definition", "Problem", "invalid_input", "shown", "signature_of"]

MAX_PROBLEMS = 20
MAX_PROBLEM_CHARS = 300

Problem = tuple[Sequence[str | int], str]
"""Where in the input, and what is wrong there."""


class Definition(ABC):
    """The input of a tool: described for the model, checked, and handed to the function."""

    @property
    @abstractmethod
    def description(self) -> str:
        """What the tool does."""

    @property
    @abstractmethod
    def schema(self) -> dict[str, Any]:
        """JSON Schema of the input: an object schema. Shared: do not change it."""

    @abstractmethod
    def bind(self, name: str, execute: Callable[..., Any], input: dict[str, Any], context: Any) -> partial[Any]:
        """``execute`` with the checked input as its arguments.

        Raises:
            InvalidToolInput: the input does not fit the schema.
        """


def invalid_input(name: str, problems: Iterable[Problem]) -> InvalidToolInput:
    """The error whose text tells the model each field that is wrong."""
    lines = [f"- {_place(where)}{_cut(what)}" for where, what in problems]
    if len(lines) > MAX_PROBLEMS:
        lines[MAX_PROBLEMS:] = [f"- and {len(lines) - MAX_PROBLEMS} more"]
    return InvalidToolInput("\n".join([f"Invalid input for tool {name}:", *lines]))


def signature_of(function: Callable[..., Any], name: str) -> inspect.Signature:
    """The signature of the function of the tool ``name``.

    Raises:
        ConfigurationError: it has none, as some built-in functions.
    """
    try:
        return inspect.signature(function)
    except (TypeError, ValueError) as error:
        raise ConfigurationError(f"the function of tool {name} cannot be read: {error}. Wrap it in a def.") from None


def shown(value: Any) -> str:
    """``value`` as short JSON, for an error text."""
    return _cut(codec.encode_text(value), 80)


def _place(path: Sequence[str | int]) -> str:
    text = "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in path)
    return f"{text.removeprefix('.')}: " if text else ""


def _cut(text: str, limit: int = MAX_PROBLEM_CHARS) -> str:
    return text if len(text) <= limit else text[: limit - 1] + "…"
