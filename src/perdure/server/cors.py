"""The CORS headers of agents' HTTP answers (reference: protocol §1.8). WebSockets have none."""

from __future__ import annotations

from collections.abc import Mapping

from starlette.datastructures import MutableHeaders
from starlette.types import Message, Send

__all__ = ["Cors"]

_EVERYBODY = {
    "Access-Control-Allow-Origin": "*",
    "Access-Control-Allow-Methods": "GET, POST, HEAD, OPTIONS",
    "Access-Control-Allow-Headers": "*",
    "Access-Control-Max-Age": "86400",
}


class Cors:
    """Which headers every answer gets."""

    def __init__(self, option: bool | Mapping[str, str]) -> None:
        """``False`` for none, ``True`` for those that let pages from everywhere in, or exactly these headers."""
        self.headers = dict(option) if isinstance(option, Mapping) else dict(_EVERYBODY) if option else {}

    def __bool__(self) -> bool:
        """Whether there are any."""
        return bool(self.headers)

    @property
    def origins(self) -> list[str]:
        """Origins of the pages that may read the answers: they need not be allowed elsewhere for HTTP requests."""
        return [value for name, value in self.headers.items() if name.lower() == "access-control-allow-origin"]

    def wrap(self, send: Send) -> Send:
        """``send`` that adds the headers to a response."""
        if not self.headers:
            return send

        async def sending(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                headers.update(self.headers)
            await send(message)

        return sending
