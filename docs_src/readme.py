"""The example of the README."""

from perdure import App, Think, tool


@tool
def get_weather(city: str) -> dict:
    """Current weather for a city."""
    return {"city": city, "sky": "sunny"}


class Assistant(Think):
    model = "demo"  # or "openai:gpt-6.1-terra", "anthropic:claude-sonnet-5-5", …

    def get_tools(self):
        return [get_weather]


app = App(Assistant)
