"""The queue of turns."""

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from perdure.chat.turns import REMEMBERED, TurnQueue
from tests.requirements import requirement


@requirement("engine:1")
def test_turns_run_one_at_a_time_first_in_first_out() -> None:
    queue = TurnQueue()
    assert [queue.admit(turn) for turn in "abc"] == ["run", "queue", "queue"]
    assert (queue.active, queue.waiting) == ("a", ("b", "c"))
    assert queue.finish("a") == "b"
    assert (queue.active, queue.waiting) == ("b", ("c",))
    assert queue.finish("b") == "c"
    assert queue.finish("c") is None
    assert queue.active is None


@requirement("engine:2", "engine:3")
def test_a_clear_skips_those_that_wait_and_lets_the_one_that_runs_unwind() -> None:
    queue = TurnQueue()
    for turn in "abc":
        queue.admit(turn)
    assert queue.clear() == ("b", "c")
    assert (queue.active, queue.waiting) == ("a", ())
    assert queue.admit("d") == "queue"
    assert queue.finish("a") == "d"


def test_a_clear_of_an_idle_queue_skips_nobody() -> None:
    queue = TurnQueue()
    assert queue.clear() == ()
    assert queue.admit("a") == "run"


def test_a_request_that_comes_twice_is_a_duplicate_whatever_became_of_the_first() -> None:
    queue = TurnQueue(["before"])
    for turn in "abcd":
        queue.admit(turn)
    queue.withdraw("c")
    queue.finish("a")
    assert [queue.admit(turn) for turn in ("before", "a", "b", "c", "d")] == ["duplicate"] * 5
    queue.clear()
    assert queue.admit("d") == "duplicate"
    assert (queue.active, queue.waiting) == ("b", ())


def test_only_a_turn_that_waits_can_be_withdrawn() -> None:
    queue = TurnQueue()
    for turn in "abc":
        queue.admit(turn)
    assert queue.withdraw("b") is True
    assert [queue.withdraw(turn) for turn in ("a", "b", "unknown")] == [False] * 3
    assert queue.finish("a") == "c"


def test_only_the_active_turn_can_finish() -> None:
    queue = TurnQueue()
    queue.admit("a")
    queue.admit("b")
    with pytest.raises(AssertionError, match="b is not the active turn"):
        queue.finish("b")
    assert (queue.active, queue.waiting) == ("a", ("b",))


def test_the_turns_that_finished_last_are_remembered_and_older_ones_forgotten() -> None:
    queue = TurnQueue(str(number) for number in range(REMEMBERED + 1))
    assert queue.admit("1") == "duplicate"
    assert queue.admit("0") == "run"


class AnyUse(RuleBasedStateMachine):
    """The queue against a list and a set."""

    ids = st.integers(0, 15).map(str)

    def __init__(self) -> None:
        super().__init__()
        self.queue = TurnQueue()
        self.turns: list[str] = []
        """All that are not over; the first is active."""
        self.over: set[str] = set()
        self.started: list[str] = []
        self.admitted: list[str] = []

    @rule(turn=ids)
    def admit(self, turn: str) -> None:
        known = turn in self.turns or turn in self.over
        expected = "duplicate" if known else "queue" if self.turns else "run"
        assert self.queue.admit(turn) == expected
        if not known:
            self.turns.append(turn)
            self.admitted.append(turn)
            if expected == "run":
                self.started.append(turn)

    @rule()
    def finish(self) -> None:
        if self.turns:
            active = self.turns.pop(0)
            self.over.add(active)
            following = self.queue.finish(active)
            assert following == (self.turns[0] if self.turns else None)
            if following is not None:
                self.started.append(following)

    @rule(turn=ids)
    def withdraw(self, turn: str) -> None:
        waits = turn in self.turns[1:]
        assert self.queue.withdraw(turn) is waits
        if waits:
            self.turns.remove(turn)
            self.over.add(turn)
            self.admitted.remove(turn)

    @rule()
    def clear(self) -> None:
        dropped = self.turns[1:]
        assert list(self.queue.clear()) == dropped
        del self.turns[1:]
        self.over.update(dropped)
        self.admitted = [turn for turn in self.admitted if turn not in dropped]

    @invariant()
    def at_most_one_is_active(self) -> None:
        assert self.queue.active == (self.turns[0] if self.turns else None)
        assert list(self.queue.waiting) == self.turns[1:]

    @invariant()
    def turns_start_in_the_order_of_their_admission(self) -> None:
        assert self.started == self.admitted[: len(self.started)]


AnyUse.TestCase.settings = settings(max_examples=60, stateful_step_count=30, deadline=None)
TestAnyUse = AnyUse.TestCase
