"""A monkey at several tabs: whatever it sends in whatever order, what must always hold does hold.

What it does is drawn from a seed; when it arrives is up to the machine. A failure names the seed.
"""

from __future__ import annotations

import json
import random
from collections.abc import AsyncGenerator
from typing import Any

import pytest

from perdure import ChatModel, Finish, ModelRequest, ModelUnreachable, Tool, tool
from perdure.models.contract import ModelEvent
from perdure.testing import Gate, RecordedRequest, strict_provider_errors
from tests.faults.fuzz.checks import check_streams
from tests.support import Frame, Serve, Serving, Tab, agent, chat_request, user_message

pytestmark = pytest.mark.anyio

MOVES = 80


class Moody(ChatModel):
    """Says a little, waits at a gate now and then, calls a tool, or fails."""

    name = "moody"

    def __init__(self, chance: random.Random) -> None:
        self.requests: list[RecordedRequest] = []
        self.gates: list[Gate] = []
        self.calm = False
        self._chance = chance
        self._calls = 0

    async def stream(self, request: ModelRequest) -> AsyncGenerator[ModelEvent, None]:
        self.requests.append(RecordedRequest.of(request))
        mood = "talk" if self.calm else self._chance.choice(["talk", "wait", "wait", "call", "fail", "silent"])
        number = len(self.requests)
        if mood == "silent":
            yield Finish("stop")
            return
        yield {"type": "text-start", "id": "0"}
        for piece in range(self._chance.randrange(1, 90)):
            yield {"type": "text-delta", "id": "0", "delta": f"{number}.{piece} "}
        if mood == "wait":
            gate = Gate()
            self.gates.append(gate)
            await gate.passed()
            yield {"type": "text-delta", "id": "0", "delta": "and on"}
        elif mood == "fail":
            raise ModelUnreachable("It broke off.")
        yield {"type": "text-end", "id": "0"}
        if mood == "call":
            self._calls += 1
            call = {"toolCallId": f"c{self._calls}", "toolName": "echo"}
            yield {"type": "tool-input-start", **call}
            yield {"type": "tool-input-available", **call, "input": {"text": "x" * self._chance.randrange(50)}}
        yield Finish("tool-calls" if mood == "call" else "stop")

    def calm_down(self) -> None:
        """Only talk from now on, and let everyone go on."""
        self.calm = True
        for gate in self.gates:
            gate.open()


class Monkey:
    """Makes one random move after the other."""

    def __init__(self, server: Serving, model: Moody, chance: random.Random) -> None:
        self.tabs: list[Tab] = []
        self.past: list[Tab] = []
        self._server = server
        self._model = model
        self._chance = chance
        self._sent: list[Frame] = []
        self._posted: list[Frame] = []
        self._asked = 0
        self.acked: dict[Tab, set[str]] = {}
        """The offers that each tab has taken up."""

    async def play(self) -> None:
        await self.open()
        moves = [
            self.ask,
            self.ask,
            self.ask,
            self.again,
            self.regenerate,
            self.stop,
            self.probe,
            self.clear,
            self.open,
        ]
        moves += [self.leave, self.let_go, self.let_go, self.let_go, self.look, self.burst]
        for _ in range(MOVES):
            await self._chance.choice(moves)()
            await self.take_offers()

    def tab(self) -> Tab:
        return self._chance.choice(self.tabs)

    async def send(self, *frames: Frame) -> None:
        await self.tab().send_together(*frames)

    def request(self, *messages: Frame, **body: Any) -> Frame:
        self._asked += 1
        frame = chat_request(f"r{self._asked}", json.dumps({"messages": messages, **body}))
        self._sent.append(frame)
        return frame

    async def ask(self) -> None:
        self._posted.append(user_message(f"question {len(self._posted)}"))
        await self.send(self.request(*self._posted[-3:]))

    async def again(self) -> None:
        if self._sent:
            await self.send(self._chance.choice(self._sent))

    async def regenerate(self) -> None:
        if self._posted:
            await self.send(self.request(self._posted[-1], trigger="regenerate-message"))

    async def stop(self) -> None:
        number = self._chance.randrange(max(1, self._asked - 3), self._asked + 2)
        await self.send({"type": "cf_agent_chat_request_cancel", "id": f"r{number}"})

    async def probe(self) -> None:
        await self.send({"type": "cf_agent_stream_resume_request", "probeId": "p"})

    async def clear(self) -> None:
        if self._chance.random() < 0.4:
            self._posted.clear()
            await self.send({"type": "cf_agent_chat_clear"})

    async def burst(self) -> None:
        self._posted.append(user_message(f"question {len(self._posted)}"))
        frames = [self.request(*self._posted[-2:]), {"type": "cf_agent_stream_resume_request"}]
        self._chance.shuffle(frames)
        await self.send(*frames)

    async def open(self) -> None:
        if len(self.tabs) < 5:
            self.tabs.append(await self._server.tab())
            self.acked[self.tabs[-1]] = set()
            await self.tabs[-1].opened()

    async def leave(self) -> None:
        if len(self.tabs) > 1:
            tab = self.tabs.pop(self._chance.randrange(len(self.tabs)))
            self.past.append(tab)
            if self._chance.random() < 0.5:
                tab.drop()
            else:
                await tab.close()

    async def let_go(self) -> None:
        for gate in self._model.gates:
            gate.open()

    async def look(self) -> None:
        ids = [message["id"] for message in await self._server.stored()]
        assert len(ids) == len(set(ids))

    async def take_offers(self) -> None:
        """Ack offers, as the hook does; some of them late."""
        for tab in self.tabs:
            offers = [frame["id"] for frame in tab.frames if frame["type"] == "cf_agent_stream_resuming"]
            over = any(frame.get("done") for frame in tab.of(offers[-1])) if offers else True
            if not over and offers[-1] not in self.acked[tab] and self._chance.random() < 0.7:
                self.acked[tab].add(offers[-1])
                await tab.ack(offers[-1])


@pytest.mark.parametrize("seed", range(12))
async def test_whatever_the_monkey_does(serve: Serve, seed: int) -> None:
    chance = random.Random(seed)
    model = Moody(chance)
    server = await serve(agent(model, echo))
    monkey = Monkey(server, model, chance)
    await monkey.play()

    for tab in monkey.tabs:
        await tab.settle()
    model.calm_down()
    tab = monkey.tabs[0]
    await tab.ask("r-last", user_message("The last one", "u-last"))
    assert (await tab.done("r-last"))["outcome"] == "completed"
    stored = await server.stored()
    assert stored[-2]["id"] == "u-last"
    ids = [message["id"] for message in stored]
    assert len(ids) == len(set(ids))
    for seen in monkey.tabs:
        await seen.done("r-last")
        snapshots = [frame for frame in seen.frames if frame["type"] == "cf_agent_chat_messages"]
        assert snapshots[-1]["messages"] == stored
    for seen in [*monkey.tabs, *monkey.past]:
        check_streams(seen.frames)
    for request in model.requests:
        assert strict_provider_errors(request) == [], json.dumps(request.messages)
    assert (await tab.probe("p-last"))["reason"] == "idle"

    await server.stop()
    again = await serve(agent(model, echo))
    assert await again.stored() == stored


@tool
async def _echo(text: str) -> str:
    """The text."""
    return text


echo: Tool = _echo.renamed("echo")
