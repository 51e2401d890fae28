"""The demo agent with what its browser tests need beside it: slow tools, a gated one too, and questions that expire."""

import asyncio

from starlette.responses import Response

from examples.assistant import Assistant
from perdure import App, client_tool, tool

weigh = client_tool("weigh", "Weigh something; only a person can.", {"type": "object"})


class Baker(Assistant):
    """``bake`` and ``simmer`` are done once somebody posts to ``…/ready``."""

    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        self.ready = asyncio.Event()

    def get_tools(self):
        return [*super().get_tools(), self.bake, self.simmer, weigh]

    @tool(needs_approval=True)
    async def bake(self, cakes: int):
        """Bake cakes."""
        await self.ready.wait()
        return [f"cake {number + 1}" for number in range(cakes)]

    @tool
    async def simmer(self):
        """Simmer soup."""
        await self.ready.wait()
        return "soup"

    async def on_request(self, request):
        self.ready.set()
        return Response()


class Hasty(Assistant):
    approval_ttl = 1.5


app = App(Assistant, Baker, Hasty)
