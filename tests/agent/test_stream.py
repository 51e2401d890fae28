"""The chunks of a running turn: numbers, replays, checkpoints."""

import asyncio
import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from perdure.agent.stream import INTERVAL, SEGMENT, ChunkLog, LiveStream, bodies_of
from perdure.errors import StorageError
from perdure.storage.contract import AppendChunks, ChunkSegment, Operation
from tests.agent.services import RecordingServices
from tests.protocol.samples import AWKWARD_TEXTS, json_objects
from tests.requirements import requirement

pytestmark = pytest.mark.anyio


def delta(text: str = "x") -> dict[str, Any]:
    return {"type": "text-delta", "id": "0", "delta": text}


def segments(checkpoints: list[list[Operation]]) -> list[tuple[int, int]]:
    """First number and length of each segment that was stored."""
    found: list[tuple[int, int]] = []
    for operations in checkpoints:
        for operation in operations:
            assert isinstance(operation, AppendChunks)
            assert operation.turn == "R1"
            found.append((operation.index, len(json.loads(operation.bodies))))
    return found


@pytest.fixture
def services() -> RecordingServices:
    return RecordingServices()


# ── frames ──────────────────────────────────────────────────────────


@requirement("protocol:47")
async def test_chunks_are_numbered_from_0_and_nothing_else_is(services: RecordingServices) -> None:
    stream = LiveStream("R1", services)
    live = [json.loads(stream.add(delta(str(number)))) for number in range(SEGMENT + 2)]
    assert [frame["seq"] for frame in live] == list(range(SEGMENT + 2))
    others = [
        stream.frames.error("no", ["u1"]),
        stream.frames.terminal("error", ["u1"]),
        stream.frames.replay_complete(),
    ]
    assert all("seq" not in json.loads(frame) for frame in others)


@requirement("protocol:88")
async def test_a_replay_repeats_the_frames_that_were_live(services: RecordingServices) -> None:
    stream = LiveStream("R1", services)
    live = [json.loads(stream.add(delta(text))) for text in AWKWARD_TEXTS]
    replayed = [json.loads(frame) for frame in stream.replay()]
    assert [{**frame, "replay": True} for frame in live] == replayed
    assert [json.loads(frame["body"])["delta"] for frame in replayed] == AWKWARD_TEXTS


@settings(max_examples=40, deadline=None)
@given(st.lists(json_objects(), max_size=3))
def test_a_stored_log_replays_as_the_stream_did(data: list[dict[str, Any]]) -> None:
    stream = LiveStream("R1", RecordingServices())
    for value in data:
        stream.add({"type": "data-x", "data": value})
    stored = [op for op in stream.unstored() if isinstance(op, AppendChunks)]
    again = ChunkLog("R1", bodies_of([ChunkSegment(op.index, op.bodies) for op in stored]))
    assert list(again.replay()) == list(stream.replay())


# ── checkpoints ─────────────────────────────────────────────────────


async def test_a_checkpoint_is_made_after_so_many_chunks(services: RecordingServices) -> None:
    stream = LiveStream("R1", services)
    for number in range(2 * SEGMENT + 5):
        stream.add(delta())
        assert len(services.checkpoints) == (number + 1) // SEGMENT
    assert segments(services.checkpoints) == [(0, SEGMENT), (SEGMENT, SEGMENT)]
    assert segments([stream.unstored()]) == [(2 * SEGMENT, 5)]


async def test_a_checkpoint_is_made_so_long_after_the_first_chunk_that_is_not_stored(
    services: RecordingServices,
) -> None:
    stream = LiveStream("R1", services)
    assert services.timers == []
    stream.add(delta())
    stream.add(delta())
    (timer,) = services.timers
    assert (timer.seconds, INTERVAL, SEGMENT) == (0.25, 0.25, 64)
    timer.ring()
    assert segments(services.checkpoints) == [(0, 2)]
    assert len(services.timers) == 1, "no clock runs while nothing is left to store"
    stream.add(delta())
    services.timers[1].ring()
    assert segments(services.checkpoints) == [(0, 2), (2, 1)]


async def test_a_checkpoint_by_number_starts_the_clock_anew(services: RecordingServices) -> None:
    stream = LiveStream("R1", services)
    for _ in range(SEGMENT):
        stream.add(delta())
    assert services.running_timers == []
    stream.add(delta())
    assert len(services.running_timers) == 1


async def test_what_is_not_stored_is_handed_out_once_and_its_checkpoint_called_off(services: RecordingServices) -> None:
    stream = LiveStream("R1", services)
    assert stream.unstored() == []
    stream.add(delta())
    assert segments([stream.unstored()]) == [(0, 1)]
    assert stream.unstored() == []
    assert services.running_timers == []
    assert services.checkpoints == []


async def test_a_stopped_stream_makes_no_checkpoint_by_itself(services: RecordingServices) -> None:
    stream = LiveStream("R1", services)
    stream.stop()
    stream.add(delta())
    stream.stop()
    assert services.running_timers == []
    assert segments([stream.unstored()]) == [(0, 1)], "its chunks are still there"


# ── waiting until all is stored ─────────────────────────────────────


async def test_a_flush_returns_when_its_chunks_are_durable(services: RecordingServices) -> None:
    stream = LiveStream("R1", services)
    stream.add(delta())
    flushing = asyncio.ensure_future(stream.flush())
    await asyncio.sleep(0)
    assert segments(services.checkpoints) == [(0, 1)]
    assert not flushing.done()
    services.commits[0].set_result(None)
    await flushing


async def test_a_flush_waits_for_a_checkpoint_that_was_made_before(services: RecordingServices) -> None:
    stream = LiveStream("R1", services)
    for _ in range(SEGMENT):
        stream.add(delta())
    flushing = asyncio.ensure_future(stream.flush())
    await asyncio.sleep(0)
    assert not flushing.done(), "all chunks are handed over, and none is durable"
    services.commits[-1].set_result(None)
    await flushing
    assert segments(services.checkpoints) == [(0, SEGMENT)]


async def test_a_flush_that_fails_says_so(services: RecordingServices) -> None:
    stream = LiveStream("R1", services)
    stream.add(delta())
    flushing = asyncio.ensure_future(stream.flush())
    await asyncio.sleep(0)
    services.commits[0].set_exception(StorageError("the disk is full"))
    with pytest.raises(StorageError, match="the disk is full"):
        await flushing


async def test_a_flush_that_is_stopped_leaves_its_commit_to_tell_of_a_failure(services: RecordingServices) -> None:
    stream = LiveStream("R1", services)
    stream.add(delta())
    flushing = asyncio.ensure_future(stream.flush())
    await asyncio.sleep(0)
    flushing.cancel()
    await asyncio.wait([flushing])
    assert not services.commits[0].done()
