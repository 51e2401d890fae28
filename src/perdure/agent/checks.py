"""Checks of what an application sets and what its hooks give: a mistake ends the turn with a text that names it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, TypeVar, cast

from perdure.agent.inputs import as_messages
from perdure.agent.turn_config import TurnConfig
from perdure.errors import BadRequest, ConfigurationError
from perdure.models.contract import ChatModel, HistoryMessage
from perdure.models.registry import resolve
from perdure.protocol import codec
from perdure.tools import ToolSet, merge

__all__ = [
    "call",
    "conditions",
    "given",
    "history",
    "metadata",
    "model",
    "names",
    "positive",
    "settings",
    "text",
    "tools",
]

T = TypeVar("T")


def given(value: Any, kind: type[T], who: str) -> T | None:
    """What a hook gave: a ``kind``, or nothing.

    Raises:
        ConfigurationError: something else, as for every function here.
    """
    if value is None or isinstance(value, kind):
        return value
    raise ConfigurationError(f"{who} gave {_a(value)}; it must give a {kind.__name__}, or nothing.")


def text(value: Any, who: str) -> str:
    """A text."""
    if isinstance(value, str):
        return value
    raise ConfigurationError(f"{who} is {_a(value)}; it must be text.")


def positive(value: Any, who: str) -> int:
    """A whole number that is at least 1."""
    if isinstance(value, int) and not isinstance(value, bool) and value >= 1:
        return value
    raise ConfigurationError(f"{who} is {value!r:.60}; it must be a whole number of at least 1.")


def model(value: Any, who: str) -> ChatModel:
    """Something that answers."""
    if value is None:
        raise ConfigurationError(f'{who} gave no model; it must give "provider:name", "demo" or a model object.')
    if isinstance(value, type):
        raise ConfigurationError(f"{who} gave the class {value.__name__}; it must give a model object or a name.")
    return resolve(value)


def tools(value: Any, who: str) -> ToolSet:
    """Tools in one of the forms in which they are given."""
    if isinstance(value, str) or not isinstance(value, (Mapping, Iterable)):
        raise ConfigurationError(
            f"{who} gave {_a(value)}; it must give a list of tools, or a dict whose keys are their names."
        )
    source: Any = cast("Any", value) if isinstance(value, Mapping) else list(cast("Iterable[Any]", value))
    return merge(source)


def names(value: Any, who: str) -> Sequence[str] | None:
    """Names of tools, or nothing."""
    if value is None:
        return None
    if not isinstance(value, str) and isinstance(value, Iterable):
        found = list(cast("Iterable[Any]", value))
        if all(isinstance(name, str) for name in found):
            return found
    raise ConfigurationError(f"{who} is {_a(value)}; it must be a list of names of tools.")


def history(value: Any, who: str) -> Sequence[HistoryMessage] | None:
    """A conversation for the model, or nothing."""
    if value is None:
        return None
    try:
        return [HistoryMessage.of(message) for message in as_messages(value, lambda: "shown")]
    except BadRequest as error:
        raise ConfigurationError(f"{who} cannot be used: {error}") from None


def metadata(value: Any, who: str) -> Mapping[str, Any] | None:
    """Metadata of a message, or nothing."""
    if value is None:
        return None
    if isinstance(value, Mapping):
        try:
            return codec.decode(codec.encode_text(value))
        except TypeError as error:
            raise ConfigurationError(f"{who} has no JSON form: {error}") from None
    raise ConfigurationError(f"{who} is {_a(value)}; it must be a dict.")


def call(value: Any, who: str) -> tuple[str, dict[str, Any]]:
    """The name of a tool and its arguments."""
    found = cast("Sequence[Any]", value) if isinstance(value, tuple | list) else ()
    if len(found) != 2 or not isinstance(found[0], str) or not isinstance(found[1], Mapping):
        raise ConfigurationError(f"{who} gave {_a(value)}; it must give a tool's name and its arguments, or nothing.")
    try:
        return found[0], codec.decode(codec.encode_text(found[1]))
    except TypeError as error:
        raise ConfigurationError(f"The arguments that {who} gave have no JSON form: {error}") from None


def conditions(value: Any, who: str) -> Sequence[Callable[..., Any]]:
    """Functions: one, or several."""
    found = [value] if callable(value) else value
    if isinstance(found, Sequence) and all(callable(condition) for condition in cast("Sequence[Any]", found)):
        return list(cast("Sequence[Any]", found))
    raise ConfigurationError(f"{who} is {_a(value)}; it must be a function of the steps so far, or a list of such.")


def settings(config: TurnConfig) -> dict[str, Any]:
    """The call settings."""
    try:
        return config.settings()
    except (TypeError, ValueError) as error:
        raise ConfigurationError(f"A call setting of before_turn() cannot be used: {error}") from None


def _a(value: Any) -> str:
    name = type(value).__name__
    return "nothing" if value is None else f"an {name}" if name[0] in "aeiouAEIOU" else f"a {name}"
