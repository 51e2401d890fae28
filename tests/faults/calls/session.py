"""A server at which calls wait: plays plans, and looks whether all is well afterwards."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path
from typing import ClassVar

from perdure.host.engine import Engine
from perdure.storage.contract import Commit, OpenAgents, Operation
from perdure.storage.sqlite import SqliteStore
from perdure.testing import strict_provider_errors
from tests.faults.calls import plans
from tests.faults.calls.checks import check_continuations, check_rest, check_runs, open_parts, stored_messages
from tests.faults.calls.plans import Plan
from tests.faults.calls.player import Player
from tests.faults.calls.world import KINDS, World, worlds
from tests.faults.fuzz.session import IDLE, Session
from tests.support import Page, serving
from tests.support.tabs import PATIENCE

__all__ = ["CallsSession"]

LATER = 0.06
"""Seconds after which continuations begin."""
CALM = (plans.Open, plans.Close, plans.Answer, plans.Probe, plans.Wait, plans.LetGo, plans.Later, plans.Rest)
"""Moves after which it is certain which continuations there must have been."""


class RecordingStore(SqliteStore):
    """The real store, which remembers what was written of each agent."""

    written: ClassVar[dict[str, list[Operation]]] = {}

    def write(self, agent: str, epoch: int, operations: Sequence[Operation]) -> Commit:
        self.written.setdefault(agent, []).extend(operations)
        return super().write(agent, epoch, operations)


class CallsSession(Session):
    """A server, for one plan after the other; each has an agent of its own."""

    _store: SqliteStore

    async def start(self) -> None:
        """Start the server."""
        before = asyncio.all_tasks()
        engine = Engine(clock=self._clock, open_store=self._open)
        self._server = await self._stack.enter_async_context(
            serving(*KINDS, data=self._folder, idle_seconds=IDLE, engine=engine)
        )
        self._own = asyncio.all_tasks() - before

    async def _open(self, folder: Path) -> SqliteStore:
        self._store = await RecordingStore.open(folder)
        return self._store

    async def play(self, plan: Plan) -> None:
        """Play a plan. Raises AssertionError when something is wrong afterwards."""
        name = f"room-{next(self._numbers)}"
        world = worlds[name] = World(plan.steps)
        acts = {"later": self._later, "rest": self._rest, "restart": self._restart}
        player = Player(name, plan.kind, world, lambda: self._running, acts)
        key = f"{plan.kind}/{name}"
        async with self._watched():
            try:
                await player.play(plan)
                await self._finish(plan, player, world, key)
            finally:
                world.calm_down()
                await player.leave()
        del worlds[name], RecordingStore.written[key]

    async def _later(self) -> None:
        self._clock.advance(LATER)

    async def _finish(self, plan: Plan, player: Player, world: World, key: str) -> None:  # type: ignore[override]
        world.calm_down()
        await player.settle()
        await self._come_to_rest(player, key)
        calm = plan.kind != "latest" and all(isinstance(move, CALM) for move in plan.moves[3:])
        restarts = sum(isinstance(move, plans.Restart) for move in plan.moves)
        check_continuations(RecordingStore.written.get(key, []), calm=calm, restarts=restarts)
        await self._still_works(player, key)
        check_runs(world, player)
        for model in world.models:
            for request in model.requests:
                assert not (errors := strict_provider_errors(request)), (errors, request.messages)
            assert not model.unexpected

    async def _come_to_rest(self, player: Player, key: str) -> None:
        """Wait until no turn is left, and look whether all is as it should be then."""
        for patience in reversed(range(PATIENCE)):
            await self._settle(key)
            try:
                await check_rest(self._store, key)
                return
            except AssertionError:
                # What was sent by tabs that have closed may still have been on its way, and lead to another turn.
                if not patience:
                    raise
            tab = await player.open()
            await tab.settle()
            await tab.close()

    async def _settle(self, key: str) -> None:
        """Wait until no turn is left."""
        async with asyncio.timeout(PATIENCE):
            while key in await self._store.read(OpenAgents()):
                await self._later()
                await asyncio.sleep(0)

    async def _still_works(self, player: Player, key: str) -> None:
        """Another message is answered, after which nothing is open, and who comes sees what is stored."""
        kind, _, name = key.partition("/")
        tab = await player.open()
        await tab.opened()
        await tab.ask("last", *await self._running.stored(name, kind), "The last one.")
        assert (await tab.done("last"))["outcome"] == "completed"
        await self._settle(key)
        assert not open_parts(await stored_messages(self._store, key))
        stored = await self._running.stored(name, kind)
        page = Page(await player.open(), stored)
        await page.tab.opened()
        assert await page.look() == stored
        assert (await page.tab.probe("the end"))["reason"] == "idle"
        await page.close()
        await tab.close()
