"""The snippets of docs/how-to/tools.md."""

import asyncio
from functools import partial
from pathlib import Path
from typing import Annotated

from pydantic import BaseModel, Field

from perdure import Media, Think, Tool, ToolContext, tool

minute_passes = partial(asyncio.sleep, 0)

CITIES = {"Oslo": -3.0, "Rome": 14.0}


# ── functions ──
@tool
def get_weather(city: str, unit: str = "celsius") -> dict:
    """Current weather for a city.

    Args:
        city: City name in English.
        unit: "celsius" or "fahrenheit".
    """
    degrees = CITIES[city]
    return {"city": city, "degrees": degrees if unit == "celsius" else degrees * 9 / 5 + 32}


# ── methods ──
class Librarian(Think):
    model = "demo"

    def get_tools(self):
        return [get_weather, self.lend]

    @tool
    async def lend(self, title: Annotated[str, Field(min_length=1)], ctx: ToolContext) -> str:
        """Lend a book."""
        await self.add_messages(f"(The book {title} was lent by call {ctx.tool_call_id}.)")
        return f"{title} is yours until Friday."


# ── a schema of one's own ──
class Order(BaseModel):
    dish: str
    portions: int = Field(default=1, ge=1, le=20)


async def place_order(order: Order) -> str:
    return f"{order.portions} × {order.dish}"


order = Tool(
    "order",
    description="Order a dish from the kitchen.",
    input_schema=Order,
    execute=place_order,
    timeout=10,
)


class Kitchen(Think):
    model = "demo"

    def get_tools(self):
        return {"kitchen.order": order}


# ── progress ──
@tool(timeout=60)
async def bake(minutes: int):
    """Bake a cake."""
    for minute in range(minutes):
        yield {"done": f"{minute} of {minutes} minutes"}
        await minute_passes()
    yield {"cake": "ready"}


# ── files ──
@tool
def chart(name: str) -> dict:
    """Show a chart."""
    return {"name": name, "picture": Media(Path(f"{name}.png").read_bytes())}
