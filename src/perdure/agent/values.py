"""The named JSON values of an agent: its state, its configuration.

Held as the text they travel and are stored as. Who is told of a change, and who may make one, is the caller's business.
"""

from __future__ import annotations

import logging
from typing import Any

from perdure.agent.services import Services
from perdure.protocol import codec
from perdure.storage.contract import PutValue

__all__ = ["NAMESPACE", "Values"]

NAMESPACE = "agent"

logger = logging.getLogger(__name__)


class Values:
    """Values by name, in memory and in the store."""

    def __init__(self, services: Services, stored: dict[str, str]) -> None:
        """Take over what is stored: JSON texts by name. One that cannot be read counts as none."""
        self._services = services
        self._texts = {name: text for name, text in stored.items() if _is_readable(name, text)}

    def text(self, name: str) -> str | None:
        """A value as JSON text; ``None`` when there is none."""
        return self._texts.get(name)

    def get(self, name: str) -> Any:
        """A value; ``None`` when there is none. A copy: the caller may change it."""
        text = self._texts.get(name)
        return None if text is None else codec.decode(text)

    def put(self, name: str, value: Any) -> str:
        """Store a value. Gives its JSON text.

        Raises:
            TypeError: it has no JSON form; nothing changed.
        """
        text = self._texts[name] = codec.encode_text(value)
        self._services.write([PutValue(NAMESPACE, name, text)])
        return text

    def default(self, name: str, value: Any) -> str:
        """A value as JSON text, which is ``value`` from now on when there was none. Nothing waits for its storing."""
        if name not in self._texts:
            self._texts[name] = codec.encode_text(value)
            self._services.checkpoint([PutValue(NAMESPACE, name, self._texts[name])])
        return self._texts[name]


def _is_readable(name: str, text: str) -> bool:
    try:
        codec.decode(text)
    except codec.DecodeError as error:
        logger.error("The stored value %r is damaged and left aside: %s", name, error)
        return False
    return True
