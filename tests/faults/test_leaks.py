"""What is over is let go of: connections, turns, streams and tasks do not pile up."""

import asyncio
import gc

import pytest

import perdure.agent.connection
import perdure.server.connection
from perdure import ModelUnreachable, tool
from perdure.agent.stream import LiveStream
from perdure.agent.turn import Turn
from perdure.chat.builder import MessageBuilder
from perdure.server.transport import WebSocketProtocol
from perdure.testing import Gate, ScriptedModel, call, fail, pause, say
from tests.support import Serve, agent, chat_request

pytestmark = pytest.mark.anyio


def alive(*kinds: type) -> dict[str, int]:
    """How many objects of these classes there are."""
    gc.collect()
    counts = dict.fromkeys((f"{kind.__module__}.{kind.__name__}" for kind in kinds), 0)
    for item in gc.get_objects():
        for kind in kinds:
            if type(item) is kind:
                counts[f"{kind.__module__}.{kind.__name__}"] += 1
    return counts


async def test_connections_that_are_gone_are_let_go_of(serve: Serve) -> None:
    kinds = (perdure.server.connection.Connection, perdure.agent.connection.Connection, WebSocketProtocol)
    server = await serve(agent(ScriptedModel([])))
    stays = await server.tab()
    await stays.opened()
    tasks, before = len(asyncio.all_tasks()), alive(*kinds)
    for number in range(30):
        tab = await server.tab()
        await tab.opened()
        await tab.probe(f"p{number}")
        if number % 3:
            await tab.close()
        else:
            tab.drop()
            await tab.ended()
    await stays.settle()
    await stays.settle()
    assert alive(*kinds) == before
    assert len(asyncio.all_tasks()) <= tasks


async def test_turns_that_are_over_are_let_go_of(serve: Serve, caplog: pytest.LogCaptureFixture) -> None:
    gate = Gate()

    @tool
    async def quick() -> str:
        """Quick."""
        return "done"

    broken = ModelUnreachable("broken")
    endings = [
        [say("Fine.")],
        [say("Half"), fail(broken)],
        [call("quick")],
        [say("And so on.")],
        [say("Half"), pause(gate), say("never")],
    ]
    server = await serve(agent(ScriptedModel(endings * 5), quick))
    tab = await server.tab()
    await tab.opened()
    tasks, before = len(asyncio.all_tasks()), alive(Turn, LiveStream, MessageBuilder)
    for number in range(5):
        for kind in ("fine", "broken", "tool"):
            await tab.ask(f"{kind}-{number}", f"{kind} {number}")
            await tab.done(f"{kind}-{number}")
        await tab.ask(f"stopped-{number}", f"stopped {number}")
        await tab.seen(lambda frame, number=number: frame.get("id") == f"stopped-{number}" and "Half" in frame["body"])
        await tab.cancel(f"stopped-{number}")
        await tab.done(f"stopped-{number}")
    await tab.settle()
    # The log and the script hold on to the exception, and that to the frames that it went through.
    caplog.clear()
    broken.__traceback__ = None
    counts = alive(Turn, LiveStream, MessageBuilder)
    assert all(count - before[kind] <= 1 for kind, count in counts.items()), counts
    assert len(asyncio.all_tasks()) <= tasks


async def test_requests_that_are_refused_or_repeated_leave_nothing(serve: Serve) -> None:
    server = await serve(agent(ScriptedModel([say("Hello.")])))
    tab = await server.tab()
    await tab.ask("r1", "Hi")
    await tab.done("r1")
    before = alive(Turn, dict, list)
    for number in range(200):
        await tab.ack(f"unknown-{number}")
        await tab.cancel(f"unknown-{number}")
        await tab.send({"type": f"unknown-{number}"})
        await tab.send(chat_request(f"bad-{number}", "{"))
    await tab.settle()
    tab.frames.clear()
    after = alive(Turn, dict, list)
    assert after["perdure.agent.turn.Turn"] == before["perdure.agent.turn.Turn"]
    assert after["builtins.dict"] - before["builtins.dict"] < 150
