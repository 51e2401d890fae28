"""What a page does about tool calls: the frames that it sends, and the conversation that it makes of what it gets."""

from __future__ import annotations

import json
from typing import Any

from perdure.chat.builder import MessageBuilder
from tests.support.serving import Serving
from tests.support.tabs import Frame, Tab

__all__ = ["Page", "approval", "offer", "tool_failure", "tool_result"]


def offer(*names: str, **parameters: Any) -> list[Frame]:
    """Tools as a page offers them in ``clientTools``; ``parameters`` are the properties of their inputs."""
    schema = {"type": "object", "properties": parameters}
    return [{"name": name, "description": f"Does {name}.", "parameters": schema} for name in names]


def tool_result(call: str, output: Any = "ok", *, tool: str = "", go_on: bool = True, **fields: Any) -> Frame:
    """A page gives the result of a call."""
    return {
        "type": "cf_agent_tool_result",
        "toolCallId": call,
        "toolName": tool,
        "output": output,
        "autoContinue": go_on,
        **fields,
    }


def tool_failure(call: str, text: str | None = None, *, go_on: bool = False) -> Frame:
    """A page says that a call failed."""
    fields = {} if text is None else {"errorText": text}
    return tool_result(call, None, go_on=go_on, state="output-error", **fields)


def approval(call: str, *, approved: bool = True, go_on: bool = True, **fields: Any) -> Frame:
    """A person decides on a call."""
    return {
        "type": "cf_agent_tool_approval",
        "toolCallId": call,
        "approved": approved,
        "autoContinue": go_on,
        **fields,
    }


class Page:
    """A page that was just loaded: it reads the conversation, connects, asks for a stream and takes up every offer.

    Its messages grow as those of the published hook's observer do: a stream is built beside them, a continuation on top
    of the last answer as it was when its first chunk came, and what an update changed is overwritten by the next chunk.
    """

    def __init__(self, tab: Tab, messages: list[Frame]) -> None:
        self.tab = tab
        self.messages = messages
        self.slow = False
        """Whether it leaves offers of streams for later."""
        self._read = 0
        self._acked: set[str] = set()
        self._offers: list[str] = []
        self._streams: dict[str, MessageBuilder | None] = {}
        self._queued: list[Frame] = []
        self._applied: dict[str, int] = {}

    @classmethod
    async def load(cls, server: Serving, *, slow: bool = False) -> Page:
        """Load it."""
        messages = await server.stored()
        page = cls(await server.tab(), messages)
        page.slow = slow
        await page.tab.opened()
        await page.tab.probe("load")
        await page.look()
        return page

    async def look(self) -> list[Frame]:
        """Take in all that the server has sent; gives the messages."""
        while True:
            await self.tab.settle()
            while self._read < len(self.tab.frames):
                self._read += 1
                self._take(self.tab.frames[self._read - 1])
            if self.slow or not self._offers:
                return self.messages
            for stream in self._offers:
                await self.tab.ack(stream)
            self._offers.clear()

    async def take_up(self) -> list[Frame]:
        """Take up what was left for later."""
        self.slow = False
        return await self.look()

    async def close(self) -> None:
        """The page is left."""
        await self.tab.close()

    def _take(self, frame: Frame) -> None:
        match frame["type"]:
            case "cf_agent_stream_resuming" if frame["id"] not in self._acked:
                self._acked.add(frame["id"])
                self._offers.append(frame["id"])
            case "cf_agent_chat_messages":
                self.messages = frame["messages"]
                self._merge()
            case "cf_agent_message_updated":
                self._put(frame["message"])
            case "cf_agent_use_chat_response":
                self._stream(frame)
            case _:
                pass

    def _stream(self, frame: Frame) -> None:
        stream = frame["id"]
        if frame["body"] and "seq" in frame:
            self._chunk(stream, frame, json.loads(frame["body"]))
        if frame.get("replayComplete"):
            self._begin(stream)
        if not frame.get("replay") or frame.get("replayComplete"):
            self._merge()
        if frame["done"]:
            self._streams.pop(stream, None)
            self._queued.clear()

    def _chunk(self, stream: str, frame: Frame, chunk: Frame) -> None:
        if frame.get("continuation"):
            if frame.get("replay") and frame["seq"] <= self._applied.get(stream, -1):
                return
            self._applied[stream] = frame["seq"]
        builder = self._streams.get(stream)
        if not frame.get("continuation") and chunk["type"] == "start":
            builder = self._streams[stream] = MessageBuilder(chunk["messageId"])
        if builder is not None:
            builder.apply(chunk)
            return
        self._streams.setdefault(stream, None)
        self._queued.append(chunk)
        if not frame.get("replay"):
            self._begin(stream)

    def _begin(self, stream: str) -> None:
        """A continuation is put on top of what the page shows now."""
        if stream in self._streams and self._streams[stream] is None:
            last = next(message for message in reversed(self.messages) if message["role"] == "assistant")
            builder = self._streams[stream] = MessageBuilder.going_on(last)
            for chunk in self._queued:
                builder.apply(chunk)
            self._queued.clear()

    def _merge(self) -> None:
        for builder in self._streams.values():
            if builder is not None and builder.changed:
                self._put(json.loads(json.dumps(builder.message())), append=True)

    def _put(self, message: Frame, *, append: bool = False) -> None:
        for index, known in enumerate(self.messages):
            if known["id"] == message["id"]:
                self.messages = [*self.messages[:index], message, *self.messages[index + 1 :]]
                return
        if append:
            self.messages = [*self.messages, message]
