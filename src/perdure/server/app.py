"""The ASGI application: puts store, host and the two sides of the edge together, and nothing else."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
from collections.abc import AsyncGenerator, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from starlette.responses import JSONResponse
from starlette.types import Receive, Scope, Send

from perdure.agent.base import Agent
from perdure.agent.class_checks import check_class
from perdure.errors import ConfigurationError, PerdureError
from perdure.host.bus import Bus
from perdure.host.engine import Engine
from perdure.host.host import Host
from perdure.host.tasks import Tasks
from perdure.models.registry import close_models
from perdure.observability import Events, Subscriber
from perdure.protocol.names import SUB, kebab
from perdure.server.admission import Hook
from perdure.server.connection import refuse
from perdure.server.cors import Cors
from perdure.server.http import Pages, Routes
from perdure.server.limits import Limits
from perdure.server.origin import Gate
from perdure.server.router import Route, Router, clean_prefix
from perdure.server.sockets import Sockets
from perdure.server.warmup import warm_up

__all__ = ["App"]

logger = logging.getLogger(__name__)


class _Edge(NamedTuple):
    """What answers while the app runs."""

    routes: Routes
    sockets: Sockets


class App:
    """An ASGI app that serves agents: run it with ``perdure serve``, or any ASGI server; or mount it in another app."""

    def __init__(
        self,
        *agents: type[Agent],
        sub_agents: Sequence[type[Agent]] = (),
        data: str | Path | None = None,
        prefix: str = "agents",
        route: Route | None = None,
        cors: bool | Mapping[str, str] = False,
        on_before_connect: Hook | None = None,
        on_before_request: Hook | None = None,
        on_event: Subscriber | None = None,
        allowed_hosts: Sequence[str] = (),
        allowed_origins: Sequence[str] = (),
        limits: Limits | None = None,
        idle_seconds: float | None = 60.0,
        engine: Engine | None = None,
    ) -> None:
        """An app with these agent classes.

        Args:
            agents: The classes; each is reached at ``/agents/<class-in-kebab-case>/<name>``.
            sub_agents: Classes that are only reached below another agent. Those in ``agents`` can be sub-agents too.
            data: Folder in which everything is kept. Default: ``$PERDURE_DATA``, else ``.perdure``.
            prefix: What stands for ``agents`` in these paths: one segment or several, like ``"api/v1"``.
            route: ``route(request)`` says which agent, as ``(Class, name)``, answers a request to any other path;
                ``None`` for none. May be ``async``. For clients with ``basePath``.
            cors: Headers of agents' HTTP answers. ``True`` lets pages from everywhere read them, a mapping gives
                exactly these headers. The origin that they name need not be in ``allowed_origins`` for HTTP requests;
                WebSockets have no CORS.
            on_before_connect: Asked before a WebSocket connects to an agent. ``None`` lets it in; else a
                :class:`~perdure.Refuse`, a Starlette response, or the request with other headers. May be ``async``.
            on_before_request: The same for other requests to agents.
            on_event: Called with every :class:`~perdure.Event`, in the event loop: it must be quick.
            allowed_hosts: Host names by which the server is reached, beside this machine's own; ``"*"`` for any.
            allowed_origins: Origins of pages from elsewhere that may connect; ``"*"`` for any.
            limits: Bounds on what clients may take. Default: ``Limits()``.
            idle_seconds: After how many seconds without work an agent leaves memory (up to a half later). Its
                connections stay open, and the next thing that happens to it brings it back. ``None``: never.
            engine: Internal, for tests: what to run on.

        Raises:
            ConfigurationError: no classes, two that have the same name in URLs, one that is called ``Sub`` or says
                something unusable, an unusable ``prefix``, or ``idle_seconds`` is not positive.
        """
        self.agents = _by_path(agents)
        self.kinds = _by_path(dict.fromkeys((*agents, *sub_agents)))
        for kind in self.kinds.values():
            check_class(kind)
        self.data = Path(data if data is not None else os.environ.get("PERDURE_DATA", ".perdure"))
        self.limits = limits or Limits()
        self.allowed_hosts = list(allowed_hosts)
        self.allowed_origins = list(allowed_origins)
        if idle_seconds is not None and not idle_seconds > 0:
            raise ConfigurationError(f"App(idle_seconds={idle_seconds!r}): it must be more than 0, or None for never.")
        self._idle_seconds = idle_seconds
        self._engine = engine or Engine()
        self.events = Events() if on_event is None else Events(on_event)
        self._router = Router(self.agents, self.kinds, clean_prefix(prefix), route)
        self._cors = Cors(cors)
        self._hooks = on_before_connect, on_before_request
        self._starting = asyncio.Lock()
        self._running: contextlib.AsyncExitStack | None = None
        self._edge: _Edge | None = None
        self._stopped = False

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self._lifespan(receive, send)
            return
        edge = self._edge or await self._start_late()
        if edge is None:
            await _unavailable(scope, receive, send)
            return
        if scope["type"] == "websocket":
            await edge.sockets.serve(scope, receive, send)
        else:
            await edge.routes.serve(scope, receive, send)

    async def start(self) -> None:
        """Open the store. Happens by itself with the server's start, or with the first request.

        Raises:
            StorageError: the data folder cannot be used.
        """
        self._stopped = False
        await self._started()

    async def stop(self) -> None:
        """Tell clients to come back later, and close the store. Running turns stay open in it. Requests are refused
        until :meth:`start`."""
        self._stopped = True
        async with self._starting:
            if self._running is not None:
                self._edge = None
                running, self._running = self._running, None
                await running.aclose()

    @contextlib.asynccontextmanager
    async def lifespan(self, _: Any = None) -> AsyncGenerator[None]:
        """The app runs in here. For whoever mounts it, as servers do not tell mounted apps when they stop:
        ``Starlette(lifespan=agents.lifespan, …)``, or within a lifespan of one's own.

        Raises:
            StorageError: the data folder cannot be used.
        """
        await self.start()
        try:
            yield
        finally:
            await self.stop()

    async def _start_late(self) -> _Edge | None:
        """Start for the first request, where no server said so before; ``None`` when that cannot be."""
        if self._stopped:
            return None
        try:
            return await self._started()
        except PerdureError as error:
            logger.error("The app cannot start: %s", error)
            return None

    async def _started(self) -> _Edge:
        async with self._starting:
            if self._edge is None:
                stack = contextlib.AsyncExitStack()
                self._edge = await stack.enter_async_context(self._run())
                self._running = stack
            return self._edge

    @contextlib.asynccontextmanager
    async def _run(self) -> AsyncGenerator[_Edge]:
        engine, tasks = self._engine, Tasks()
        store, bus = await engine.open_store(self.data), engine.make_bus()
        host = Host(
            self.kinds,
            store,
            bus,
            engine.placement(store),
            events=self.events,
            window=self.limits.window,
            upload=self.limits.upload,
            clock=engine.clock,
            idle_seconds=self._idle_seconds,
        )
        host.start()
        tasks.spawn(warm_up(self.kinds.values()), "warm up")
        edge = self._make_edge(bus, host, tasks)
        try:
            yield edge
        finally:
            await edge.sockets.close()
            await host.close()
            await tasks.close()
            await close_models()
            await store.close()

    def _make_edge(self, bus: Bus, host: Host, tasks: Tasks) -> _Edge:
        connecting, requesting = self._hooks
        gate = Gate(self.allowed_hosts, self.allowed_origins)
        readable = Gate(self.allowed_hosts, [*self.allowed_origins, *self._cors.origins])
        pages = Pages(self.agents, self._router.prefix, host)
        return _Edge(
            Routes(self._router, bus, readable, self._cors, self.limits.body, requesting, pages),
            Sockets(self._router, bus, gate, self.limits, tasks, connecting),
        )

    async def _lifespan(self, receive: Receive, send: Send) -> None:
        await receive()
        try:
            await self.start()
        except Exception as error:
            await send({"type": "lifespan.startup.failed", "message": str(error)})
            raise
        await send({"type": "lifespan.startup.complete"})
        await receive()
        await self.stop()
        await send({"type": "lifespan.shutdown.complete"})


async def _unavailable(scope: Scope, receive: Receive, send: Send) -> None:
    if scope["type"] == "websocket":
        await refuse(receive, send, 1013, "The server cannot be used at the moment.")
    else:
        await JSONResponse({"status": "unavailable"}, 503)(scope, receive, send)


def _by_path(agents: Iterable[type[Agent]]) -> dict[str, type[Agent]]:
    found: dict[str, type[Agent]] = {}
    for agent in agents:
        path = kebab(agent.__name__)
        if path == SUB:
            raise ConfigurationError(f"{agent.__name__} cannot be told from the /{SUB}/ of sub-agents: rename it.")
        if path in found:
            raise ConfigurationError(
                f"{agent.__name__} and {found[path].__name__} are both reached at /agents/{path}/…: rename one of them."
            )
        found[path] = agent
    if not found:
        raise ConfigurationError("App() needs at least one agent class: App(Assistant).")
    return found
