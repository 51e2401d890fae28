"""The HTTP routes: the history of a conversation, health, what the page asks for, and the page itself."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from starlette.exceptions import HTTPException
from starlette.responses import JSONResponse, PlainTextResponse, Response
from starlette.staticfiles import StaticFiles
from starlette.types import Receive, Scope, Send

from perdure._version import __version__
from perdure.agent.base import Agent
from perdure.agent.think import Think
from perdure.errors import BadRequest, PerdureError
from perdure.host.bus import Bus
from perdure.protocol.names import parse_path
from perdure.server.requests import connection_request, raw_path

__all__ = ["Routes"]

STATIC = Path(__file__).parent / "static"

NO_PAGE = """perdure is running. The page is not built yet.

In a checkout, scripts/serve builds it; the agents are reached at /agents/<class>/<name> either way.
"""


class Routes:
    """Answers HTTP requests."""

    def __init__(self, agents: Mapping[str, type[Agent]], bus: Bus, kinds: Mapping[str, type[Agent]]) -> None:
        self._agents = agents
        self._kinds = kinds
        self._bus = bus
        self._page = StaticFiles(directory=STATIC, html=True) if (STATIC / "index.html").is_file() else None

    async def serve(self, scope: Scope, receive: Receive, send: Send, refusal: str | None) -> None:
        """Answer one request; ``refusal`` says why it is not let in."""
        path = raw_path(scope)
        if refusal is not None:
            response: Response = PlainTextResponse(refusal, 403)
        elif path == "/health":
            response = JSONResponse({"status": "ok", "version": __version__})
        elif path == "/playground.json":
            response = self._playground()
        elif path == "/agents" or path.startswith("/agents/"):
            response = await self._agent(scope, path)
        elif self._page is not None:
            response = await self._file(scope)
        else:
            response = PlainTextResponse(NO_PAGE if path == "/" else "Not Found", 200 if path == "/" else 404)
        await response(scope, receive, send)

    async def _file(self, scope: Scope) -> Response:
        assert self._page is not None
        try:
            return await self._page.get_response(self._page.get_path(scope), scope)
        except HTTPException as error:
            return PlainTextResponse(error.detail, error.status_code)

    def _playground(self) -> Response:
        agents = [{"class": kind.__name__, "path": path} for path, kind in self._agents.items()]
        return JSONResponse({"agents": agents, "version": __version__})

    async def _agent(self, scope: Scope, path: str) -> Response:
        try:
            route = parse_path(path, kinds=self._kinds)
            if route is None:
                return PlainTextResponse("Not Found", 404)
            if route.address.root.kind not in self._agents:
                return PlainTextResponse("Invalid request", 400)
            if route.address.parent is not None:
                refusal = await self._bus.admit(route.address, connection_request(scope))
                if refusal is not None:
                    return PlainTextResponse(refusal.reason, refusal.status)
            chats = issubclass(self._kinds[route.address.kind], Think)
            if route.tail and route.tail[-1] == "get-messages" and chats:
                messages = await self._bus.call(route.address, "get-messages")
                return Response(messages, media_type="application/json", headers={"cache-control": "no-store"})
        except BadRequest as error:
            return PlainTextResponse(str(error), 400)
        except PerdureError as error:
            return PlainTextResponse(str(error), 503)
        return PlainTextResponse("Not implemented", 404)
