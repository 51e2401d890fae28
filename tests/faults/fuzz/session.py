"""A server under attack: plays plans against it, and looks whether all is well afterwards."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import itertools
import json
import logging
import re
import sys
import time
from collections.abc import AsyncGenerator, Generator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from perdure import Limits
from perdure.host.engine import Engine
from perdure.testing import strict_provider_errors
from tests.faults.fuzz.checks import check_bodies, check_client, check_messages
from tests.faults.fuzz.plans import Plan
from tests.faults.fuzz.player import Client, Player
from tests.faults.fuzz.world import KINDS, Child, MadeUp, Mischief, World, worlds
from tests.support import Serving, serving
from tests.support.tabs import PATIENCE

__all__ = ["Session"]

KIB = 1024
LIMITS = Limits(window=64 * KIB, upload=128 * KIB, frame=512 * KIB)
IDLE = 60.0


class Clock:
    """The machine's clock, which can be put forward."""

    def __init__(self) -> None:
        self._ahead = 0.0
        self._moved = asyncio.Event()

    def now_ms(self) -> int:
        return time.time_ns() // 1_000_000 + round(self._ahead * 1000)

    def monotonic(self) -> float:
        return time.monotonic() + self._ahead

    async def sleep(self, seconds: float) -> None:
        due = self.monotonic() + seconds
        while (left := due - self.monotonic()) > 0:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(left):
                    await self._moved.wait()

    def advance(self, seconds: float) -> None:
        """Put it forward."""
        self._ahead += seconds
        self._moved.set()
        self._moved = asyncio.Event()


class Complaints(logging.Handler):
    """Collects errors and tracebacks, but for those that the application has made on purpose."""

    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self.found: list[str] = []
        self.setFormatter(logging.Formatter("%(levelname)s %(name)s: %(message)s"))

    def emit(self, record: logging.LogRecord) -> None:
        error = record.exc_info[1] if record.exc_info else None
        if (record.levelno >= logging.ERROR or error is not None) and not _is_on_purpose(error):
            self.found.append(self.format(record))

    def unraisable(self, given: Any) -> None:
        """An exception that nobody could be told of."""
        self.found.append(f"unraisable: {given.err_msg} {given.object!r} {given.exc_value!r}")


def _is_on_purpose(error: BaseException | None) -> bool:
    return isinstance(error, Mischief | MadeUp)


class Session:
    """A server, for one plan after the other; each has agents of its own."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._clock = Clock()
        self._numbers = itertools.count()
        self._stack = contextlib.AsyncExitStack()
        self._server: Serving | None = None
        self._own: set[asyncio.Task[Any]] = set()
        """Tasks of the server itself."""
        self.complaints = Complaints()

    @classmethod
    @contextlib.contextmanager
    def runner(cls) -> Generator[tuple[asyncio.Runner, Session]]:
        """A session, and what runs it."""
        with TemporaryDirectory(prefix="fuzz-") as folder, asyncio.Runner() as runner:
            session = cls(Path(folder))
            logging.getLogger().addHandler(session.complaints)
            hook, sys.unraisablehook = sys.unraisablehook, session.complaints.unraisable
            try:
                runner.run(session.start())
                try:
                    yield runner, session
                finally:
                    runner.run(session.stop())
            finally:
                sys.unraisablehook = hook
                logging.getLogger().removeHandler(session.complaints)

    async def start(self) -> None:
        """Start the server."""
        before = asyncio.all_tasks()
        engine = Engine(clock=self._clock)
        self._server = await self._stack.enter_async_context(
            serving(
                *KINDS,
                sub_agents=[Child],
                data=self._folder,
                limits=LIMITS,
                idle_seconds=IDLE,
                engine=engine,
            )
        )
        self._own = asyncio.all_tasks() - before

    async def stop(self) -> None:
        """End it."""
        await self._stack.aclose()

    async def play(self, plan: Plan) -> None:
        """Play a plan. Raises AssertionError when something is wrong afterwards."""
        name = f"room-{next(self._numbers)}"
        world = worlds[name] = World(list(plan.moods))
        player = Player(f"/agents/{plan.kind}/{name}", world, lambda: self._running, self._rest, self._restart)
        async with self._watched():
            try:
                await player.play(plan)
                await self._finish(player, world)
            finally:
                world.calm_down()
                await player.leave()
        del worlds[name]

    @property
    def _running(self) -> Serving:
        assert self._server is not None
        return self._server

    async def _finish(self, player: Player, world: World) -> None:
        """Let everything come to an end; then every agent answers, and what it shows is what it stores."""
        world.calm_down()
        for client in player.open_clients:
            await client.settle()
        places = dict.fromkeys(["", *(client.place for client in player.open_clients)])
        for place in places:
            await self._still_works(player, place)
        await self._rest()
        for client in player.clients:
            check_client(client, player)
        check_bodies(player.clients, player)
        for request in world.requests:
            # A continuation may end in the assistant's words: that is what it goes on with.
            errors = [error for error in strict_provider_errors(request) if "ends in an assistant" not in error]
            assert not errors, (errors, request.messages)

    async def _still_works(self, player: Player, place: str) -> None:
        client = await player.open(place)
        if client is None or not await client.opened():
            assert place, "the agent cannot be reached"
            return
        tab = client.tab
        for number in range(PATIENCE):
            # Whatever came before may still be on its way, and overtake it.
            await tab.ask(f"last{number}{place}", f"The last one at {place or 'the root'}")
            if (end := await tab.done(f"last{number}{place}"))["outcome"] == "completed":
                break
            self._clock.advance(1)  # a continuation waits for others to come along
        assert end["outcome"] == "completed", end
        for patience in reversed(range(PATIENCE)):
            # What was sent by tabs that have been cut off may still be on its way.
            if await self._agree(player, client):
                break
            assert patience, f"{place or 'the root'} is not shown as it is stored"
        idle = await tab.probe("the end")
        assert idle.get("reason") == "idle", idle

    async def _agree(self, player: Player, client: Client) -> bool:
        """Whether all who look at an agent see the same."""
        shown = client.messages()
        stored = shown
        if not re.search("/sub/+[^/]+$", client.place):  # what is put behind that is a sub-agent's name
            answer = await player.fetch("GET", f"{client.place}/get-messages")
            assert answer.startswith(b"HTTP/1.1 200"), answer
            stored = json.loads(answer.partition(b"\r\n\r\n")[2])
        check_messages(stored)
        others = [other for other in player.open_clients if other.place == client.place]
        for other in others:
            await other.settle()
        views = [shown, *(other.messages() for other in others if other.is_open)]
        if "/small/" in f"{player.root}{client.place}":
            # It has let go of its oldest messages since it has shown them.
            views = [view[-len(stored) :] for view in views]
        return all(view == stored for view in views)

    # ── moves ───────────────────────────────────────────────────────

    async def _rest(self) -> None:
        """Agents that are idle leave memory."""
        for _ in range(8):
            self._clock.advance(IDLE / 4)
            for _ in range(3):
                await asyncio.sleep(0)

    async def _restart(self) -> None:
        await self.stop()
        self._stack = contextlib.AsyncExitStack()
        await self.start()

    # ── afterwards ──────────────────────────────────────────────────

    @contextlib.asynccontextmanager
    async def _watched(self) -> AsyncGenerator[None]:
        """Nothing is left behind, and nothing was complained of."""
        yield
        await self._rest()
        left = asyncio.all_tasks() - self._own - {asyncio.current_task()}
        if left:
            await asyncio.wait(left, timeout=PATIENCE)
        assert not [task for task in left if not task.done()], f"tasks are left behind: {left}"
        gc.collect(0)
        assert not self.complaints.found, "\n".join(["complaints:", *self.complaints.found])
