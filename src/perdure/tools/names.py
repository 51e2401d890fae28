"""The names by which a model knows the tools: providers refuse names that are fine elsewhere.

Imports the model contract and ``protocol`` only.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from perdure.models.contract import HistoryMessage, ToolSpec
from perdure.protocol.messages import Part, UIMessage, is_tool_part, tool_name

__all__ = ["ToolNames"]

MAX_CHARS = 64

_SAFE = re.compile(r"[A-Za-z_][A-Za-z0-9_-]{0,63}")
_ODD = re.compile(r"[^A-Za-z0-9_-]+")


class ToolNames:
    """Names for the model and back, in one turn. A name that every provider takes is its own.

    Others are cleaned, and numbered where that gives the name of another tool. What a model is shown of earlier calls
    is renamed the same way, also calls of tools that are no longer there.
    """

    def __init__(self, tools: Iterable[str]) -> None:
        """The names for a turn that has these tools."""
        names = list(tools)
        self._taken = {name for name in names if _SAFE.fullmatch(name)}
        self._shown: dict[str, str] = {}
        self._real: dict[str, str] = {}
        for name in names:
            self.shown(name)

    def shown(self, name: str) -> str:
        """The name that the model is told."""
        if _SAFE.fullmatch(name):
            return name
        if name not in self._shown:
            made = self._shown[name] = self._made(name)
            self._taken.add(made)
            self._real[made] = name
        return self._shown[name]

    def real(self, name: str) -> str:
        """The tool that the model means."""
        return self._real.get(name, name)

    def specs(self, specs: Sequence[ToolSpec]) -> Sequence[ToolSpec]:
        """Tools as the model is told about them."""
        if not self._shown:
            return specs
        return [ToolSpec(self.shown(spec.name), spec.description, spec.parameters) for spec in specs]

    def history(self, history: Sequence[HistoryMessage]) -> Sequence[HistoryMessage]:
        """A conversation as the model is shown it. Messages without odd names are the same objects."""
        odd = [number for number, item in enumerate(history) if any(self.shown(n) != n for n in item.calls.values())]
        if not odd:
            return history
        renamed = list(history)
        for number in odd:
            renamed[number] = self._renamed(history[number])
        return renamed

    def _renamed(self, item: HistoryMessage) -> HistoryMessage:
        pairs = frozenset((name, self.shown(name)) for name in item.calls.values())
        # Kept with the message, so that what a model derives from it is derived once as well.
        return item.derive(("names", pairs), lambda message: HistoryMessage.of(_with_names(message, dict(pairs))))

    def _made(self, name: str) -> str:
        clean = _ODD.sub("_", name).strip("_")[:MAX_CHARS] or "tool"
        if not _SAFE.fullmatch(clean):
            clean = f"_{clean}"[:MAX_CHARS]
        made, number = clean, 1
        while made in self._taken:
            number += 1
            end = f"_{number}"
            made = clean[: MAX_CHARS - len(end)] + end
        return made


def _with_names(message: UIMessage, names: dict[str, str]) -> UIMessage:
    return {**message, "parts": [_with_name(part, names) if is_tool_part(part) else part for part in message["parts"]]}


def _with_name(part: Part, names: dict[str, str]) -> Part:
    name = names[tool_name(part)]
    if part["type"] == "dynamic-tool":
        return {**part, "toolName": name}
    return {**part, "type": f"tool-{name}"}
