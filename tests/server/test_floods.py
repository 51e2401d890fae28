"""Clients that take too much: too many frames, too many connections, frames that are too large."""

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from perdure import Agent, App, ConfigurationError, Limits
from perdure.server.rate import TokenBucket
from tests.support import Tab, serving_app

pytestmark = pytest.mark.anyio

KIB = 1024


class Counting(Agent):
    """Counts what it is sent."""

    got: list[str] = []
    gone: asyncio.Event

    def on_start(self) -> None:
        type(self).got = []
        type(self).gone = asyncio.Event()

    def on_message(self, connection: Any, text: str) -> None:
        self.got.append(text)
        connection.send(json.dumps({"type": "got", "n": len(self.got)}))

    def on_close(self, connection: Any) -> None:
        self.gone.set()


async def ping(tab: Tab) -> None:
    seen = len(tab.frames)
    await tab.send("ping")
    await tab.next(lambda frame: frame["type"] == "got", since=seen)


async def test_a_connection_that_floods_is_closed_for_good_and_the_others_go_on(tmp_path: Path) -> None:
    app = App(Counting, data=tmp_path, limits=Limits(rate=0.001, burst=20))
    async with serving_app(app) as server:
        flooding, calm = await server.tab(agent="counting"), await server.tab(agent="counting")
        await flooding.opened()
        await calm.opened()
        for number in range(200):
            await flooding.send(f"flood {number}")
        code, reason = await flooding.ended()
        assert code == 1008, "a client that comes back would go on flooding"
        assert "frames per second" in reason
        await Counting.gone.wait()
        assert Counting.got == [f"flood {number}" for number in range(20)], (
            "what was within the limit arrived, in order"
        )
        await ping(calm)


async def test_the_usual_limits_let_a_page_come_back_with_all_it_had_to_say(tmp_path: Path) -> None:
    async with serving_app(App(Counting, data=tmp_path)) as server:
        tab = await server.tab(agent="counting")
        for number in range(900):
            await tab.send(f"{number}")
        await tab.seen(lambda frame: frame.get("n") == 900)
        assert tab.closed is None


def test_a_bucket_lets_the_burst_through_and_then_the_rate() -> None:
    bucket = TokenBucket(rate=10, burst=5, now=100.0)
    assert [bucket.take(100.0) for _ in range(7)] == [True] * 5 + [False] * 2
    assert [bucket.take(100.2), bucket.take(100.2), bucket.take(100.2)] == [True, True, False]
    assert [bucket.take(1000.0) for _ in range(7)] == [True] * 5 + [False] * 2, "it never holds more than the burst"
    # exactly at the rate, for long
    bucket = TokenBucket(rate=10, burst=2, now=0.0)
    assert all(bucket.take(step / 10) for step in range(1, 1000))


@pytest.mark.parametrize(
    ("message", "fits"),
    [
        ("x" * 4 * KIB, True),
        ("x" * (4 * KIB + 1), False),
        ("é" * 2 * KIB, True),
        ("é" * (2 * KIB + 1), False),
        ("𝄞" * KIB, True),
        ("𝄞" * (KIB + 1), False),
        (b"x" * 4 * KIB, True),
        (b"x" * (4 * KIB + 1), False),
    ],
)
async def test_the_size_of_a_frame_is_bounded_under_a_server_that_bounds_nothing(
    tmp_path: Path, message: str | bytes, fits: bool
) -> None:
    limits = Limits(window=KIB, upload=KIB, frame=4 * KIB)
    async with serving_app(App(Counting, data=tmp_path, limits=limits)) as server:
        tab, other = await server.tab(agent="counting"), await server.tab(agent="counting")
        await tab.opened()
        await tab.send(message)
        if fits:
            await tab.seen(lambda frame: frame["type"] == "got")
        else:
            code, reason = await tab.ended()
            assert code == 1009
            assert "4096 bytes" in reason
            await Counting.gone.wait()
            assert Counting.got == []
        await ping(other)


async def test_what_follows_a_frame_that_is_too_large_is_not_heard(tmp_path: Path) -> None:
    limits = Limits(window=KIB, upload=KIB, frame=4 * KIB)
    async with serving_app(App(Counting, data=tmp_path, limits=limits)) as server:
        tab = await server.tab(agent="counting")
        await tab.opened()
        for message in ("before", "x" * 5 * KIB, "after", "after that"):
            await tab.send(message)
        assert (await tab.ended())[0] == 1009
        await Counting.gone.wait()
        assert Counting.got == ["before"]


async def test_an_agent_has_only_so_many_connections_and_one_more_comes_back_later(tmp_path: Path) -> None:
    async with serving_app(App(Counting, data=tmp_path, limits=Limits(connections=2))) as server:
        first, second = await server.tab(agent="counting"), await server.tab(agent="counting")
        await first.opened()
        await second.opened()
        code, reason = await (await server.tab(agent="counting")).ended()
        assert code == 1013, "clients try again by themselves"
        assert "too many connections" in reason
        await (await server.tab(agent="counting", name="another")).opened()
        assert (await server.get("/health")).json()["agents"] == 2
        await first.close()
        await Counting.gone.wait()
        third = await server.tab(agent="counting")
        await third.opened()
        await ping(third)


@pytest.mark.parametrize("name", ["backlog", "body", "connections", "rate", "burst", "patience"])
def test_a_limit_that_lets_nothing_through_is_an_error(name: str) -> None:
    for value in (0, -1):
        with pytest.raises(ConfigurationError, match=name):
            Limits(**{name: value})
