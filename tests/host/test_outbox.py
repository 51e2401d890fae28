"""The ordered outbox: effects after commit."""

import asyncio
import gc
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from perdure.errors import StorageError
from perdure.host.outbox import Outbox
from perdure.storage.contract import Commit

pytestmark = pytest.mark.anyio


class Box:
    """An outbox, what came out of it, and how often it reported a failure."""

    def __init__(self) -> None:
        self.sent: list[tuple[Sequence[int], str]] = []
        self.failures: list[BaseException] = []
        self.outbox = Outbox(lambda peers, frame: self.sent.append((peers, frame)), self.failures.append)

    @property
    def frames(self) -> list[str]:
        return [frame for _, frame in self.sent]

    def send(self, *frames: str) -> None:
        for frame in frames:
            self.outbox.send((1,), frame)

    def hold(self) -> Commit:
        commit = asyncio.get_running_loop().create_future()
        self.outbox.hold(commit)
        return commit


@pytest.fixture
async def box() -> Box:
    return Box()


async def turn() -> None:
    """Let callbacks run that are due."""
    for _ in range(3):
        await asyncio.sleep(0)


async def test_a_frame_goes_out_at_once_when_nothing_is_being_written(box: Box) -> None:
    box.outbox.send((1, 2), "a")
    assert box.sent == [((1, 2), "a")]


async def test_a_frame_for_nobody_is_no_frame(box: Box) -> None:
    box.hold()
    box.outbox.send((), "a")
    box.outbox.send([], "b")
    assert box.sent == []


async def test_a_frame_waits_for_every_write_before_it(box: Box) -> None:
    first = box.hold()
    box.send("a")
    second = box.hold()
    box.send("b")
    second.set_result(None)
    await turn()
    assert box.frames == [], "neither passes the first write"
    first.set_result(None)
    await turn()
    assert box.frames == ["a", "b"]
    box.send("c")
    assert box.frames == ["a", "b", "c"]


async def test_frames_between_two_writes_go_out_with_the_first(box: Box) -> None:
    first = box.hold()
    box.send("a", "b")
    second = box.hold()
    box.send("c")
    first.set_result(None)
    await turn()
    assert box.frames == ["a", "b"]
    second.set_result(None)
    await turn()
    assert box.frames == ["a", "b", "c"]


async def test_a_frame_does_not_pass_one_that_waits_though_its_own_write_is_done(box: Box) -> None:
    first, second = box.hold(), box.hold()
    box.send("a")
    first.set_result(None)
    second.set_result(None)
    box.send("b")
    assert box.frames == []
    await turn()
    assert box.frames == ["a", "b"]


async def test_a_frame_that_is_sent_because_another_went_out_goes_after_those_that_wait(box: Box) -> None:
    def send(peers: Sequence[int], frame: str) -> None:
        box.sent.append((peers, frame))
        if frame == "a":
            outbox.send((1,), "answer")

    outbox = Outbox(send, box.failures.append)
    commit: Commit = asyncio.get_running_loop().create_future()
    outbox.hold(commit)
    outbox.send((1,), "a")
    outbox.send((1,), "b")
    commit.set_result(None)
    await turn()
    assert box.frames == ["a", "b", "answer"]


async def test_a_write_that_was_done_before_holds_nothing_up_for_long(box: Box) -> None:
    commit: Commit = asyncio.get_running_loop().create_future()
    commit.set_result(None)
    box.outbox.hold(commit)
    box.send("a")
    await turn()
    assert box.frames == ["a"]


async def test_a_call_is_made_in_its_place_among_the_frames(box: Box) -> None:
    box.outbox.then(lambda: box.sent.append(((), "at once")))
    commit = box.hold()
    box.send("a")
    box.outbox.then(lambda: box.sent.append(((), "call")))
    box.send("b")
    assert box.frames == ["at once"]
    commit.set_result(None)
    await turn()
    assert box.frames == ["at once", "a", "call", "b"]
    box.outbox.close()
    box.outbox.then(lambda: box.sent.append(((), "never")))
    assert "never" not in box.frames


# ── failures ────────────────────────────────────────────────────────


async def test_a_failed_write_stops_everything_behind_it_and_is_reported_once(box: Box) -> None:
    before, failing, after = box.hold(), box.hold(), box.hold()
    error = StorageError("the disk is full")
    before.set_result(None)
    box.send("a")
    failing.set_exception(error)
    after.set_exception(StorageError("an earlier one failed"))
    await turn()
    box.send("b")
    later = box.hold()
    later.set_exception(StorageError("again"))
    box.send("c")
    await turn()
    assert box.frames == []
    assert box.failures == [error]


async def test_what_was_due_before_the_failed_write_goes_out(box: Box) -> None:
    first = box.hold()
    box.send("a")
    failing = box.hold()
    box.send("b")
    failing.set_exception(StorageError("the disk is full"))
    await turn()
    assert (box.frames, box.failures) == ([], []), "the failure waits for its turn as well"
    first.set_result(None)
    await turn()
    assert box.frames == ["a"]
    assert len(box.failures) == 1


async def test_a_closed_outbox_forgets_what_waits_and_reports_nothing(box: Box) -> None:
    commit = box.hold()
    box.send("a")
    box.outbox.close()
    commit.set_exception(StorageError("the disk is full"))
    box.send("b")
    await turn()
    assert (box.frames, box.failures) == ([], [])


async def test_no_failure_is_left_for_the_event_loop_to_complain_about(box: Box) -> None:
    complaints: list[dict[str, Any]] = []
    asyncio.get_running_loop().set_exception_handler(lambda _, context: complaints.append(context))
    for _ in range(2):
        box.hold().set_exception(StorageError("the disk is full"))
    await turn()
    box.hold().set_exception(StorageError("the disk is full"))
    await turn()
    gc.collect()
    assert complaints == []


async def test_a_frame_that_closes_the_outbox_is_the_last(box: Box) -> None:
    def send(peers: Sequence[int], frame: str) -> None:
        box.sent.append((peers, frame))
        outbox.close()

    outbox = Outbox(send, box.failures.append)
    commit: Commit = asyncio.get_running_loop().create_future()
    outbox.hold(commit)
    outbox.send((1,), "a")
    outbox.send((1,), "b")
    commit.set_result(None)
    await turn()
    assert box.frames == ["a"]


# ── any interleaving ────────────────────────────────────────────────


@settings(max_examples=60, deadline=None)
@given(st.lists(st.sampled_from(["send", "hold", "done", "turn"]), max_size=30), st.randoms(use_true_random=False))
def test_the_order_is_kept_whatever_the_order_of_the_writes(events: list[str], chance: Any) -> None:
    async def play() -> None:
        box = Box()
        commits: list[Commit] = []
        needed: dict[str, int] = {}
        for number, event in enumerate(events):
            if event == "send":
                needed[str(number)] = len(commits)
                box.send(str(number))
            elif event == "hold":
                commits.append(box.hold())
            elif event == "done" and (pending := [commit for commit in commits if not commit.done()]):
                chance.choice(pending).set_result(None)
            elif event == "turn":
                await turn()
            assert box.frames == list(needed)[: len(box.frames)], "in order, each once"
            assert all(commit.done() for frame in box.frames for commit in commits[: needed[frame]])
        for commit in commits:
            if not commit.done():
                commit.set_result(None)
        await turn()
        assert box.frames == list(needed)

    asyncio.run(play())
