"""What the npm clients talk to: the agents of the benchmarks, a URL of the app's own, and a door.

``/user?user=NAME`` leads to the agent of that name; ``?refuse=STATUS`` is refused with that status.
"""

import asyncio

from benchmarks import fixture
from perdure import App, IncomingRequest, Refuse, callable

__all__ = ["BenchAgent", "app"]


class BenchAgent(fixture.BenchAgent):
    """With a call that is never answered."""

    @callable
    async def never(self) -> None:
        await asyncio.Event().wait()


def by_user(request: IncomingRequest) -> tuple[type[BenchAgent], str] | None:
    is_users = request.path == "/user" or request.path.startswith("/user/")
    return (BenchAgent, request.query["user"]) if is_users and "user" in request.query else None


def at_the_door(request: IncomingRequest) -> Refuse | None:
    return Refuse(int(request.query["refuse"]), "Sign in first.") if "refuse" in request.query else None


app = App(BenchAgent, fixture.BenchHttpAgent, route=by_user, on_before_connect=at_the_door)
