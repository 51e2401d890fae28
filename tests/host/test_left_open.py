"""Agents whose turns were left open are woken after a start."""

import anyio
import pytest

from perdure.errors import StorageError
from perdure.host.left_open import AT_ONCE, take_up
from perdure.storage.contract import OpenTurn
from perdure.storage.sqlite import SqliteStore

pytestmark = pytest.mark.anyio


class Waking:
    """Records who is woken, and how many at the same time; nobody comes into memory before ``gate`` opens."""

    def __init__(self) -> None:
        self.keys: list[str] = []
        self.now = self.most = 0
        self.gate = anyio.Event()

    async def __call__(self, key: str) -> None:
        self.keys.append(key)
        self.now += 1
        self.most = max(self.most, self.now)
        await self.gate.wait()
        self.now -= 1


async def test_all_are_woken_a_few_at_a_time_in_the_order_of_their_turns() -> None:
    store = await SqliteStore.temporary()
    keys = [f"bot/{number}" for number in (5, 3, 9, 1, 7, 2, 8)]
    for key in keys:
        await store.write(key, store.epoch, [OpenTurn("t", "running", "ws-chat", "{}", "m", 1)])
    waking = Waking()
    async with anyio.create_task_group() as group:
        group.start_soon(take_up, store, waking)
        while len(waking.keys) < AT_ONCE:
            await anyio.lowlevel.checkpoint()
        assert waking.keys == keys[:AT_ONCE]
        waking.gate.set()
    assert waking.keys == keys
    assert waking.most == AT_ONCE
    await store.close()


async def test_a_store_that_cannot_be_read_leaves_them_to_their_visitors(caplog: pytest.LogCaptureFixture) -> None:
    store = await SqliteStore.temporary()

    async def refuse(query: object) -> list[str]:
        raise StorageError("the disk is gone")

    store.read = refuse  # type: ignore[method-assign,assignment]
    await take_up(store, Waking())
    assert "go on when they are visited: the disk is gone" in caplog.text
    await store.close()
