"""An agent whose messages are traced, as docs/how-to/observe.md shows it."""

from perdure import Think


class Traced(Think):
    model = "demo"
    store_messages = True  # system prompt, messages and answers
    store_tools = True  # inputs and outputs of tools
