"""Parents that ask their children, with models that play what a test wrote down."""

from typing import Any

from perdure import Think, tool
from perdure.testing import ScriptedModel
from tests.support import Doing

__all__ = ["CHILD", "Child", "Parent", "parent_of", "scripted", "texts"]

CHILD = "p/sub/child/c"


class Child(Doing, Think):
    """Answers with the script of the test."""


class Parent(Doing, Think):
    """Does what the tests say."""

    model = "demo"


def scripted(kind: type[Think], *steps: Any, **members: Any) -> Any:
    """A class like ``kind``, of the same name, with a model that plays these steps."""
    return type(kind.__name__, (kind,), {"model": ScriptedModel(steps), **members})


def parent_of(child: type[Think], *steps: Any, asking: Any = None) -> Any:
    """A parent with a tool ``ask`` that asks its child, or does something else, and a model that plays these steps."""

    async def ask(self: Any) -> str:
        """Ask the child."""
        return (await (await self.sub_agent(child, "c")).chat("Please.")).status

    members = {"ask": tool(asking or ask), "get_tools": lambda self: [self.ask]}
    return scripted(Parent, *steps, **members)


def texts(messages: list[dict[str, Any]]) -> list[str]:
    return ["".join(part.get("text", "") for part in message["parts"]) for message in messages]
