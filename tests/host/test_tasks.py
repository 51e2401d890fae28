"""Tasks that end with their owner."""

import asyncio
import logging

import pytest

from perdure.host.tasks import Tasks

pytestmark = pytest.mark.anyio


async def test_a_task_that_fails_is_logged_and_takes_no_other_along(caplog: pytest.LogCaptureFixture) -> None:
    tasks, done = Tasks(), asyncio.Event()

    async def fail() -> None:
        raise ValueError("broken")

    async def go_on() -> None:
        await asyncio.sleep(0)
        done.set()

    tasks.spawn(fail(), "the first")
    tasks.spawn(go_on(), "the second")
    await done.wait()
    await tasks.close()
    (record,) = caplog.records
    assert (record.levelno, record.getMessage()) == (logging.ERROR, "The task 'the first' failed")
    assert record.exc_info is not None
    assert str(record.exc_info[1]) == "broken"


async def test_closing_cancels_all_and_waits_for_their_end(caplog: pytest.LogCaptureFixture) -> None:
    tasks, started, ended = Tasks(), asyncio.Event(), asyncio.Event()

    async def last_words() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            ended.set()

    async def endless() -> None:
        started.set()
        try:
            await asyncio.Event().wait()
        finally:
            await asyncio.sleep(0)
            tasks.spawn(last_words(), "begun while closing")

    tasks.spawn(endless(), "endless")
    await started.wait()
    before = asyncio.all_tasks()
    await tasks.close()
    assert asyncio.all_tasks() < before
    assert caplog.records == []
    assert ended.is_set(), "a task that begins while all are closed is closed as well"


async def test_closing_without_tasks_is_nothing() -> None:
    tasks = Tasks()
    await tasks.close()
    await tasks.close()


async def test_a_task_has_the_name_it_was_given() -> None:
    tasks, named = Tasks(), asyncio.Event()

    async def look() -> None:
        task = asyncio.current_task()
        assert task is not None
        if task.get_name() == "turn R1 of a/b":
            named.set()

    tasks.spawn(look(), "turn R1 of a/b")
    await named.wait()
    await tasks.close()
