"""Tools of every kind of function: what they show on the way, how they end, and how they are stopped."""

import asyncio
import functools
import threading
from collections.abc import AsyncGenerator, Generator
from typing import Any

import anyio
import pytest

from perdure import ConfigurationError, Tool, ToolContext, ToolError, tool
from perdure.tools.media import Media

pytestmark = pytest.mark.anyio

CONTEXT = ToolContext(agent=None, tool_call_id="c1", turn_id="t1")


async def counted() -> AsyncGenerator[Any, None]:
    yield 10
    yield {50}
    yield "final"


class Counter:
    async def __call__(self) -> AsyncGenerator[Any, None]:
        async for value in counted():
            yield value


async def run(made: Tool) -> tuple[Any, list[Any]]:
    """The result, and what was shown before."""
    shown: list[Any] = []
    return await made.run({}, CONTEXT, shown.append), shown


@pytest.mark.parametrize(
    "function",
    [counted, functools.partial(counted), Counter(), lambda: counted()],
    ids=["a function", "a partial", "an object", "a function that returns one"],
)
async def test_an_async_generator_shows_each_value_and_gives_the_last(function: Any) -> None:
    assert await run(tool(name="count")(function)) == ("final", [10, [50], "final"])
    assert await tool(name="count")(function).run({}, CONTEXT) == "final"


async def test_a_generator_that_was_awaited_shows_nothing_and_gives_the_last() -> None:
    async def made() -> AsyncGenerator[Any, None]:
        return counted()

    assert await run(tool(made)) == ("final", [])


async def test_a_synchronous_generator_runs_in_a_thread_and_gives_its_last_value() -> None:
    threads: list[int] = []

    def counting() -> Generator[int, None, None]:
        for number in range(3):
            threads.append(threading.get_ident())
            yield number

    async def returning() -> Generator[int, None, None]:
        return counting()

    assert await run(tool(counting)) == (2, [])
    assert await run(tool(returning)) == (2, [])
    assert threading.get_ident() not in threads
    assert len(threads) == 6


async def test_a_generator_without_values_gives_nothing() -> None:
    async def nothing() -> AsyncGenerator[Any, None]:
        return
        yield

    assert await run(tool(nothing)) == (None, [])


@pytest.mark.parametrize("value", [[1, 2], (1, 2), {"a": 1}, "text", 7, None])
async def test_other_results_show_nothing_before(value: Any) -> None:
    _, shown = await run(Tool("give", description="", input_schema={}, execute=lambda input: value))
    assert shown == []


async def test_a_value_without_json_form_ends_the_generator() -> None:
    closed = asyncio.Event()

    async def opaque() -> AsyncGenerator[Any, None]:
        try:
            yield 1
            yield object()
            yield 3
        finally:
            closed.set()

    with pytest.raises(ToolError, match="no JSON form"):
        await run(tool(opaque))
    assert closed.is_set()


async def test_a_cancelled_call_closes_its_generator() -> None:
    started, closed = asyncio.Event(), asyncio.Event()

    async def endless() -> AsyncGenerator[int, None]:
        try:
            yield 1
            started.set()
            await asyncio.Event().wait()
        finally:
            closed.set()

    async with anyio.create_task_group() as group:
        group.start_soon(run, tool(endless))
        await started.wait()
        group.cancel_scope.cancel()
    assert closed.is_set()


async def test_a_call_over_its_time_is_cancelled_and_says_so() -> None:
    cancelled = asyncio.Event()

    @tool(timeout=0.01)
    async def slow() -> None:
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            cancelled.set()
            raise

    with pytest.raises(ToolError, match=r"Tool slow took longer than 0\.01 s and was stopped\."):
        await slow.run({}, CONTEXT)
    assert cancelled.is_set()
    task = asyncio.current_task()
    assert task is not None
    assert task.cancelling() == 0


async def test_a_synchronous_call_over_its_time_is_left_alone() -> None:
    free = threading.Event()
    ended = threading.Event()

    def blocking(input: dict[str, Any]) -> None:
        free.wait(20)
        ended.set()

    made = Tool("blocking", description="", input_schema={}, execute=blocking, timeout=0.5)
    with pytest.raises(ToolError, match="took longer"):
        await made.run({}, CONTEXT)
    assert not ended.is_set()
    free.set()
    assert ended.wait(20)


async def test_a_generator_over_its_time_keeps_what_it_showed_and_fails() -> None:
    @tool(timeout=0.01)
    async def endless() -> AsyncGenerator[int, None]:
        yield 1
        await asyncio.Event().wait()

    shown: list[Any] = []
    with pytest.raises(ToolError, match="took longer"):
        await endless.run({}, CONTEXT, shown.append)
    assert shown == [1]


async def test_a_tools_own_timeout_is_its_own_error() -> None:
    @tool(timeout=20)
    async def impatient() -> None:
        raise TimeoutError("the database is slow")

    with pytest.raises(TimeoutError, match="the database is slow"):
        await impatient.run({}, CONTEXT)


async def test_the_time_of_a_method_holds_for_its_objects_and_under_other_names() -> None:
    class Agent:
        @tool(timeout=0.01)
        async def wait(self) -> None:
            """Waits."""
            await asyncio.Event().wait()

    for made in (Agent().wait, Agent().wait.renamed("other")):
        assert made.timeout == 0.01
        with pytest.raises(ToolError, match="took longer"):
            await made.run({}, CONTEXT)


@pytest.mark.parametrize("timeout", [0, -1, float("nan")])
def test_a_time_that_is_none_is_refused(timeout: float) -> None:
    with pytest.raises(ConfigurationError, match="timeout"):
        tool(timeout=timeout)(lambda: None)
    with pytest.raises(ConfigurationError, match="timeout"):
        Tool("x", description="", input_schema={}, execute=lambda input: None, timeout=timeout)


PNG = b"\x89PNG\r\n\x1a\n0"


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (Media(PNG), "data:image/png;base64,iVBORw0KGgow"),
        (Media(b"RIFF0000WEBP"), "data:image/webp;base64,UklGRjAwMDBXRUJQ"),
        (Media(b"ID3", "audio/mpeg"), "data:audio/mpeg;base64,SUQz"),
        ({"shot": Media(PNG), "at": 3}, {"shot": "data:image/png;base64,iVBORw0KGgow", "at": 3}),
        ([Media(b"x")], ["data:application/octet-stream;base64,eA=="]),
    ],
)
async def test_a_file_becomes_a_data_url(value: Any, expected: Any) -> None:
    assert (await run(tool(name="shoot")(lambda: value)))[0] == expected
