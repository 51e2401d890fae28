"""The demo agent of ``scripts/serve``: a chat with a few small tools, on the server and in the browser.

Answers with OpenAI's or Anthropic's model when ``OPENAI_API_KEY`` or ``ANTHROPIC_API_KEY`` is set, otherwise with the
built-in demo model, which is no AI and needs no key.
"""

import random
from dataclasses import dataclass, field
from datetime import datetime
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from perdure import App, Think, client_tool, default_model, tool

# ── tools that run on the server ──

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


def is_important(title: str) -> bool:
    return "important" in title.casefold()


# ── tools that run in the browser: the page answers them through `onToolCall`, or asks a person ──

get_window_size = client_tool("get_window_size", "Width and height of the page that the user looks at, in pixels.")

get_browser_details = client_tool(
    "get_browser_details", "Languages, screen and colours of the user's browser.", needs_approval=True
)


@dataclass
class Question:
    question: str
    options: list[str] = field(default_factory=list[str])
    """Answers to choose from; the user may give another."""


ask_user = client_tool("ask_user", "Ask the user a question, and wait for the answer.", Question)


class Assistant(Think):
    model = default_model()
    system_prompt = "You are a helpful assistant. Answer briefly."
    initial_state = {
        "notes": {
            "shopping": "Milk, bread, tea.",
            "important dates": "Rent on the first, dentist on the ninth.",
        }
    }

    def get_tools(self):
        return [
            get_weather,
            get_time,
            roll_dice,
            self.show_notebook,
            self.delete_note,
            get_window_size,
            get_browser_details,
            ask_user,
        ]

    @tool
    async def show_notebook(self) -> dict[str, str]:
        """All notes of the user, by title."""
        return self.state["notes"]

    @tool(needs_approval=is_important)
    async def delete_note(self, title: str) -> dict[str, str]:
        """Delete a note. The user is asked first when it is important.

        Args:
            title: Title of the note.
        """
        notes = dict(self.state["notes"])
        if title not in notes:
            raise ValueError(f"There is no note {title!r}. There are: {', '.join(notes) or 'none'}.")
        del notes[title]
        self.set_state({"notes": notes})
        return {"deleted": title}


app = App(Assistant)
