"""An agent and its test, as docs/how-to/test-agents.md shows them."""

from perdure import Think, tool
from perdure.testing import ScriptedModel, call, say


@tool
def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


class Calculator(Think):
    model = ScriptedModel([[call("add", {"a": 1, "b": 2})], [say("Three.")]])

    def get_tools(self):
        return [add]
