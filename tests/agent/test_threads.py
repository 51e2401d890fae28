"""Agents and connections in the hands of synchronous tools, which run in worker threads."""

import asyncio
import threading
from collections.abc import Callable
from typing import Any

import anyio.to_thread
import pytest

from perdure import ConfigurationError, Connection, ConnectionRequest, ToolContext, tool
from perdure.testing import Gate, ScriptedModel, call, pause, say
from tests.agent.services import RecordingServices
from tests.support import Doing, ErrorLog, Serve, agent, do

pytestmark = pytest.mark.anyio


class WhereServices(RecordingServices):
    """Notes in which threads it is called."""

    def __init__(self) -> None:
        super().__init__()
        self.threads: list[threading.Thread] = []

    def send(self, peers: Any, frame: str) -> None:
        self.threads.append(threading.current_thread())
        super().send(peers, frame)

    def hang_up(self, peers: Any, code: int, reason: str) -> None:
        self.threads.append(threading.current_thread())
        super().hang_up(peers, code, reason)


@pytest.mark.parametrize(
    "use", [lambda connection: connection.send('{"a":1}'), lambda connection: connection.close(4000, "Bye")]
)
async def test_what_a_worker_thread_does_to_a_connection_is_done_in_the_loop(
    use: Callable[[Connection], Any],
) -> None:
    services = WhereServices()
    connection = Connection(1, ConnectionRequest("/", {}, {}), services)
    await anyio.to_thread.run_sync(use, connection)
    use(connection)
    assert services.threads == [threading.current_thread()] * 2
    assert services.sent == [((1,), {"a": 1})] * 2 or services.closed == [(1, 4000)] * 2


async def test_a_synchronous_tool_speaks_to_connections_and_stops_turns(serve: Serve) -> None:
    gate = Gate()

    @tool
    def work(ctx: ToolContext) -> str:
        """Runs in a thread."""
        for connection in ctx.agent.connections:
            connection.send('{"type":"note","to":"everybody"}')
        ctx.agent.cancel_chat(ctx.turn_id)
        return "done"

    server = await serve(agent(ScriptedModel([call("work"), [pause(gate), say("never")]]), work))
    tab, other = await server.tab(), await server.tab()
    await tab.ask("r1", "Go")
    for seen in (tab, other):
        await seen.seen(lambda frame: frame.get("to") == "everybody")
        assert (await seen.done("r1"))["outcome"] == "aborted"


async def test_a_thread_of_the_applications_own_is_told_what_to_do(serve: Serve, log: ErrorLog) -> None:
    async def work(agent: Doing) -> None:
        loop, (connection, *_) = asyncio.get_running_loop(), agent.connections
        raised: asyncio.Queue[Exception] = asyncio.Queue()

        def run() -> None:
            for use in (lambda: connection.send("x"), lambda: agent.set_state(1), lambda: agent.dequeue("x")):
                try:
                    use()
                except Exception as error:
                    loop.call_soon_threadsafe(raised.put_nowait, error)

        threading.Thread(target=run).start()
        for _ in range(3):
            with pytest.raises(ConfigurationError, match="call_soon_threadsafe"):
                raise await raised.get()

    server = await serve(Doing)
    await do(await server.tab(agent="doing"), work)


async def test_a_runtime_error_of_what_is_called_is_its_own(serve: Serve) -> None:
    class Picky(Doing):
        def validate_state_change(self, state: Any, source: Any) -> None:
            raise RuntimeError("no such state")

    async def work(agent: Doing) -> None:
        with pytest.raises(RuntimeError, match="no such state"):
            await anyio.to_thread.run_sync(agent.set_state, 1)

    server = await serve(Picky)
    await do(await server.tab(agent="picky"), work)
