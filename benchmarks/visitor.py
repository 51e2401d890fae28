"""One person with a conversation of the fixture: several tabs, and moods. Knows what must be stored in the end."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import json
import random
from collections.abc import Callable
from typing import Any

import httpx2
from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed

__all__ = ["Counts", "Inconsistent", "Visitor"]

PATIENCE = 60
"""Seconds after which an answer does not come any more."""

Frame = dict[str, Any]


class Inconsistent(Exception):
    """The server holds something else than was said."""


class Counts:
    """What all visitors did."""

    def __init__(self) -> None:
        self.turns = self.stops = self.clears = self.regenerated = self.reconnects = self.calls = self.rests = 0

    def __str__(self) -> str:
        return ", ".join(f"{count} {name}" for name, count in vars(self).items())


class _Tab:
    """One connection; keeps the newest conversation that it was sent."""

    def __init__(self, socket: ClientConnection) -> None:
        self.messages: list[Frame] = []
        self.frames: list[Frame] = []
        self._socket = socket
        self._changed = asyncio.Event()
        self._reader = asyncio.create_task(self._read())

    @classmethod
    async def open(cls, url: str) -> _Tab:
        tab = cls(await connect(url, max_size=None, proxy=None, compression=None))
        await tab.seen(lambda frame: frame["type"] == "cf_agent_mcp_servers")
        return tab

    async def send(self, **frame: Any) -> None:
        await self._socket.send(json.dumps(frame))

    async def seen(self, wanted: Callable[[Frame], bool]) -> Frame:
        """The first frame since :meth:`forget` that is wanted. Raises ConnectionClosed when none will come."""
        index = 0
        async with asyncio.timeout(PATIENCE):
            while True:
                for frame in self.frames[index:]:
                    if wanted(frame):
                        return frame
                index = len(self.frames)
                if self._reader.done():
                    raise ConnectionClosed(None, None)
                self._changed.clear()
                await self._changed.wait()

    def forget(self) -> None:
        self.frames.clear()

    async def close(self, *, rudely: bool = False) -> None:
        if rudely:
            self._socket.transport.abort()
        else:
            await self._socket.close()
        await self._reader

    async def _read(self) -> None:
        with contextlib.suppress(ConnectionClosed):
            async for text in self._socket:
                frame = json.loads(text)
                self.frames.append(frame)
                if frame["type"] == "cf_agent_chat_messages":
                    self.messages = frame["messages"]
                elif frame["type"] == "cf_agent_chat_clear":
                    self.messages = []
                self._changed.set()
        self._changed.set()


class Visitor:
    """Does one thing after the other until it is told to stop."""

    def __init__(self, base: str, name: str, rng: random.Random, counts: Counts, pause: float, rest: float) -> None:
        """A visitor of ``bench-agent/name`` at ``base`` (``http://…``).

        Args:
            base: Where the server is.
            name: Of the conversation.
            rng: Its moods.
            counts: Where to count.
            pause: Mean seconds between two things.
            rest: Mean seconds without any; longer than it takes for the agent to leave memory.
        """
        self._url = f"{base}/agents/bench-agent/{name}"
        self._name, self._rng, self._counts, self._pause, self._rest = name, rng, counts, pause, rest
        self._tabs: list[_Tab] = []
        self._ids = (f"{name}-{number}" for number in itertools.count(1))
        self._expected: list[tuple[str, str, bool]] = []
        """Question, whole answer, and whether the answer may be cut short."""
        self._count = 0

    async def run(self, until: Callable[[], bool]) -> None:
        """Visit. Raises Inconsistent when something is wrong."""
        doings = [self._turn, self._regenerate, self._clear, self._call, self._reconnect, self._sleep]
        await asyncio.sleep(self._rng.uniform(0, self._pause))
        while not until():
            (doing,) = self._rng.choices(doings, [10, 2, 1, 3, 3, 0.5])
            await doing(await self._tab())
            await asyncio.sleep(self._rng.expovariate(1 / self._pause))

    async def check(self, client: httpx2.AsyncClient) -> None:
        """Whether everything is stored. Raises Inconsistent otherwise."""
        tab = await self._tab(fresh=True)
        stored = (await client.get(f"{self._url}/get-messages")).json()
        await tab.send(type="cf_agent_stream_resume_request", probeId="end")
        idle = await tab.seen(lambda frame: frame.get("probeId") == "end")
        state = next(frame["state"] for frame in tab.frames if frame["type"] == "cf_agent_state")
        self._compare(stored)
        if tab.messages != stored or idle.get("reason") != "idle" or state["count"] != self._count:
            raise Inconsistent(f"{self._name}: {idle}, {state} but {self._count}, {len(tab.messages)} of {len(stored)}")
        await self.leave()

    async def leave(self) -> None:
        """Close all tabs."""
        for tab in self._tabs:
            await tab.close()
        self._tabs.clear()

    # ── doings ──────────────────────────────────────────────────────

    async def _turn(self, tab: _Tab) -> None:
        size = self._rng.randrange(1, 150)
        question = f"N={size} D={self._rng.choice([0, 0, 2, 5])}"
        whole = "".join(f"t{number} " for number in range(size))
        if self._rng.random() < 0.2:
            question = f'CALL add {{"a":{size},"b":1}}'
            whole = f'RESULT add {{"sum":{size + 1}}}'
        message = {"id": next(self._ids), "role": "user", "parts": [{"type": "text", "text": question}]}
        await self._ask(tab, [*tab.messages, message], "submit-message", question, whole)
        self._counts.turns += 1

    async def _regenerate(self, tab: _Tab) -> None:
        if not self._expected or tab.messages[-1]["role"] != "assistant":
            return
        question, whole, _ = self._expected.pop()
        await self._ask(tab, tab.messages[:-1], "regenerate-message", question, whole)
        self._counts.regenerated += 1

    async def _ask(self, tab: _Tab, messages: list[Frame], trigger: str, question: str, whole: str) -> None:
        request = next(self._ids)
        tab.forget()
        body = json.dumps({"messages": messages, "trigger": trigger})
        await tab.send(type="cf_agent_use_chat_request", id=request, init={"method": "POST", "body": body})
        watching, partial = tab, False
        mood = self._rng.random()
        if mood < 0.15:
            await asyncio.sleep(self._rng.uniform(0, 0.2))
            await tab.send(type="cf_agent_chat_request_cancel", id=request)
            partial = True
            self._counts.stops += 1
        elif mood < 0.4:
            await asyncio.sleep(self._rng.uniform(0, 0.2))
            watching = await self._replace(tab)
            await self._resume(watching)
        self._expected.append((question, whole, partial))
        await self._ended(watching, request)
        self._compare(watching.messages)

    async def _resume(self, tab: _Tab) -> None:
        await tab.send(type="cf_agent_stream_resume_request", probeId="resume")
        answer = await tab.seen(lambda frame: frame.get("probeId") == "resume")
        if answer["type"] == "cf_agent_stream_resuming":
            await tab.send(type="cf_agent_stream_resume_ack", id=answer["id"])

    async def _ended(self, tab: _Tab, request: str) -> None:
        """The turn is over: its end was sent, or there is nothing to resume for a tab that came afterwards."""
        await tab.seen(
            lambda frame: (
                (frame.get("id") == request and frame.get("done") is True)
                or (frame["type"] == "cf_agent_stream_resume_none" and frame.get("probeId") == "resume")
            )
        )

    async def _clear(self, tab: _Tab) -> None:
        await tab.send(type="cf_agent_chat_clear")
        tab.messages = []
        self._expected.clear()
        await self._rpc(tab, "ping")
        self._counts.clears += 1

    async def _call(self, tab: _Tab) -> None:
        self._count = await self._rpc(tab, "increment", 1)
        self._counts.calls += 1

    async def _reconnect(self, tab: _Tab) -> None:
        await self._replace(tab)
        if len(self._tabs) < 3:
            self._tabs.append(await _Tab.open(self._url.replace("http", "ws", 1)))

    async def _sleep(self, tab: _Tab) -> None:
        """Nothing for so long that the agent leaves memory; half of the times without any tab."""
        if self._rng.random() < 0.5:
            await self.leave()
        self._counts.rests += 1
        await asyncio.sleep(self._rest * self._rng.uniform(0.7, 1.3))

    async def _rpc(self, tab: _Tab, method: str, *args: Any) -> Any:
        id = next(self._ids)
        await tab.send(type="rpc", id=id, method=method, args=list(args))
        return (await tab.seen(lambda frame: frame.get("id") == id))["result"]

    # ── tabs ────────────────────────────────────────────────────────

    async def _tab(self, *, fresh: bool = False) -> _Tab:
        for tab in self._tabs:
            tab.forget()
        if fresh or not self._tabs:
            self._tabs.append(await _Tab.open(self._url.replace("http", "ws", 1)))
            return self._tabs[-1]
        return self._rng.choice(self._tabs)

    async def _replace(self, tab: _Tab) -> _Tab:
        self._counts.reconnects += 1
        self._tabs.remove(tab)
        await tab.close(rudely=self._rng.random() < 0.5)
        return await self._tab(fresh=True)

    # ── what must be there ──────────────────────────────────────────

    def _compare(self, messages: list[Frame]) -> None:
        found = list(messages)
        for question, whole, partial in self._expected:
            if not found or _text(found.pop(0)) != question:
                raise Inconsistent(f"{self._name}: {question!r} is missing in {_outline(messages)}")
            answer = _text(found.pop(0)) if found and found[0]["role"] == "assistant" else ""
            if answer != whole and not (partial and whole.startswith(answer)):
                raise Inconsistent(f"{self._name}: {question!r} is answered {answer!r} in {_outline(messages)}")
        if found:
            raise Inconsistent(f"{self._name}: there is more than was said: {_outline(messages)}")


def _text(message: Frame) -> str:
    return "".join(part["text"] for part in message["parts"] if part["type"] == "text")


def _outline(messages: list[Frame]) -> list[str]:
    return [f"{message['role']}: {_text(message)[:40]}" for message in messages]
