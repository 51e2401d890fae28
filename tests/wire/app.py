"""What the npm clients talk to: the agents of the benchmarks, client tools, a URL of the app's own, and a door.

``/user?user=NAME`` leads to the agent of that name; ``?refuse=STATUS`` is refused with that status. A ``pause`` in the
body of a request is how many milliseconds its continuations wait, before they stream and in mid-text.
"""

import asyncio
from typing import Any

from benchmarks import fixture
from perdure import App, IncomingRequest, Refuse, TurnContext, callable, client_tool

__all__ = ["BenchAgent", "app"]


class BenchAgent(fixture.BenchAgent):
    """With a call that is never answered, and two tools that the page answers."""

    def __init__(self) -> None:
        super().__init__()
        self._pause = 0.0

    def get_tools(self):
        declared = [client_tool("locate", "Where the user is."), client_tool("unlock", needs_approval=True)]
        return [*super().get_tools(), *declared]

    async def before_turn(self, ctx: TurnContext) -> None:
        self._pause = ctx.body.get("pause", 0) / 1000 if ctx.continuation else 0
        await asyncio.sleep(self._pause)

    async def on_chunk(self, chunk: dict[str, Any]) -> None:
        if chunk["type"] == "text-delta":
            await asyncio.sleep(self._pause)

    @callable
    async def never(self) -> None:
        await asyncio.Event().wait()


def by_user(request: IncomingRequest) -> tuple[type[BenchAgent], str] | None:
    is_users = request.path == "/user" or request.path.startswith("/user/")
    return (BenchAgent, request.query["user"]) if is_users and "user" in request.query else None


def at_the_door(request: IncomingRequest) -> Refuse | None:
    return Refuse(int(request.query["refuse"]), "Sign in first.") if "refuse" in request.query else None


app = App(BenchAgent, fixture.BenchHttpAgent, route=by_user, on_before_connect=at_the_door)
