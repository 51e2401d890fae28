"""A handle on another agent: each public method of its class, as an awaitable call that the host carries out there.

Knows an address and the way through the host, never the agent itself, which need not be in memory.
"""

from __future__ import annotations

import asyncio
import contextlib
import inspect
from collections.abc import AsyncGenerator, Callable, Coroutine
from typing import TYPE_CHECKING, Any

import anyio

from perdure.agent.services import Family
from perdure.protocol.names import Address

if TYPE_CHECKING:
    from perdure.agent.base import Agent

__all__ = ["Handle"]


class Handle:
    """Another agent of the family.

    Every public method of its class can be called, and is to be awaited whether it is ``async`` or not; an async
    generator is iterated. Arguments, results and exceptions are handed over as they are. Beside that there is ``name``.
    """

    __slots__ = ("_address", "_family", "_kind")

    def __init__(self, address: Address, kind: type[Agent], family: Family) -> None:
        self._address = address
        self._kind = kind
        self._family = family

    @property
    def name(self) -> str:
        """The agent's name."""
        return self._address.name

    def __getattr__(self, name: str) -> Callable[..., Any]:
        """The method of that name.

        Raises:
            AttributeError: the class has no public method of that name.
        """
        kind = self._kind
        found = getattr(kind, name, None)
        if name.startswith("_"):
            raise AttributeError(f"{kind.__name__}.{name} is not public: a handle has the public methods of the class.")
        if found is None:
            raise AttributeError(f"{kind.__name__} has no method {name!r}.")
        if not inspect.isroutine(found):
            raise AttributeError(f"{kind.__name__}.{name} is not a method: a handle has nothing but methods, and name.")
        run = self._iterate if inspect.isasyncgenfunction(found) else self._call
        return lambda *args, **options: run(name, args, options)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Handle) and other._address == self._address

    def __hash__(self) -> int:
        return hash(self._address)

    def __repr__(self) -> str:
        return f"<handle on {self._kind.__name__} {self._address.key}>"

    async def _call(self, name: str, args: tuple[Any, ...], options: dict[str, Any]) -> Any:
        async def work(agent: Agent) -> Any:
            result = getattr(agent, name)(*args, **options)
            return await result if inspect.isawaitable(result) else result

        return await self._carry_out(name, work)

    async def _iterate(self, name: str, args: tuple[Any, ...], options: dict[str, Any]) -> AsyncGenerator[Any, None]:
        """The values of an async generator that runs as a task of the other agent, one step ahead at most."""
        give, take = anyio.create_memory_object_stream[Any]()

        async def work(agent: Agent) -> None:
            # Whoever iterates may have left; the cancellation is on its way then.
            with contextlib.suppress(anyio.BrokenResourceError):
                async with contextlib.aclosing(getattr(agent, name)(*args, **options)) as values:
                    async for value in values:
                        await give.send(value)

        def over(call: asyncio.Task[None]) -> None:
            give.close()
            if not call.cancelled():
                call.exception()  # it has been raised, or nobody is left to hear of it

        call = asyncio.create_task(self._carry_out(name, work), name=f"iterate {name} of {self._address.key}")
        call.add_done_callback(over)
        try:
            with take:
                async for value in take:
                    yield value
            await call
        finally:
            call.cancel()

    async def _carry_out(self, name: str, work: Callable[[Agent], Coroutine[Any, Any, Any]]) -> Any:
        return await self._family.call(self._address, f"{self._kind.__name__}.{name}()", work)
