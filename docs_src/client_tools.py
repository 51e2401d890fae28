"""The snippets of docs/how-to/client-tools.md."""

from typing import Literal

from pydantic import BaseModel, Field

from perdure import Think, TurnConfig, TurnContext, callable, client_tool


# ── declared on the server ──
class Question(BaseModel):
    question: str
    options: list[str] = Field(min_length=2, max_length=5)
    style: Literal["buttons", "list"] = "buttons"


locate = client_tool("locate", "Where the user is: latitude and longitude.")
choose = client_tool("choose", "Have the user choose one of several options.", Question)
read_clipboard = client_tool("read_clipboard", "What the user has copied.", needs_approval=True)


class Guide(Think):
    model = "demo"

    def get_tools(self):
        return [locate, choose, read_clipboard]


# ── going on ──
class Thrifty(Guide):
    cheap_model = "demo"

    async def before_turn(self, ctx: TurnContext):
        if ctx.continuation:
            return TurnConfig(model=self.cheap_model)


# ── going on by hand ──
class Patient(Guide):
    @callable
    async def enough(self) -> str:
        return (await self.continue_last_turn()).status
