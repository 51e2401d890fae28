"""The HTTP side of the edge: agents' own answers and their history, health, what the page asks for, and the page."""

from __future__ import annotations

import logging
import time
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
from perdure.host.host import Host
from perdure.server.admission import Hook, ask, response
from perdure.server.cors import Cors
from perdure.server.forwarding import bounded, forwarded
from perdure.server.origin import Gate
from perdure.server.requests import IncomingRequest, incoming_request
from perdure.server.router import Destination, Router

__all__ = ["Pages", "Routes"]

logger = logging.getLogger(__name__)

STATIC = Path(__file__).parent / "static"

PAGE_POLICY = "default-src 'self'; img-src * data: blob:; connect-src 'self' ws: wss:; frame-ancestors 'self'"
"""What the page may load: itself, images that a conversation shows, and its agents."""

NO_PAGE = """perdure is running. The page is not built yet.

In a checkout, scripts/serve builds it; the agents are reached at /agents/<class>/<name> either way.
"""


class Routes:
    """Answers HTTP requests."""

    def __init__(
        self, router: Router, bus: Bus, gate: Gate, cors: Cors, body: int, hook: Hook | None, pages: Pages
    ) -> None:
        """Routes to agents, and to pages for everything else.

        Args:
            router: Says which agent a URL names.
            bus: The way to the agents.
            gate: Checks hosts and origins.
            cors: Headers of the agents' answers.
            body: Largest body of a request, in bytes.
            hook: The application's ``on_before_request``.
            pages: What is not an agent's.
        """
        self._router = router
        self._bus = bus
        self._gate = gate
        self._cors = cors
        self._body = body
        self._hook = hook
        self._pages = pages

    async def serve(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        request = incoming_request(scope)
        if request.path == "/health":
            answer: Response | None = self._pages.health()
        elif (reason := self._gate.refusal(scope["headers"])) is not None:
            answer = PlainTextResponse(reason, 403)
        else:
            answer = await self._serve(request, scope, receive, send)
        if answer is not None:
            await answer(scope, receive, send)

    async def _serve(self, request: IncomingRequest, scope: Scope, receive: Receive, send: Send) -> Response | None:
        """Answer, or give the answer."""
        try:
            destination = await self._router.find(request)
        except BadRequest as error:
            return PlainTextResponse(str(error), 400)
        except Exception:
            # The application's route() failed: the log says how.
            logger.exception("No agent could be found for %s", request.path)
            return PlainTextResponse("Internal Server Error", 500)
        if destination is None:
            if self._router.owns(request.path):
                return PlainTextResponse("Not Found", 404)
            return await self._pages.serve(request.path, scope, receive, send)
        if destination.kind is None:
            return PlainTextResponse("Invalid request", 400)
        sending = self._cors.wrap(send)
        answer = await self._agent(self._router.asked_about(request, destination.address), destination)
        if isinstance(answer, IncomingRequest):
            answer = await self._forward(answer, destination, scope, receive, sending)
        if answer is not None:
            await answer(scope, receive, sending)
        return None

    async def _agent(self, request: IncomingRequest, destination: Destination) -> Response | IncomingRequest:
        """The answer to a request to an agent; the request itself when the agent is to answer."""
        if request.method == "OPTIONS" and self._cors:
            return Response()
        verdict = await ask(self._hook, request)
        if not isinstance(verdict, IncomingRequest):
            return response(verdict)
        if destination.address.parent is not None:
            refusal = await self._bus.admit(destination.address, verdict)
            if refusal is not None:
                return response(refusal)
        kind = destination.kind
        if destination.tail.rpartition("/")[2] == "get-messages" and kind is not None and issubclass(kind, Think):
            return await self._messages(destination)
        return verdict

    async def _messages(self, destination: Destination) -> Response:
        try:
            messages = await self._bus.call(destination.address, "get-messages")
        except PerdureError as error:
            return _unavailable(error)
        return Response(messages, media_type="application/json", headers={"cache-control": "no-store"})

    async def _forward(
        self, request: IncomingRequest, destination: Destination, scope: Scope, receive: Receive, send: Send
    ) -> Response | None:
        try:
            receive = bounded(scope, receive, self._body)
            await self._bus.answer(destination.address, forwarded(scope, request, destination), receive, send)
        except HTTPException as error:
            return PlainTextResponse(error.detail, error.status_code)
        except PerdureError as error:
            return _unavailable(error)
        return None


class Pages:
    """What the server answers beside its agents."""

    def __init__(self, agents: Mapping[str, type[Agent]], prefix: str, host: Host) -> None:
        self._agents = agents
        self._prefix = prefix
        self._host = host
        self._since = time.monotonic()
        self._page = StaticFiles(directory=STATIC, html=True) if (STATIC / "index.html").is_file() else None

    def health(self) -> Response:
        """That the server lives, without a name of anything in it."""
        return JSONResponse(
            {
                "status": "ok",
                "version": __version__,
                "agents": self._host.in_memory,
                "uptime": round(time.monotonic() - self._since, 3),
            },
            headers={"cache-control": "no-store"},
        )

    async def serve(self, path: str, scope: Scope, receive: Receive, send: Send) -> Response | None:
        """Answer, or give the answer."""
        if path == "/playground.json":
            return self._playground()
        if self._page is not None:
            return await self._file(self._page, scope)
        return PlainTextResponse(NO_PAGE if path == "/" else "Not Found", 200 if path == "/" else 404)

    async def _file(self, page: StaticFiles, scope: Scope) -> Response:
        path = page.get_path(scope)
        try:
            response = await page.get_response(path, scope)
        except HTTPException as error:
            return PlainTextResponse(error.detail, error.status_code)
        # Names of assets change with their content; the page that names them must be asked for anew.
        forever = path.startswith("assets/")
        response.headers["cache-control"] = "public, max-age=31536000, immutable" if forever else "no-cache"
        response.headers["content-security-policy"] = PAGE_POLICY
        return response

    def _playground(self) -> Response:
        agents = [{"class": kind.__name__, "path": path} for path, kind in self._agents.items()]
        return JSONResponse({"agents": agents, "prefix": self._prefix, "version": __version__})


def _unavailable(error: PerdureError) -> Response:
    logger.warning("A request could not be answered: %s", error)
    return PlainTextResponse("The agent cannot be reached at the moment.", 503)
