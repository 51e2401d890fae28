"""Runs a test's own code as a call of an agent, and brings back what it gives or raises."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

from perdure import Agent, callable
from tests.support.tabs import PATIENCE, Tab

__all__ = ["Doing", "do"]

R = TypeVar("R")

_waiting: dict[int, tuple[Callable[[Any], Awaitable[Any]], asyncio.Future[Any]]] = {}
_numbers = itertools.count(1)


class Doing(Agent):
    """An agent that does what a test says."""

    @callable
    async def do(self, number: int) -> None:
        work, outcome = _waiting.pop(number)
        try:
            outcome.set_result(await work(self))
        except BaseException as error:
            outcome.set_exception(error)
            if not isinstance(error, Exception):
                raise


async def do(tab: Tab, work: Callable[[Any], Awaitable[R]]) -> R:
    """Run ``work`` with the agent at the other end of ``tab``, which is a :class:`Doing`."""
    number = next(_numbers)
    outcome: asyncio.Future[R] = asyncio.get_running_loop().create_future()
    _waiting[number] = (work, outcome)
    await tab.send({"type": "rpc", "id": f"do-{number}", "method": "do", "args": [number]})
    async with asyncio.timeout(PATIENCE):
        return await outcome
