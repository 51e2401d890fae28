"""The state of an agent: who is told of it, who may change it, and what outlives a restart."""

import asyncio
import sqlite3
from pathlib import Path
from typing import Any

import pytest

from perdure import Agent, Connection, Think, callable
from tests.requirements import requirement
from tests.support import ErrorLog, Frame, Serve, Tab

pytestmark = pytest.mark.anyio


class Counter(Agent):
    """Has a state, and methods that look at it and change it."""

    initial_state: Any = {"count": 0}

    @callable
    def add(self, count: int) -> Any:
        self.set_state({"count": self.state["count"] + count})
        return self.state

    @callable
    def look(self) -> Any:
        return self.state

    @callable
    def put(self, state: Any) -> None:
        self.set_state(state)


def states(tab: Tab) -> list[Any]:
    """The states that a tab was sent so far."""
    return [frame["state"] for frame in tab.frames if frame["type"] == "cf_agent_state"]


def base(tab: Tab) -> list[Frame]:
    """The frames so far that are none of the chat's."""
    return [frame for frame in tab.frames if not frame["type"].startswith("cf_agent_chat")]


async def call(tab: Tab, method: str, *args: Any) -> Frame:
    start = len(tab.frames)
    await tab.send({"type": "rpc", "id": method, "method": method, "args": list(args)})
    return await tab.next(lambda frame: frame["type"] == "rpc", since=start)


async def put(tab: Tab, state: Any) -> None:
    await tab.send({"type": "cf_agent_state", "state": state})


@requirement("protocol:17", "protocol:18")
async def test_a_connection_is_told_who_answers_the_state_and_the_servers_in_this_order(serve: Serve) -> None:
    server = await serve(Counter)
    for _ in range(2):
        tab = await server.tab(agent="counter")
        await tab.opened()
        assert tab.frames == [
            {"type": "cf_agent_identity", "name": "room", "agent": "counter", "stateFollows": True},
            {"type": "cf_agent_state", "state": {"count": 0}},
            {"type": "cf_agent_mcp_servers", "mcp": {"servers": {}, "tools": [], "prompts": [], "resources": []}},
        ]


@requirement("protocol:17")
async def test_without_a_state_the_identity_promises_none(serve: Serve) -> None:
    class Plain(Agent):
        pass

    class Chatty(Think):
        model = "demo"

    server = await serve(Plain, Chatty)
    for kind in ("plain", "chatty"):
        tab = await server.tab(agent=kind)
        await tab.opened()
        assert [frame["type"] for frame in base(tab)] == ["cf_agent_identity", "cf_agent_mcp_servers"]
        assert "stateFollows" not in base(tab)[0]


@requirement("protocol:17", "protocol:18")
@pytest.mark.parametrize("value", [None, 0, "", False, []])
async def test_every_value_is_a_state(serve: Serve, value: Any) -> None:
    server = await serve(type("Counter", (Counter,), {"initial_state": value}))
    tab = await server.tab(agent="counter")
    await tab.opened()
    assert states(tab) == [value]
    assert tab.frames[0]["stateFollows"] is True


@requirement("protocol:19")
async def test_an_agent_that_does_not_say_who_it_is_sends_its_state_first(serve: Serve) -> None:
    server = await serve(type("Counter", (Counter,), {"send_identity_on_connect": False}))
    tab = await server.tab(agent="counter")
    await tab.opened()
    assert tab.kinds() == ["cf_agent_state", "cf_agent_mcp_servers"]


@requirement("protocol:21")
async def test_a_connection_without_protocol_messages_is_told_nothing_and_answered_all_the_same(serve: Serve) -> None:
    def quiet(self: Agent, connection: Connection) -> bool:
        return "quiet" not in connection.request.query

    server = await serve(type("Counter", (Counter,), {"sends_protocol_messages": quiet}))
    loud, tab = await server.tab(agent="counter"), await server.tab("room?quiet=1", agent="counter")
    await loud.opened()
    assert (await call(tab, "add", 2))["result"] == {"count": 2}
    await put(loud, {"count": 3})
    assert (await call(tab, "look"))["result"] == {"count": 3}
    assert tab.kinds() == ["rpc", "rpc"]
    assert states(loud) == [{"count": 0}, {"count": 2}]


@requirement("protocol:22")
async def test_a_clients_state_goes_to_the_others_and_not_back(serve: Serve) -> None:
    server = await serve(Counter)
    tab, other = await server.tab(agent="counter"), await server.tab(agent="counter")
    await tab.opened()
    await other.opened()
    await put(tab, {"count": 7, "list": [1, None]})
    await other.next(lambda frame: frame["type"] == "cf_agent_state", since=3)
    assert (await call(tab, "look"))["result"] == {"count": 7, "list": [1, None]}
    assert (states(tab), states(other)) == ([{"count": 0}], [{"count": 0}, {"count": 7, "list": [1, None]}])


@requirement("protocol:23")
async def test_a_change_by_the_server_goes_to_everybody_before_the_reply_to_the_call(serve: Serve) -> None:
    server = await serve(Counter)
    tab, other = await server.tab(agent="counter"), await server.tab(agent="counter")
    await other.opened()
    await call(tab, "add", 1)
    await other.next(lambda frame: frame["type"] == "cf_agent_state", since=3)
    assert states(tab) == states(other) == [{"count": 0}, {"count": 1}]
    assert tab.kinds()[-2:] == ["cf_agent_state", "rpc"]


@requirement("protocol:24", "engine:141")
async def test_a_state_that_validation_refuses_changes_nothing(serve: Serve) -> None:
    asked: list[tuple[Any, bool]] = []
    changed: list[Any] = []

    class Checked(Counter):
        def validate_state_change(self, state: Any, source: Connection | None) -> None:
            asked.append((state, source is not None))
            if state["count"] > 9:
                raise ValueError("a secret reason")

        def on_state_changed(self, state: Any, source: Connection | None) -> None:
            changed.append(state)

    server = await serve(Checked)
    tab, other = await server.tab(agent="checked"), await server.tab(agent="checked")
    await tab.opened()
    await other.opened()
    await put(tab, {"count": 10})
    assert await tab.next(since=3) == {"type": "cf_agent_state_error", "error": "State update rejected"}
    assert (await call(tab, "add", 10))["error"] == "a secret reason"
    assert (await call(tab, "look"))["result"] == {"count": 0}
    assert (states(tab), states(other)) == ([{"count": 0}], [{"count": 0}])
    assert asked == [({"count": 10}, True), ({"count": 10}, False)]
    assert changed == []


@requirement("protocol:25", "engine:141")
@pytest.mark.parametrize("waits", [False, True])
async def test_a_hook_that_fails_does_not_stop_the_broadcast(serve: Serve, log: ErrorLog, waits: bool) -> None:
    told: list[Any] = []

    class Failing(Counter):
        def on_state_changed(self, state: Any, source: Connection | None) -> Any:
            told.append((state, source.id if source else None))
            if waits:
                return asyncio.ensure_future(self.fail())
            raise LookupError("broken")

        async def fail(self) -> None:
            raise LookupError("broken")

    server = await serve(Failing)
    tab, other = await server.tab("room?_pk=me", agent="failing"), await server.tab(agent="failing")
    await other.opened()
    await put(tab, {"count": 1})
    await other.next(lambda frame: frame["type"] == "cf_agent_state", since=3)
    assert (await call(tab, "add", 1))["result"] == {"count": 2}
    await tab.send({"type": "rpc", "id": "x", "method": "look", "args": []})
    await tab.seen(lambda frame: frame.get("id") == "x")
    assert told == [({"count": 1}, "me"), ({"count": 2}, None)]
    assert states(other) == [{"count": 0}, {"count": 1}, {"count": 2}]
    log.expect("on_state_changed")


@requirement("protocol:26", "fault:SC-07")
async def test_a_connection_that_may_only_read(serve: Serve) -> None:
    class Guarded(Counter):
        def is_readonly(self, connection: Connection) -> bool:
            return connection.request.query.get("mode") == "read"

    server = await serve(Guarded)
    tab = await server.tab("room?mode=read", agent="guarded")
    writer = await server.tab(agent="guarded")
    await tab.opened()
    await put(tab, {"count": 5})
    assert await tab.next(since=3) == {"type": "cf_agent_state_error", "error": "Connection is readonly"}
    assert (await call(tab, "add", 1))["error"] == "Connection is readonly"
    assert (await call(tab, "look"))["result"] == {"count": 0}
    assert (await call(writer, "add", 1))["result"] == {"count": 1}
    await tab.seen(lambda frame: frame == {"type": "cf_agent_state", "state": {"count": 1}})
    assert states(tab) == [{"count": 0}, {"count": 1}]


@requirement("protocol:27")
async def test_what_a_connection_may_do_can_change_and_is_asked_for_each(serve: Serve) -> None:
    class Guarded(Counter):
        def is_readonly(self, connection: Connection) -> bool:
            return len(self.connections) == 0

        @callable
        def let(self, number: int, readonly: bool) -> None:
            self.connections[number].readonly = readonly

    server = await serve(Guarded)
    tab = await server.tab(agent="guarded")
    await tab.opened()
    other = await server.tab(agent="guarded")
    await other.opened()
    assert (await call(tab, "add", 1))["error"] == "Connection is readonly"
    assert (await call(other, "add", 1))["result"] == {"count": 1}
    await call(other, "let", 0, False)
    await call(other, "let", 1, True)
    assert (await call(tab, "add", 1))["result"] == {"count": 2}
    assert (await call(other, "add", 1))["error"] == "Connection is readonly"


@requirement("engine:141")
async def test_the_state_outlives_a_restart_and_a_damaged_one_is_the_initial_one(
    serve: Serve, log: ErrorLog, tmp_path: Path
) -> None:
    server = await serve(Counter)
    tab = await server.tab(agent="counter")
    await call(tab, "add", 5)
    await server.stop()

    server = await serve(Counter)
    tab = await server.tab(agent="counter")
    await tab.opened()
    assert states(tab) == [{"count": 5}]
    await server.stop()

    with sqlite3.connect(tmp_path / "perdure.db") as database:
        assert database.execute("update kv set body = '{\"count\":' where key = 'state'").rowcount == 1
    database.close()
    server = await serve(Counter)
    tab = await server.tab(agent="counter")
    await tab.opened()
    assert states(tab) == [{"count": 0}]
    assert (await call(tab, "add", 2))["result"] == {"count": 2}
    log.expect("The stored value 'state' is damaged")


async def test_a_state_without_json_form_is_refused_and_a_copy_is_no_state(serve: Serve) -> None:
    class Careless(Counter):
        @callable
        def spoil(self) -> Any:
            self.state["count"] = 99
            self.set_state({"count": object()})

    server = await serve(Careless)
    tab = await server.tab(agent="careless")
    assert "unsupported" in (await call(tab, "spoil"))["error"]
    assert (await call(tab, "look"))["result"] == {"count": 0}


@requirement("engine:27")
async def test_a_configuration_is_kept_for_the_server_alone(serve: Serve) -> None:
    class Configured(Agent):
        def on_start(self) -> None:
            if self.get_config() is None:
                self.configure({"starts": 0})
            self.configure({"starts": self.get_config()["starts"] + 1})

        @callable
        def config(self) -> Any:
            self.get_config()["starts"] = 99
            return self.get_config()

    for starts in (1, 2):
        server = await serve(Configured)
        tab = await server.tab(agent="configured")
        assert (await call(tab, "config"))["result"] == {"starts": starts}
        assert states(tab) == []
        await server.stop()
