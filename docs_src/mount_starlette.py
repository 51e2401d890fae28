"""Agents in a Starlette app with a lifespan of its own, as docs/how-to/mount.md shows it."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

from starlette.applications import Starlette
from starlette.routing import Mount

from perdure import App, Think


class Assistant(Think):
    model = "demo"


agents = App(Assistant)


@asynccontextmanager
async def lifespan(app: Starlette) -> AsyncGenerator[None]:
    async with agents.lifespan():
        # open what else the app needs
        yield


app = Starlette(routes=[Mount("/chat", app=agents)], lifespan=lifespan)
