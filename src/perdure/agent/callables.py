"""``@callable``: the methods of an agent that clients may call, and their names on the wire.

Imports ``errors`` only.
"""

from __future__ import annotations

import builtins
from collections.abc import Callable, Mapping
from typing import Any, TypeVar, overload

from perdure.errors import ConfigurationError

__all__ = ["callable", "callables_of", "camel_case"]

F = TypeVar("F", bound=Callable[..., Any])

_MARK = "_perdure_callable"


@overload
def callable(method: F, /) -> F: ...
@overload
def callable() -> Callable[[F], F]: ...
def callable(method: Any = None, /) -> Any:
    """Marks a method that clients may call: ``agent.call("rename", ["title"])`` or ``agent.stub.rename("title")``.

    It answers to its own name and to its camelCase form. Arguments and result are JSON; ``None`` is null, but for a
    method that is annotated ``-> None``, which gives no value. What it raises is the client's error, text and all.

    A method that is a generator, ``async`` or not, streams: each value that it yields goes to the client at once, and
    when the client is gone it is closed. One whose first parameter is annotated :class:`~perdure.ReplyStream` streams
    through that, and can end with a last value.

    A subclass that overrides a marked method need not mark it again. ``@tool`` methods can be marked as well.
    """

    def mark(method: F) -> F:
        setattr(method, _MARK, True)
        return method

    return mark if method is None else mark(method)


def callables_of(kind: type[Any]) -> Mapping[str, str]:
    """The wire names of a class's callable methods, each with the method's own name.

    Raises:
        ConfigurationError: two methods have one wire name.
    """
    found: dict[str, str] = {}
    for name in dir(kind):
        if not _is_marked(kind, name):
            continue
        for wire_name in {name, camel_case(name)}:
            if found.setdefault(wire_name, name) != name:
                raise ConfigurationError(
                    f"{kind.__name__}.{found[wire_name]} and {kind.__name__}.{name} are both called {wire_name!r} by "
                    "clients. Rename one of them."
                )
    return found


def _is_marked(kind: type[Any], name: str) -> bool:
    marked = any(getattr(base.__dict__.get(name), _MARK, False) for base in kind.__mro__)
    return marked and builtins.callable(getattr(kind, name, None))


def camel_case(name: str) -> str:
    """``count_to`` → ``countTo``. Leading underscores stay."""
    stem = name.lstrip("_")
    first, *rest = stem.split("_")
    return name[: len(name) - len(stem)] + first + "".join(part[:1].upper() + part[1:] for part in rest)
