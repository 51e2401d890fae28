"""The main flows over a store that takes its time and a bus that serialises: nobody above notices.

Everything that talks to a server can be run over these: ``PERDURE_TEST_ENGINE=doubles scripts/test``.
"""

import itertools
import json
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from perdure import Connection, Think, callable, tool
from perdure.host.engine import Engine
from perdure.testing import Gate, ScriptedModel, call, pause, say
from tests.support import Doubles, Serve, Serving, Tab, chunks_of, text_of, user_message

pytestmark = pytest.mark.anyio


@tool
async def double(number: int) -> int:
    """Twice the number."""
    return 2 * number


class Room(Think):
    initial_state = {"count": 0}

    def get_tools(self):
        return [double]

    def on_connect(self, connection: Connection) -> None:
        connection.send(json.dumps({"type": "hello", "path": connection.request.path}))

    @callable
    def add(self, by: int) -> int:
        count = self.state["count"] + by
        self.set_state({"count": count})
        return count


Flow = Callable[[Serving, dict[str, Gate]], Awaitable[list[Tab]]]


async def a_turn_with_a_tool(server: Serving, gates: dict[str, Gate]) -> list[Tab]:
    tab, other = await server.tab(), await server.tab()
    await tab.opened()
    await other.opened()
    await tab.ask("r1", user_message("Double 4", "u1"))
    await tab.done("r1")
    await other.done("r1")
    return [tab, other]


async def reloading_in_mid_stream(server: Serving, gates: dict[str, Gate]) -> list[Tab]:
    tab = await server.tab()
    await tab.opened()
    await tab.ask("r1", user_message("Slowly", "u1"))
    await tab.delta("r1", "half")
    late = await server.tab()
    await late.opened()
    await late.ack("r1")
    await late.delta("r1", "half")
    gates["mid"].open()
    await tab.done("r1")
    await late.done("r1")
    return [tab, late]


async def stopping(server: Serving, gates: dict[str, Gate]) -> list[Tab]:
    tab = await server.tab()
    await tab.opened()
    await tab.ask("r1", user_message("Slowly", "u1"))
    await tab.delta("r1", "half")
    await tab.cancel("r1")
    await tab.done("r1")
    return [tab]


async def clearing(server: Serving, gates: dict[str, Gate]) -> list[Tab]:
    tab, other = await server.tab(), await server.tab()
    await tab.opened()
    await other.opened()
    await tab.ask("r1", user_message("Slowly", "u1"))
    await tab.delta("r1", "half")
    await tab.clear()
    await tab.done("r1")
    await other.done("r1")
    return [tab, other]


async def waiting_for_another_turn(server: Serving, gates: dict[str, Gate]) -> list[Tab]:
    tab = await server.tab()
    await tab.opened()
    first, second = user_message("Slowly", "u1"), user_message("And then?", "u2")
    await tab.ask("r1", first)
    await tab.delta("r1", "half")
    await tab.ask("r2", first, second)
    await tab.settle()
    gates["mid"].open()
    await tab.done("r2")
    return [tab]


async def state_and_calls(server: Serving, gates: dict[str, Gate]) -> list[Tab]:
    tab, other = await server.tab(), await server.tab()
    await tab.opened()
    await other.opened()
    for number in (1, 2, 3):
        await tab.send({"type": "rpc", "id": f"c{number}", "method": "add", "args": [number]})
        await tab.seen(lambda frame, number=number: frame.get("id") == f"c{number}")
    await tab.send({"type": "rpc", "id": "no", "method": "nothing", "args": []})
    await other.send({"type": "cf_agent_state", "state": {"count": 40}})
    await tab.seen(lambda frame: frame.get("state") == {"count": 40})
    return [tab, other]


FLOWS: dict[Flow, list[Any]] = {
    a_turn_with_a_tool: [[call("double", {"number": 4}, id="c1")], say("Eight", ".")],
    reloading_in_mid_stream: [[say("half"), pause, say(" and half")]],
    stopping: [[say("half"), pause]],
    clearing: [[say("half"), pause]],
    waiting_for_another_turn: [[say("half"), pause, say(" and half")], say("Then.")],
    state_and_calls: [],
}


def without_ids(frames: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Frames with the ids that the server makes replaced by the order in which they appear."""
    numbers = itertools.count()
    known: dict[str, str] = {}

    def clean(value: Any) -> Any:
        if isinstance(value, dict):
            return {key: clean(item) for key, item in value.items()}
        if isinstance(value, list):
            return [clean(item) for item in value]
        if isinstance(value, str) and len(value) == 36 and value.count("-") == 4:
            return known.setdefault(value, f"id {next(numbers)}")
        if isinstance(value, str) and '"messageId":"' in value:
            before, _, rest = value.partition('"messageId":"')
            return f'{before}"messageId":"{clean(rest[:36])}{rest[36:]}'
        return value

    return [clean(frame) for frame in frames]


async def play(flow: Flow, serve: Serve, engine: Engine, data: Any) -> tuple[list[Any], list[Any]]:
    """What the tabs of a flow are sent, and what is stored in the end."""
    gates = {"mid": Gate()}
    steps = [[pause(gates["mid"]) if move is pause else move for move in _moves(step)] for step in FLOWS[flow]]
    room = type("Agent", (Room,), {"model": ScriptedModel(steps)})
    server = await serve(room, engine=engine, data=data)
    tabs = await flow(server, gates)
    stored = await server.stored()
    for tab in tabs:
        await tab.settle()
    await server.stop()
    frames = [without_ids([f for f in tab.frames if not str(f.get("probeId")).startswith("settle")]) for tab in tabs]
    return frames, without_ids(stored)


def _moves(step: Any) -> list[Any]:
    return step if isinstance(step, list) else [step]


@pytest.mark.parametrize("flow", FLOWS, ids=lambda flow: flow.__name__.replace("_", " "))
async def test_a_slow_store_and_a_bus_between_processes_change_nothing(flow: Flow, serve: Serve, tmp_path: Any) -> None:
    plain = await play(flow, serve, Engine(), tmp_path / "plain")
    assert plain[0][0]
    for seed in (1, 2, 3):
        doubles = Doubles(seed)
        assert await play(flow, serve, doubles.engine, tmp_path / f"doubles {seed}") == plain
        assert doubles.bus.crossed > 1000


async def test_a_conversation_of_many_tabs_that_come_and_go_holds_over_the_doubles(serve: Serve) -> None:
    words = [[say(*(f"{turn}.{number} " for number in range(150)))] for turn in range(6)]
    server = await serve(type("Agent", (Room,), {"model": ScriptedModel(words)}), engine=Doubles(5).engine)
    asking = await server.tab()
    for turn in range(6):
        history = await server.stored()
        coming = [await server.tab() for _ in range(2)]
        await asking.ask(f"r{turn}", *history, user_message(f"Question {turn}", f"u{turn}"))
        await asking.delta(f"r{turn}", f"{turn}.3 ")
        joining = await server.tab()
        for tab in (*coming, joining):
            await tab.probe("p")
            await tab.ack(f"r{turn}")
        for tab in (asking, *coming, joining):
            await tab.done(f"r{turn}")
            said = text_of(chunks_of(tab.frames, f"r{turn}"))
            expected = "".join(f"{turn}.{number} " for number in range(150))
            snapshot = [f for f in tab.frames if f["type"] == "cf_agent_chat_messages"][-1]["messages"]
            assert snapshot[-1]["parts"][-1]["text"] == expected
            assert expected in said or said == "", said[:80]
        for tab in coming:
            tab.drop()
    assert len(await server.stored()) == 12
