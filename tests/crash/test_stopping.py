"""A server that is told to stop, one that finds its folder in use, and code that would take it along."""

from __future__ import annotations

import asyncio
import signal
from pathlib import Path

import pytest

from tests.crash.conftest import Start
from tests.crash.consistency import INTERRUPTED, check_consistent, check_goes_on, offered, text_so_far
from tests.crash.process import process
from tests.support import user_message

pytestmark = pytest.mark.anyio

GRACE = 10
"""Seconds in which a server must be gone."""


@pytest.mark.parametrize("sent", [signal.SIGTERM, signal.SIGINT])
async def test_told_to_stop_in_mid_stream_it_keeps_everything_that_was_streamed(start: Start, asked, sent: int) -> None:
    server = await start()
    tab = await server.tab()
    question = user_message("hang 10")
    await tab.ask("r1", question)
    await tab.delta("r1", "9 ")
    streamed = text_so_far(tab, "r1")
    async with asyncio.timeout(GRACE):
        await server.terminate(sent)
    assert tab.closed is not None
    assert tab.closed[0] == 1012
    assert not [frame for frame in tab.of("r1") if frame["done"]], "the turn has not ended: it can go on"

    server = await start()
    messages = await server.stored()
    check_consistent(messages, [question], streamed)
    assert messages[1]["parts"][-1]["text"] == streamed, "there was time to store it all"
    late = await server.tab()
    assert (await offered(late))["body"] == INTERRUPTED
    await check_goes_on(server, late, asked)


@pytest.mark.parametrize("name", ["hangs", "blocks"])
async def test_told_to_stop_it_waits_for_no_tool(start: Start, asked, name: str) -> None:
    server = await start()
    tab = await server.tab()
    question = user_message(f"tool {name}")
    await tab.ask("r1", question)
    await tab.seen(lambda frame: '"tool-input-available"' in frame.get("body", ""))
    await server.stored()
    async with asyncio.timeout(GRACE):
        await server.terminate()

    server = await start()
    messages = await server.stored()
    check_consistent(messages, [question])
    await check_goes_on(server, await server.tab(), asked)


async def test_told_to_stop_it_waits_for_no_tab_that_does_not_read(start: Start) -> None:
    server = await start()
    tab, silent = await server.tab(), await server.tab()
    silent.stop_reading()
    await tab.ask("r1", "say 2000")
    await tab.done("r1")
    async with asyncio.timeout(GRACE):
        assert await server.terminate() in {0, -signal.SIGTERM}
    assert [message["role"] for message in await (await start()).stored()] == ["user", "assistant"]


async def test_a_second_server_on_the_folder_says_why_it_does_not_start(start: Start, folder: Path) -> None:
    first = await start()
    tab = await first.tab()
    await tab.ask("r1", "say 3")
    await tab.done("r1")
    async with process(folder) as second:
        assert await second.ended() != 0
        lines = second.log().strip().splitlines()
    assert f"The data folder {folder} is in use by another perdure process." in lines[0]
    assert len(lines) <= 2, lines

    await tab.ask("r2", "say 4")
    assert (await tab.done("r2"))["outcome"] == "completed"


async def test_a_tool_that_wants_to_end_the_process_ends_its_call_only(start: Start, asked) -> None:
    server = await start()
    tab = await server.tab()
    server.expects_traceback = True  # of the tool, in a warning
    await tab.ask("r1", "tool leaves")
    assert (await tab.done("r1"))["outcome"] in {"completed", "error"}
    await check_goes_on(server, tab, asked)
