"""Frames that are made to do harm: refused or handled within bounds, while another socket streams."""

import contextlib
import gc
import json
import tracemalloc
from collections.abc import Callable, Generator
from typing import Any

import pytest
from websockets.exceptions import ConnectionClosed

from perdure.testing import Gate, ScriptedModel, pause, say
from tests.requirements import requirement
from tests.support import Serve, Serving, agent, chat_request, chunks_of, text_of, user_message

pytestmark = pytest.mark.anyio

MB = 1_000_000
HELD = 4 * MB
"""Memory that may still be held when all is over."""
TIMES = 10
"""How much more memory than it has bytes a frame may take."""


def schema(depth: int) -> str:
    """A JSON Schema of lists of lists …"""
    return '{"type":"array","items":' * depth + "{}" + "}" * depth


def body(messages: Any, **fields: str) -> str:
    """A chat body of JSON texts."""
    texts = {"messages": messages if isinstance(messages, str) else json.dumps(messages), **fields}
    return "{" + ",".join(f'"{key}":{text}' for key, text in texts.items()) + "}"


def questions(count: int, content: str = '"x"') -> str:
    template = '{{"id":"q{}","role":"user","parts":[{{"type":"text","text":"x","more":{}}}]}}'
    return "[" + ",".join(template.format(number, content) for number in range(count)) + "]"


def lists(count: int) -> str:
    return "[" + ",".join(["[]"] * count) + "]"


def tools(count: int, parameters: str = '{"type":"object"}') -> str:
    template = '{{"name":"t{}","description":"d","parameters":{}}}'
    return "[" + ",".join(template.format(number, parameters) for number in range(count)) + "]"


ONE = [user_message("Hi", "u-hostile")]
BODIES: dict[str, Callable[[], str]] = {
    "5,000 messages": lambda: body(questions(5_000)),
    "200,000 messages": lambda: body(questions(200_000).replace(',"more":"x"', "")),
    "200,000 answers": lambda: body(questions(200_000).replace(',"more":"x"', "").replace('"user"', '"assistant"')),
    "1,000 tool schemas": lambda: body(ONE, clientTools=tools(1_000, schema(5))),
    "a schema 500 deep": lambda: body(ONE, clientTools=tools(1, schema(500))),
    "a message 500 deep": lambda: body(questions(1, schema(500))),
    "a field 500 deep": lambda: body(ONE, extra=schema(500)),
    "a message of two million lists": lambda: body(questions(1, lists(2_000_000))),
    "1,000 messages of many lists": lambda: body(questions(1_000, lists(5_000))),
    "a field of five million lists": lambda: body(ONE, extra=lists(5_000_000)),
    "half a million fields": lambda: body(ONE, **{f"field{number}": "0" for number in range(500_000)}),
}
FRAMES: dict[str, Callable[[], str]] = {
    "a kind that is no text": lambda: f'{{"type":{lists(5_000_000)}}}',
    "an id that is no text": lambda: f'{{"type":"cf_agent_use_chat_request","id":{lists(5_000_000)}}}',
    "a state of five million lists": lambda: f'{{"type":"cf_agent_state","state":{lists(5_000_000)}}}',
    "a call with five million lists": lambda: f'{{"type":"rpc","id":"r","method":"x","args":{lists(5_000_000)}}}',
    "a tool result of five million lists": lambda: (
        f'{{"type":"cf_agent_tool_result","toolCallId":"c1","output":{lists(5_000_000)}}}'
    ),
    "five million lists and half a character": lambda: (
        f'{{"type":"cf_agent_state","state":["\\ud83d",{lists(5_000_000)}]}}'
    ),
}


@pytest.fixture
def traced() -> Generator[None]:
    tracemalloc.start()
    yield
    tracemalloc.stop()


class Memory:
    """Looks after the memory of what is done in here, the sender's own included."""

    def __init__(self, sent: int) -> None:
        self._sent = sent

    def __enter__(self) -> None:
        gc.collect()
        self._before, _ = tracemalloc.get_traced_memory()
        tracemalloc.reset_peak()

    def __exit__(self, *error: object) -> None:
        gc.collect()
        now, peak = tracemalloc.get_traced_memory()
        if error == (None, None, None):
            assert now - self._before < HELD
            assert peak - self._before < TIMES * self._sent + HELD


class Stream:
    """A tab whose answer goes on when it is told to."""

    def __init__(self, count: int) -> None:
        self.gates = [Gate() for _ in range(count)]
        self.moves: list[Any] = [
            move for number, gate in enumerate(self.gates) for move in (say(f"{number} "), pause(gate))
        ]
        self._opened = 0

    async def start(self, server: Serving) -> None:
        self.tab = await server.tab()
        await self.tab.ask("stream", "Go")
        await self.gates[0].reached()

    async def goes_on(self) -> None:
        self.gates[self._opened].open()
        self._opened += 1
        if self._opened < len(self.gates):
            await self.tab.delta("stream", f"{self._opened} ")

    async def ends(self) -> None:
        while self._opened < len(self.gates):
            await self.goes_on()
        assert (await self.tab.done("stream"))["outcome"] == "completed"
        frames = [frame for frame in self.tab.of("stream") if "seq" in frame]
        assert [frame["seq"] for frame in frames] == list(range(len(frames)))
        assert text_of(chunks_of(frames, "stream")) == "".join(f"{number} " for number in range(len(self.gates)))


@requirement("fault:SC-04")
@pytest.mark.parametrize("what", BODIES)
async def test_a_stream_goes_on_while_another_socket_asks_with(serve: Serve, traced: None, what: str) -> None:
    stream = Stream(4)
    server = await serve(agent(ScriptedModel([stream.moves, *[say("Fine.")] * 4])))
    await stream.start(server)
    frame = json.dumps(chat_request("r1", BODIES[what]()))
    rude = await server.tab()
    await rude.opened()
    await rude.ack("stream")
    with Memory(len(frame)):
        for _ in range(2):
            await rude.send(frame)
            await rude.settle()
            await rude.cancel("r1")
            await rude.done("r1")
            await stream.goes_on()
    assert rude.closed is None
    await stream.ends()


@requirement("fault:SC-04")
@pytest.mark.parametrize("what", FRAMES)
async def test_a_stream_goes_on_while_another_socket_sends(serve: Serve, traced: None, what: str) -> None:
    stream = Stream(4)
    server = await serve(agent(ScriptedModel([stream.moves])))
    await stream.start(server)
    frame = FRAMES[what]()
    rude = await server.tab()
    await rude.opened()
    await rude.settle()
    before = len(rude.frames)
    with Memory(len(frame)):
        for _ in range(2):
            await rude.send(frame)
            await rude.settle()
            await stream.goes_on()
    assert rude.kinds(before) == []
    assert rude.closed is None
    await stream.ends()


@requirement("fault:SC-04")
async def test_a_stream_goes_on_while_another_socket_sends_fifty_megabytes(serve: Serve, traced: None) -> None:
    stream = Stream(4)
    server = await serve(agent(ScriptedModel([stream.moves])))
    await stream.start(server)
    frame = json.dumps(chat_request("r1", body([user_message("x" * 50 * MB)])))
    with Memory(len(frame)):
        for _ in range(2):
            rude = await server.tab()
            await rude.opened()
            with contextlib.suppress(ConnectionClosed):  # perhaps before all of it is sent
                await rude.send(frame)
            assert (await rude.ended())[0] == 1009
            await stream.goes_on()
            del rude
    await stream.ends()
    assert len(await server.stored()) == 2
