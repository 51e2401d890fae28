"""The app of the crash tests: the last user message says what its model does.

``say N``
    N deltas of text.
``hang N``
    N deltas of text, and then nothing more, ever.
``tool NAME``
    Calls the tool of that name, then says ``after``.

What the model is asked is appended to ``requests`` in the data folder, one JSON line for each step; that a tool ran, to
``tools``.
"""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import AsyncGenerator, Iterator
from pathlib import Path

import msgspec

from perdure import App, ChatModel, Debounce, Finish, ModelRequest, Think, tool
from perdure.models.contract import Chunk, ModelEvent
from perdure.protocol.messages import text_of
from perdure.testing import RecordedRequest

__all__ = ["FOLDER", "app", "note"]

FOLDER = Path(os.environ.get("PERDURE_DATA", "."))


def note(name: str, line: bytes) -> None:
    with (FOLDER / name).open("ab") as file:
        file.write(line + b"\n")


@tool
async def hangs() -> str:
    """Never returns."""
    note("tools", b"hangs")
    await asyncio.Event().wait()
    return "never"


@tool
def blocks() -> str:
    """Blocks its thread for ever."""
    note("tools", b"blocks")
    threading.Event().wait()
    return "never"


@tool
async def counts() -> str:
    """Returns at once."""
    note("tools", b"counts")
    return "counted"


@tool
async def leaves() -> str:
    """Ends the process, as a careless library would."""
    raise SystemExit(3)


class Actor(ChatModel):
    name = "actor"

    async def stream(self, request: ModelRequest) -> AsyncGenerator[ModelEvent, None]:
        note("requests", msgspec.json.encode(RecordedRequest.of(request)))
        messages = [item.message for item in request.history]
        order, _, what = text_of([message for message in messages if message["role"] == "user"][-1]).partition(" ")
        if order == "tool" and messages[-1]["role"] == "user":
            for chunk in _call(what):
                yield chunk
            yield Finish("tool-calls")
            return
        yield {"type": "text-start", "id": "0"}
        for delta in ["after"] if order == "tool" else [f"{number} " for number in range(int(what))]:
            yield {"type": "text-delta", "id": "0", "delta": delta}
        if order == "hang":
            await asyncio.Event().wait()
        yield {"type": "text-end", "id": "0"}
        yield Finish("stop")


def _call(name: str) -> Iterator[Chunk]:
    yield {"type": "tool-input-start", "toolCallId": f"c-{name}", "toolName": name}
    yield {"type": "tool-input-available", "toolCallId": f"c-{name}", "toolName": name, "input": {}}


class Agent(Think):
    model = Actor()

    def get_tools(self):
        return [hangs, blocks, counts, leaves]


class Latest(Agent):
    message_concurrency = "latest"


class Merge(Agent):
    message_concurrency = "merge"


class Quiet(Agent):
    message_concurrency = Debounce(ms=3_600_000)


app = App(Agent, Latest, Merge, Quiet)
