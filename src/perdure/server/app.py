"""The ASGI application: puts store, host and routes together, and nothing else."""

from __future__ import annotations

import asyncio
import contextlib
import os
from collections.abc import AsyncGenerator, Iterable, Sequence
from pathlib import Path

from starlette.types import Receive, Scope, Send

from perdure.agent.base import Agent
from perdure.errors import BadRequest, ConfigurationError
from perdure.host.bus import LocalBus
from perdure.host.host import Host
from perdure.host.placement import AlwaysMine
from perdure.host.tasks import Tasks
from perdure.models.registry import close_models
from perdure.protocol.names import SUB, kebab, parse_path
from perdure.server.connection import Connection, refuse
from perdure.server.http import Routes
from perdure.server.limits import Limits
from perdure.server.origin import Gate
from perdure.server.requests import connection_request, raw_path
from perdure.server.warmup import warm_up
from perdure.storage.sqlite import SqliteStore

__all__ = ["App"]


class App:
    """An ASGI app that serves agents: run it with ``perdure serve``, or any ASGI server."""

    def __init__(
        self,
        *agents: type[Agent],
        sub_agents: Sequence[type[Agent]] = (),
        data: str | Path | None = None,
        allowed_hosts: Sequence[str] = (),
        allowed_origins: Sequence[str] = (),
        limits: Limits | None = None,
    ) -> None:
        """An app with these agent classes.

        Args:
            agents: The classes; each is reached at ``/agents/<class-in-kebab-case>/<name>``.
            sub_agents: Classes that are only reached below another agent. Those in ``agents`` can be sub-agents too.
            data: Folder in which everything is kept. Default: ``$PERDURE_DATA``, else ``.perdure``.
            allowed_hosts: Host names by which the server is reached, beside this machine's own; ``"*"`` for any.
            allowed_origins: Origins of pages from elsewhere that may connect; ``"*"`` for any.
            limits: Sizes. Default: ``Limits()``.

        Raises:
            ConfigurationError: no classes, two that have the same name in URLs, or one that is called ``Sub``.
        """
        self.agents = _by_path(agents)
        self.kinds = _by_path(dict.fromkeys((*agents, *sub_agents)))
        self.data = Path(data if data is not None else os.environ.get("PERDURE_DATA", ".perdure"))
        self.limits = limits or Limits()
        self.allowed_hosts = list(allowed_hosts)
        self.allowed_origins = list(allowed_origins)
        self._bus = LocalBus()
        self._tasks = Tasks()
        self._starting = asyncio.Lock()
        self._running: contextlib.AsyncExitStack | None = None
        self._routes = Routes(self.agents, self._bus, self.kinds)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self._lifespan(receive, send)
            return
        refusal = Gate(self.allowed_hosts, self.allowed_origins).refusal(scope["headers"])
        await self.start()
        if scope["type"] == "websocket":
            await self._websocket(scope, receive, send, refusal)
        else:
            await self._routes.serve(scope, receive, send, refusal)

    async def start(self) -> None:
        """Open the store. Happens by itself with the server's start, or with the first request.

        Raises:
            StorageError: the data folder cannot be used.
        """
        async with self._starting:
            if self._running is None:
                stack = contextlib.AsyncExitStack()
                await stack.enter_async_context(self._run())
                self._running = stack

    async def stop(self) -> None:
        """End all connections and close the store. Running turns stay open in it."""
        async with self._starting:
            if self._running is not None:
                await self._running.aclose()
                self._running = None

    @contextlib.asynccontextmanager
    async def _run(self) -> AsyncGenerator[None]:
        store = await SqliteStore.open(self.data)
        host = Host(self.kinds, store, self._bus, AlwaysMine(store.epoch))
        self._tasks.spawn(warm_up(self.kinds.values()), "warm up")
        try:
            yield
        finally:
            await host.close()
            await self._tasks.close()
            await close_models()
            await store.close()

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

    async def _websocket(self, scope: Scope, receive: Receive, send: Send, refusal: str | None) -> None:
        if refusal is not None:
            await refuse(receive, send, 4403, refusal)
            return
        try:
            route = parse_path(raw_path(scope), kinds=self.kinds)
        except BadRequest as error:
            await refuse(receive, send, 4400, str(error))
            return
        if route is None or route.address.root.kind not in self.agents:
            await refuse(receive, send, 4404, "There is no such agent.")
            return
        if route.address.parent is not None:
            answer = await self._bus.admit(route.address, connection_request(scope))
            if answer is not None:
                code = 4000 + answer.status if answer.status < 500 else 1011
                await refuse(receive, send, code, f"Sub-agent connection rejected ({answer.status})")
                return
        connection = Connection(receive, send, self._tasks, self.limits)
        await connection.run(self._bus, route.address, connection_request(scope))


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
