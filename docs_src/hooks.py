"""The snippets of docs/how-to/hooks.md."""

import logging

from perdure import StepConfig, Think, TurnConfig, block, tool

logger = logging.getLogger(__name__)


@tool
def search(query: str) -> list[str]:
    """Search the documents."""
    return [f"All about {query}."]


@tool
def delete_all() -> str:
    """Delete all documents."""
    return "Everything is gone."


# ── one turn ──
class Assistant(Think):
    model = "demo"

    def get_tools(self):
        return [search, delete_all]

    def before_turn(self, ctx):
        if ctx.body.get("plan") == "free":
            return TurnConfig(active_tools=["search"], max_steps=3, max_output_tokens=500)


# ── one step ──
class Frugal(Assistant):
    def before_step(self, ctx):
        if ctx.number > 0:
            return StepConfig(model="demo", active_tools=[])  # the answer itself needs no tools


# ── one call ──
class Careful(Assistant):
    def before_tool_call(self, ctx):
        if ctx.tool_name == "delete_all":
            return block("Deleting is not allowed here.")

    def after_tool_call(self, result):
        logger.info("%s took %.0f ms", result.tool_name, result.duration_ms)


# ── calls that cannot run ──
class Forgiving(Assistant):
    def repair_tool_call(self, tool_name, input, error):
        if tool_name == "find" and isinstance(input, dict):
            return "search", {"query": str(input.get("text", ""))}


# ── the end ──
class Audited(Assistant):
    async def on_chat_response(self, response):
        logger.info("turn %s: %s", response.request_id, response.status)

    def classify_chat_error(self, error, ctx):
        return "rate_limit" if "429" in str(error) else None

    def on_chat_error(self, error, ctx):
        if ctx.classification == "rate_limit":
            return "Too much is going on right now. Please try again in a minute."
