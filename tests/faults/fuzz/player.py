"""Carries out what a plan says: several tabs of one conversation at a server that may restart."""

from __future__ import annotations

import contextlib
import json
from collections import Counter
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any

from websockets.exceptions import ConnectionClosed, WebSocketException

from tests.faults.fuzz import plans
from tests.faults.fuzz.frames import REQUESTS
from tests.faults.fuzz.plans import Move, Plan
from tests.faults.fuzz.world import World
from tests.support import Frame, Serving, Tab, chat_request, user_message

__all__ = ["Client", "Player"]


class Client:
    """A tab, and what is to be known of it in the end."""

    def __init__(self, tab: Tab, place: str) -> None:
        self.tab = tab
        self.place = place
        self.asked: list[str] = []
        """Requests that must be answered."""
        self.acked: Counter[str] = Counter()
        self.is_page = True
        """Whether it has done nothing that the page does not do."""
        self.left = False
        """Whether it has gone by itself."""

    @property
    def is_open(self) -> bool:
        return self.tab.closed is None and not self.left

    async def opened(self) -> bool:
        """Whether the tab was let in."""
        return await self._unless_closed(self.tab.opened())

    async def settle(self) -> None:
        """Wait until all that was sent to it is there, or it is closed."""
        if self.is_open:
            await self._unless_closed(self.tab.settle())

    async def _unless_closed(self, work: Awaitable[Any]) -> bool:
        try:
            await work
        except ConnectionClosed:
            return False
        except AssertionError:
            if self.tab.closed is None:
                raise
            return False
        return True

    def calls(self) -> list[tuple[str, str]]:
        """Ids and tools of the calls that the page has heard of and that may wait for an answer, oldest first."""
        found: dict[str, str] = {}
        for message in self.messages():
            for part in message["parts"]:
                if message["role"] == "assistant" and part.get("state") in {"input-available", "approval-requested"}:
                    found[part["toolCallId"]] = part["type"].removeprefix("tool-")
        for frame in self.tab.frames:
            if frame.get("type") == "cf_agent_use_chat_response" and '"tool-input-available"' in frame["body"]:
                chunk = json.loads(frame["body"])
                found[chunk["toolCallId"]] = chunk["toolName"]
        return list(found.items())

    def messages(self) -> list[Frame]:
        """The conversation as the page shows it."""
        for frame in reversed(self.tab.frames):
            if frame.get("type") == "cf_agent_chat_messages":
                return frame["messages"]
            if frame.get("type") == "cf_agent_chat_clear":
                return []
        return []


class Player:
    """Plays one plan."""

    def __init__(
        self,
        root: str,
        world: World,
        server: Callable[[], Serving],
        rest: Callable[[], Coroutine[Any, Any, None]],
        restart: Callable[[], Coroutine[Any, Any, None]],
    ) -> None:
        self.root = root
        """Where the conversation is."""
        self.clients: list[Client] = []
        """All that ever were."""
        self.sent: Counter[str] = Counter()
        """How often each request was sent, by anybody."""
        self._world = world
        self._server = server
        self._rest = rest
        self._restart = restart
        self._slots: list[Client | None] = [None] * plans.TABS
        self._requests: list[Frame] = []

    async def play(self, plan: Plan) -> None:
        """All moves, one after the other. Nothing is waited for that the plan does not wait for."""
        for move in plan.moves:
            with contextlib.suppress(ConnectionClosed):
                await self._make(move)

    @property
    def open_clients(self) -> list[Client]:
        """Those whose connection is open."""
        return [client for client in self.clients if client.is_open]

    def is_unique(self, request: str) -> bool:
        """Whether a request was sent once only."""
        return self.sent[request] == 1

    async def leave(self) -> None:
        """Close all tabs."""
        for client in self.clients:
            client.left = True
            await client.tab.close()

    async def open(self, place: str, query: str = "") -> Client | None:
        """A new tab; ``None`` when it is not even let in to be told that it is not let in."""
        try:
            tab = await self._server().connect(f"{self.root}{place}{query}")
        except (WebSocketException, OSError, EOFError):
            return None
        client = Client(tab, place)
        self.clients.append(client)
        return client

    async def fetch(self, method: str, place: str) -> bytes:
        """An HTTP request, its path as it stands here; gives the whole answer."""
        answer = await self._server().raw(_head(method, f"{self.root}{place}"))
        assert answer.startswith(b"HTTP/1.1 "), answer
        assert not answer.startswith(b"HTTP/1.1 500"), answer
        return answer

    # ── moves ───────────────────────────────────────────────────────

    async def _make(self, move: Move) -> None:
        match move:
            case plans.Open(tab=slot, place=place, query=query):
                if (before := self._slots[slot]) is not None:
                    before.left = True
                    await before.tab.close()
                self._slots[slot] = await self.open(place, query)
            case plans.LetGo():
                self._world.let_go()
            case plans.Rest():
                await self._rest()
            case plans.Restart():
                for client in self.clients:
                    client.left = True
                await self._restart()
            case plans.Fetch(method=method, place=place):
                await self.fetch(method, place)
            case _:
                client = self._slots[move.tab]
                if client is not None and client.is_open:
                    await self._make_at(client, move)

    async def _make_at(self, client: Client, move: Move) -> None:
        tab = client.tab
        match move:
            case plans.Close(rudely=rudely):
                client.left = True
                tab.drop() if rudely else await tab.close()
            case plans.Send(frames=frames):
                client.is_page = False
                for frame in frames:
                    self._note(client, frame)
                    await tab.send(frame)
            case plans.Ask():
                await self._ask(client, move)
            case plans.Answer():
                await self._answer(client, move)
            case plans.Repeat(number=number) if self._requests:
                request = self._requests[number % len(self._requests)]
                self.sent[request["id"]] += 1
                await tab.send(request)
            case plans.Stop(number=number):
                await tab.cancel(f"q{max(len(self._requests) - 1 - number, 0)}")
            case plans.Clear():
                await tab.clear()
            case plans.Take():
                await self._take(client)
            case plans.Settle():
                await client.settle()
            case plans.Wire(data=data):
                client.left = True
                tab.write(data)
            case _:
                pass

    def _note(self, client: Client, frame: str | bytes) -> None:
        """Whatever looks like a request may be one; what says that it is one, and which, is told how it ends."""
        text = frame if isinstance(frame, str) else frame.decode(errors="replace")
        for request in REQUESTS:
            self.sent[request] += text.count(f'"{request}"')
        head = _read(frame) if isinstance(frame, str) else None
        if isinstance(head, dict) and head.get("type") == "cf_agent_use_chat_request" and head.get("id") in REQUESTS:
            client.asked.append(head["id"])

    async def _ask(self, client: Client, move: plans.Ask) -> None:
        request = f"q{len(self._requests)}"
        before = client.messages() if move.posts_all else []
        if move.regenerates and before:
            posted, trigger = [m for m in before if m["role"] == "user"][-1:] or before, "regenerate-message"
        else:
            posted, trigger = [*before, user_message(f"Question {request}", f"{request}-{client.place}")], None
        body = {"messages": posted, **({} if trigger is None else {"trigger": trigger})}
        if move.brings_tools:
            body["clientTools"] = [{"name": "brought", "parameters": {"type": "object"}}]
        frame = chat_request(request, json.dumps(body))
        self._requests.append(frame)
        self.sent[request] += 1
        client.asked.append(request)
        await client.tab.send(frame)

    async def _answer(self, client: Client, move: plans.Answer) -> None:
        await client.settle()
        calls = client.calls()
        if not calls:
            return
        call, tool = calls[-1 - move.number % len(calls)]
        frame: Frame = {"toolCallId": call, "toolName": tool, "autoContinue": move.goes_on}
        match move.kind:
            case "yes" | "no":
                frame |= {"type": "cf_agent_tool_approval", "approved": move.kind == "yes"}
            case "error":
                frame |= {"type": "cf_agent_tool_result", "state": "output-error", "errorText": "It did not work."}
            case _:
                frame |= {"type": "cf_agent_tool_result", "output": move.value}
        await client.tab.send(json.dumps(frame))

    async def _take(self, client: Client) -> None:
        """As the page does: once for each stream and socket."""
        await client.settle()
        for frame in list(client.tab.frames):
            if frame.get("type") == "cf_agent_stream_resuming" and not client.acked[frame["id"]]:
                client.acked[frame["id"]] += 1
                await client.tab.ack(frame["id"])


def _read(text: str) -> Any:
    """What a JSON text says; ``None`` for other texts."""
    try:
        return json.loads(text, parse_constant=_refuse)
    except (ValueError, RecursionError):
        return None


def _refuse(constant: str) -> None:
    raise ValueError(constant)


def _head(method: str, target: str) -> bytes:
    return f"{method} {target} HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\nContent-Length: 0\r\n\r\n".encode()
