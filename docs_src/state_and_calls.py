"""The snippets of docs/how-to/state-and-calls.md."""

import logging

from perdure import ChatCallbacks, Think, callable

logger = logging.getLogger(__name__)


# ── state and callable methods ──
class Assistant(Think):
    model = "demo"
    initial_state = {"title": "New chat", "questions": 0}

    def validate_state_change(self, state, source):
        if not state["title"]:
            raise ValueError("a chat needs a title")

    def on_chat_response(self, response):
        self.set_state({**self.state, "questions": self.state["questions"] + 1})

    @callable
    def rename_chat(self, title: str) -> None:
        self.set_state({**self.state, "title": title})

    @callable
    async def words_of(self, text: str):
        for word in text.split():
            yield word


# ── connections ──
class Guarded(Assistant):
    def is_readonly(self, connection):
        return connection.request.query.get("token") != "letmein"


# ── turns that the server asks for ──
class Reporter(Assistant):
    @callable
    async def report(self, topic: str) -> str:
        result = await self.save_messages(f"Report on {topic}.")
        return result.text

    @callable
    async def summarise(self) -> list[str]:
        words: list[str] = []
        async for chunk in self.stream("Summarise what was said."):
            if chunk["type"] == "text-delta":
                words += chunk["delta"].split()
        return words


class Progress(ChatCallbacks):
    """Told of a turn by ``await agent.chat("…", Progress())``."""

    def on_start(self, request_id):
        self.request_id = request_id  # stop it with agent.cancel_chat(request_id)

    def on_event(self, chunk):
        logger.info("%s: %s", self.request_id, chunk["type"])

    def on_error(self, error):
        logger.warning("%s failed: %s", self.request_id, error)
