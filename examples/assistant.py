"""The demo agent of ``scripts/serve``: a chat with three small tools.

Answers with OpenAI's or Anthropic's model when ``OPENAI_API_KEY`` or ``ANTHROPIC_API_KEY`` is set, otherwise with the
built-in demo model, which is no AI and needs no key.
"""

import random
from datetime import datetime
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from perdure import App, Think, default_model, tool

SKIES = ["sunny", "cloudy", "rainy", "windy", "snowy"]


@tool
def get_weather(city: str) -> dict[str, object]:
    """Current weather for a city (made up, the same for a city each time).

    Args:
        city: City name.
    """
    chance = random.Random(city.casefold())
    return {"city": city, "sky": chance.choice(SKIES), "temperature": chance.randint(-5, 35)}


@tool
def get_time(zone: str = "UTC") -> str:
    """Current time in a time zone.

    Args:
        zone: IANA name of the time zone, like Europe/Paris.
    """
    try:
        return datetime.now(ZoneInfo(zone)).strftime("%H:%M on %A, %d %B %Y")
    except (ZoneInfoNotFoundError, ValueError):
        raise ValueError(f"There is no time zone {zone!r}. Use an IANA name, like Europe/Paris.") from None


@tool
def roll_dice(sides: int = 6, count: int = 1) -> list[int]:
    """Roll dice.

    Args:
        sides: Sides of each die.
        count: How many dice.
    """
    if not (2 <= sides <= 1000 and 1 <= count <= 100):
        raise ValueError("Between 1 and 100 dice of 2 to 1000 sides, please.")
    return [random.randint(1, sides) for _ in range(count)]


class Assistant(Think):
    model = default_model()
    system_prompt = "You are a helpful assistant. Answer briefly."

    def get_tools(self):
        return [get_weather, get_time, roll_dice]


app = App(Assistant)
