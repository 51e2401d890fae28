"""Methods that clients call: which they may, what they are answered, and streams of replies."""

import asyncio
from collections.abc import AsyncGenerator, Generator
from typing import Any

import pytest

from perdure import Agent, ConfigurationError, ReplyStream, Think, callable, current_connection, tool
from perdure.testing import Gate
from tests.requirements import requirement
from tests.support import Frame, Serve, Tab

pytestmark = pytest.mark.anyio


class Desk(Agent):
    """Methods of every kind."""

    gate = Gate()
    closed: asyncio.Event
    seen: list[Any]

    @callable
    def add_note(self, text: str, pin: bool = False) -> dict[str, Any]:
        return {"text": text, "pin": pin}

    @callable
    async def wait_for(self, value: Any) -> Any:
        await self.gate.passed()
        return value

    @callable
    def nothing(self) -> None:
        return None

    @callable
    def null(self) -> str | None:
        return None

    @callable
    def unsaid(self):
        return None

    @callable()
    def fail(self, text: str) -> None:
        raise ValueError(text)

    @callable
    def opaque(self) -> Any:
        return object()

    @callable
    async def count(self, to: int) -> AsyncGenerator[int, None]:
        for number in range(to):
            yield number
        if to > 3:
            raise ValueError("too far")

    @callable
    def count_plainly(self, to: int) -> Generator[int, None, None]:
        yield from range(to)

    @callable
    async def stream(self, replies: ReplyStream, to: int, end: str) -> str:
        for number in range(to):
            assert replies.send(number)
        match end:
            case "value":
                assert replies.end("last")
            case "nothing":
                replies.end()
            case "error":
                replies.error("gave up")
            case "raise":
                raise ValueError("broke")
        self.seen += [replies.closed, replies.send(99), replies.end(), replies.error("again")]
        return "never sent"

    @callable
    async def endless(self) -> AsyncGenerator[int, None]:
        try:
            yield 0
            await self.gate.passed()
            while True:
                yield 1
        finally:
            self.closed.set()

    @callable
    def who(self) -> Any:
        connection = current_connection.get()
        return None if connection is None else connection.id

    @callable
    @tool
    def both(self, a: int) -> int:
        """A tool that clients may call as well."""
        return a + 1

    def unmarked(self) -> str:
        raise AssertionError("it was called")

    def _private(self) -> str:
        raise AssertionError("it was called")


class Younger(Desk):
    """Overrides a marked method, and takes one away."""

    def add_note(self, text: str, pin: bool = False) -> dict[str, Any]:
        return {"younger": text}

    fail = None  # type: ignore[assignment]


@pytest.fixture
def desk() -> type[Desk]:
    return type("Desk", (Desk,), {"gate": Gate(), "closed": asyncio.Event(), "seen": []})


async def replies_to(tab: Tab, method: str, *args: Any, id: str = "c1") -> list[Frame]:
    """All replies to a call, without what they have in common."""
    await tab.send({"type": "rpc", "id": id, "method": method, "args": list(args)})
    await tab.seen(lambda f: f["type"] == "rpc" and f["id"] == id and (f.get("done") or not f["success"]))
    found = [frame for frame in tab.frames if frame["type"] == "rpc" and frame["id"] == id]
    return [{key: value for key, value in frame.items() if key not in {"type", "id"}} for frame in found]


def result(value: Any) -> list[Frame]:
    return [{"success": True, "done": True, "result": value}]


def failure(text: str) -> list[Frame]:
    return [{"success": False, "error": text}]


@requirement("protocol:28", "engine:142")
@pytest.mark.parametrize("name", ["add_note", "addNote"])
async def test_a_call_is_answered_with_the_result(serve: Serve, desk: type[Desk], name: str) -> None:
    tab = await (await serve(desk)).tab(agent="desk")
    assert await replies_to(tab, name, "milk", True) == result({"text": "milk", "pin": True})


@requirement("protocol:28")
async def test_what_a_subclass_makes_of_a_method_counts(serve: Serve) -> None:
    tab = await (await serve(type("Desk", (Younger,), {}))).tab(agent="desk")
    assert await replies_to(tab, "addNote", "milk") == result({"younger": "milk"})
    assert await replies_to(tab, "fail", "x", id="c2") == failure("Method fail does not exist")


@requirement("protocol:29")
async def test_nothing_is_no_result_and_none_is_null(serve: Serve, desk: type[Desk]) -> None:
    tab = await (await serve(desk)).tab(agent="desk")
    assert await replies_to(tab, "nothing", id="c1") == [{"success": True, "done": True}]
    assert await replies_to(tab, "null", id="c2") == result(None)
    assert await replies_to(tab, "unsaid", id="c3") == result(None)


@requirement("protocol:30", "engine:142", "fault:SC-07")
@pytest.mark.parametrize(
    ("name", "error"),
    [
        ("zzz", "Method zzz does not exist"),
        ("unmarked", "Method unmarked is not callable"),
        ("_private", "Method _private is not callable"),
        ("__init__", "Method __init__ is not callable"),
        ("set_state", "Method set_state is not callable"),
        ("on_start", "Method on_start is not callable"),
        ("state", "Method state does not exist"),
        ("gate", "Method gate does not exist"),
        ("setState", "Method setState does not exist"),
        ("constructor", "Method constructor does not exist"),
        ("toString", "Method toString does not exist"),
        ("__class__", "Method __class__ is not callable"),
        ("add_note.__func__", "Method add_note.__func__ does not exist"),
        ("", "Method  does not exist"),
    ],
)
async def test_only_marked_methods_can_be_called(serve: Serve, desk: type[Desk], name: str, error: str) -> None:
    tab = await (await serve(desk)).tab(agent="desk")
    assert await replies_to(tab, name) == failure(error)
    assert await replies_to(tab, "addNote", "ok", id="c2") == result({"text": "ok", "pin": False})


@requirement("engine:142", "fault:SC-07")
async def test_a_chat_agent_has_no_callable_methods_of_its_own(serve: Serve) -> None:
    class Chatty(Think):
        model = "demo"

    tab = await (await serve(Chatty)).tab(agent="chatty")
    for number, name in enumerate(dir(Chatty)):
        (reply,) = await replies_to(tab, name, id=f"c{number}")
        assert reply["success"] is False


@requirement("protocol:31")
async def test_what_a_method_raises_is_told_to_its_caller(serve: Serve, desk: type[Desk]) -> None:
    tab = await (await serve(desk)).tab(agent="desk")
    assert await replies_to(tab, "fail", "no milk", id="c1") == failure("no milk")
    assert await replies_to(tab, "fail", "", id="c2") == failure("ValueError")
    ((reply),) = await replies_to(tab, "opaque", id="c3")
    assert "unsupported" in reply["error"]
    ((reply),) = await replies_to(tab, "addNote", id="c4")
    assert "missing 1 required positional argument" in reply["error"]


@requirement("protocol:32")
@pytest.mark.parametrize("method", ["count", "countPlainly"])
async def test_a_generator_streams_its_values(serve: Serve, desk: type[Desk], method: str) -> None:
    tab = await (await serve(desk)).tab(agent="desk")
    assert await replies_to(tab, method, 3, id="c1") == [
        *({"success": True, "done": False, "result": number} for number in range(3)),
        {"success": True, "done": True},
    ]
    assert await replies_to(tab, method, 0, id="c2") == [{"success": True, "done": True}]


@requirement("protocol:32", "protocol:33", "engine:142")
@pytest.mark.parametrize(
    ("end", "last"),
    [
        ("value", {"success": True, "done": True, "result": "last"}),
        ("nothing", {"success": True, "done": True}),
        ("error", {"success": False, "error": "gave up"}),
        ("raise", {"success": False, "error": "broke"}),
    ],
)
async def test_a_method_that_takes_the_stream_sends_until_it_ends(
    serve: Serve, desk: type[Desk], end: str, last: Frame
) -> None:
    tab = await (await serve(desk)).tab(agent="desk")
    wanted = [{"success": True, "done": False, "result": number} for number in range(2)]
    assert await replies_to(tab, "stream", 2, end, id="c1") == [*wanted, last]
    # What is sent after the end would be here by now.
    assert await replies_to(tab, "nothing", id="c2") == [{"success": True, "done": True}]
    assert len([frame for frame in tab.frames if frame.get("id") == "c1"]) == 3
    assert desk.seen == ([] if end == "raise" else [True, False, False, False])


@requirement("protocol:33")
async def test_a_generator_that_raises_ends_with_one_error(serve: Serve, desk: type[Desk]) -> None:
    tab = await (await serve(desk)).tab(agent="desk")
    *values, last = await replies_to(tab, "count", 4)
    assert [value["result"] for value in values] == [0, 1, 2, 3]
    assert last == {"success": False, "error": "too far"}


@requirement("protocol:34")
async def test_calls_that_overlap_are_answered_each_when_it_is_done(serve: Serve, desk: type[Desk]) -> None:
    server = await serve(desk)
    tab, other = await server.tab(agent="desk"), await server.tab(agent="desk")
    for seen, id in ((tab, "a"), (tab, "b"), (other, "a")):
        await seen.send({"type": "rpc", "id": id, "method": "waitFor", "args": [[id, seen is tab]]})
    await desk.gate.reached()
    assert await replies_to(tab, "addNote", "quick", id="c") == result({"text": "quick", "pin": False})
    assert "a" not in [frame.get("id") for frame in tab.frames]
    desk.gate.open()
    for seen, id in ((tab, "a"), (tab, "b"), (other, "a")):
        reply = await seen.seen(lambda frame, id=id: frame.get("id") == id)
        assert reply["result"] == [id, seen is tab]
    assert "b" not in [frame.get("id") for frame in other.frames]


@requirement("protocol:35", "fault:SC-07")
@pytest.mark.parametrize(
    "frame",
    [
        {"id": "c1", "method": "addNote"},
        {"id": "c1", "method": "addNote", "args": None},
        {"id": "c1", "method": "addNote", "args": {"text": "x"}},
        {"method": "addNote", "args": []},
        {"id": "c1", "args": []},
        {"id": 5, "method": "addNote", "args": []},
        {"id": "c1", "method": None, "args": []},
    ],
)
async def test_a_frame_that_is_no_call_gets_no_reply(serve: Serve, desk: type[Desk], frame: Frame) -> None:
    tab = await (await serve(desk)).tab(agent="desk")
    await tab.send({"type": "rpc", **frame})
    assert await replies_to(tab, "who", id="c2")
    assert [f["id"] for f in tab.frames if f["type"] == "rpc"] == ["c2"]


@requirement("protocol:35")
async def test_further_fields_of_a_call_are_passed_over(serve: Serve, desk: type[Desk]) -> None:
    tab = await (await serve(desk)).tab("room?_pk=me", agent="desk")
    await tab.send({"type": "rpc", "id": "c1", "method": "who", "args": [], "extra": {"a": 1}, "done": True})
    reply = await tab.seen(lambda frame: frame["type"] == "rpc")
    assert reply == {"type": "rpc", "id": "c1", "success": True, "done": True, "result": "me"}


@requirement("protocol:37", "engine:142")
async def test_the_answer_to_a_connection_that_is_gone_is_dropped(serve: Serve, desk: type[Desk]) -> None:
    server = await serve(desk)
    tab, other = await server.tab(agent="desk"), await server.tab(agent="desk")
    await tab.send({"type": "rpc", "id": "c1", "method": "waitFor", "args": [1]})
    await desk.gate.reached()
    await tab.close()
    desk.gate.open()
    assert await replies_to(other, "waitFor", 2) == result(2)
    assert [frame["id"] for frame in other.frames if frame["type"] == "rpc"] == ["c1"]


async def test_a_stream_that_nobody_hears_is_closed(serve: Serve, desk: type[Desk]) -> None:
    gone = asyncio.Event()

    def on_close(self: Agent, connection: Any) -> None:
        gone.set()

    server = await serve(type("Desk", (desk,), {"on_close": on_close}))
    tab = await server.tab(agent="desk")
    await tab.send({"type": "rpc", "id": "c1", "method": "endless", "args": []})
    await desk.gate.reached()
    await tab.close()
    await gone.wait()
    desk.gate.open()
    await desk.closed.wait()


async def test_a_tool_can_be_called_by_clients_as_well(serve: Serve, desk: type[Desk]) -> None:
    tab = await (await serve(desk)).tab(agent="desk")
    assert await replies_to(tab, "both", 1) == result(2)


def test_two_methods_with_one_name_for_clients_are_refused() -> None:
    with pytest.raises(ConfigurationError, match=r"Twice\.addNote and Twice\.add_note are both called 'addNote'"):
        type("Twice", (Agent,), {name: callable(lambda self: None) for name in ("add_note", "addNote")})
