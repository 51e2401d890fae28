"""What the page last sent beside its messages: the tools that it offers, and fields of its own.

Turns that no page asks for (continuations, the server's own) run with it, after a restart too (reference: engine §2.2).
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from perdure.agent.values import NAMESPACE
from perdure.errors import BadRequest
from perdure.protocol import codec
from perdure.protocol.client_tools import ClientToolSpec
from perdure.storage.contract import DeleteValue, Operation, PutValue
from perdure.tools import ToolSet, page_tools

__all__ = ["PAGE", "Page"]

logger = logging.getLogger(__name__)

PAGE = "page"
"""Name of the stored value."""

_NOTHING = ToolSet({})


class _Stored(msgspec.Struct, omit_defaults=True):
    tools: list[ClientToolSpec] = []
    body: dict[str, Any] = {}


class Page:
    """The page's tools and fields. Gives operations; the caller writes them."""

    def __init__(self, stored: str | None = None) -> None:
        """What is stored; damaged text counts as nothing."""
        self._specs: Sequence[ClientToolSpec] = ()
        self.tools = _NOTHING
        """The tools that it offers."""
        self.body: Mapping[str, Any] = {}
        """Its fields."""
        self._text: str | None = None
        if stored is not None:
            self._restore(stored)

    def check(self, specs: Sequence[ClientToolSpec] | None) -> None:
        """Whether these tools can be used.

        Raises:
            BadRequest: a schema is none.
        """
        if specs and specs != self._specs:
            page_tools(specs)

    def asked(self, specs: Sequence[ClientToolSpec] | None, body: Mapping[str, Any]) -> list[Operation]:
        """It asks something. Its fields are these from now on; so are its tools, unless it says nothing of them."""
        self.body = body
        return self._changed(self._specs if specs is None else specs)

    def offers(self, specs: Sequence[ClientToolSpec] | None) -> list[Operation]:
        """It gave a result, and offers these tools with it. None say nothing.

        Raises:
            BadRequest: a schema is none.
        """
        return self._changed(specs) if specs else []

    def clear(self) -> list[Operation]:
        """The conversation was forgotten."""
        self.body = {}
        return self._changed(())

    def _changed(self, specs: Sequence[ClientToolSpec]) -> list[Operation]:
        if specs != self._specs:
            self.tools = page_tools(specs) if specs else _NOTHING
            self._specs = specs
        text = codec.encode_text(_Stored(list(specs), dict(self.body))) if specs or self.body else None
        if text == self._text:
            return []
        self._text = text
        return [DeleteValue(NAMESPACE, PAGE) if text is None else PutValue(NAMESPACE, PAGE, text)]

    def _restore(self, text: str) -> None:
        try:
            stored = codec.decode_as(_Stored, text)
            self.tools = page_tools(stored.tools)
        except (codec.DecodeError, BadRequest) as error:
            logger.error("What the page sent last is damaged and left aside: %s", error)
            return
        self._specs, self.body, self._text = stored.tools, stored.body, text
