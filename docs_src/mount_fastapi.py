"""Agents in a FastAPI app, as docs/how-to/mount.md shows it."""

from fastapi import FastAPI

from perdure import App, Think


class Assistant(Think):
    model = "demo"


agents = App(Assistant)
app = FastAPI(lifespan=agents.lifespan)
app.mount("/chat", agents)


@app.get("/")
def root() -> dict[str, str]:
    return {"chat": "/chat/agents/assistant/my-chat"}
