"""Which submits lose their turn when others come while they wait."""

import math
from dataclasses import dataclass
from typing import Any

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from perdure import ConfigurationError, Debounce
from perdure.chat.concurrency import Decision, Strategy, Submits, strategy_of
from perdure.chat.turns import TurnQueue
from tests.requirements import requirement

THINNING: list[Strategy] = ["latest", "merge", Debounce(300)]


@pytest.mark.parametrize("name", ["queue", "latest", "merge", "drop"])
def test_a_strategy_is_said_by_its_name(name: str) -> None:
    assert strategy_of(name, "Agent") == name


@pytest.mark.parametrize(
    ("said", "ms"),
    [
        (Debounce(), 750),
        (Debounce(ms=300), 300),
        ({"strategy": "debounce"}, 750),
        ({"strategy": "debounce", "debounceMs": 0}, 0),
        ({"strategy": "debounce", "debounceMs": 1.5}, 1.5),
        ({"strategy": "debounce", "debounceMs": None}, 750),
    ],
)
def test_debounce_is_said_by_an_object_or_as_in_typescript(said: Any, ms: float) -> None:
    assert strategy_of(said, "Agent") == Debounce(ms)


@requirement("fault:CO-05")
@pytest.mark.parametrize("bad", [-1, math.nan, math.inf, "x", "300", None, True, [300], 10**400])
def test_what_is_no_time_counts_as_750_ms(bad: Any) -> None:
    assert Debounce(bad).ms == 750


@pytest.mark.parametrize(
    "said",
    [
        *["", "Latest", "debounce", None, 5, ["latest"], Debounce],
        *[{}, {"strategy": "latest"}, {"debounceMs": 3}, {"strategy": "debounce", "debounce_ms": 300}],
    ],
)
def test_anything_else_is_refused_with_the_choices(said: Any) -> None:
    with pytest.raises(ConfigurationError) as error:
        strategy_of(said, "Searcher")
    for choice in ("Searcher.message_concurrency", '"queue"', '"latest"', '"merge"', '"drop"', "Debounce(ms=750)"):
        assert choice in str(error.value)


@requirement("protocol:103")
@pytest.mark.parametrize("strategy", [*THINNING, "queue", "drop"])
def test_what_meets_an_idle_agent_is_taken_and_never_loses_its_turn(strategy: Strategy) -> None:
    submits = Submits()
    assert submits.decide("a", strategy, overlaps=False, now_ms=0) == Decision()
    assert submits.decide("b", "latest", overlaps=True, now_ms=0) == Decision(leaves_out=True)
    assert not submits.is_superseded("a")


@pytest.mark.parametrize("strategy", THINNING)
def test_of_a_burst_the_last_one_stays(strategy: Strategy) -> None:
    submits = Submits()
    decisions = [submits.decide(turn, strategy, overlaps=True, now_ms=0) for turn in "bcd"]
    assert [decision.supersedes for decision in decisions] == [None, "b", "c"]
    assert [submits.is_superseded(turn) for turn in "bcd"] == [True, True, False]
    assert [decision.leaves_out for decision in decisions] == [strategy != "merge"] * 3


def test_one_that_has_begun_keeps_its_turn() -> None:
    submits = Submits()
    submits.decide("b", "latest", overlaps=True, now_ms=0)
    assert submits.begin("b")
    assert submits.decide("c", "latest", overlaps=True, now_ms=0).supersedes is None
    assert not submits.is_superseded("b")


def test_one_that_has_lost_its_turn_cannot_begin_and_stays_so_when_the_other_is_stopped() -> None:
    submits = Submits()
    for turn in "bc":
        submits.decide(turn, "latest", overlaps=True, now_ms=0)
    submits.end("c")
    assert submits.is_superseded("b")
    assert not submits.begin("b")
    assert submits.decide("d", "latest", overlaps=True, now_ms=0).supersedes is None


def test_quiet_is_counted_from_each_submit() -> None:
    submits = Submits()
    untils = [submits.decide(turn, Debounce(300.2), overlaps=True, now_ms=now).quiet_until for turn, now in ENTRIES]
    assert untils == [1301, 1401]


ENTRIES = [("b", 1000), ("c", 1100)]


@requirement("engine:103")
def test_after_a_clear_nobody_has_lost_a_turn() -> None:
    submits = Submits()
    for turn in "bc":
        submits.decide(turn, "latest", overlaps=True, now_ms=0)
    submits.clear()
    for turn in "bbc":
        submits.end(turn)  # they end later, and once is as good as twice
    assert not submits.is_superseded("b")
    assert submits.decide("d", "latest", overlaps=True, now_ms=0).supersedes is None


@dataclass
class Asked:
    """A turn as the plain model knows it."""

    id: str
    strategy: Strategy | None
    """``None``: exempt."""
    overlapped: bool = False
    superseded: bool = False
    begun: bool = False
    cleared: bool = False


class AnyUse(RuleBasedStateMachine):
    """The queue and the submits, used as an agent uses them, beside a list of everything."""

    strategies = st.sampled_from([*THINNING, "queue", "drop", None])

    def __init__(self) -> None:
        super().__init__()
        self.queue = TurnQueue()
        self.submits = Submits()
        self.now = 0
        self.count = 0
        self.open: list[Asked] = []
        """Those that are not over; the first has the slot."""
        self.answered: list[str] = []
        self.skipped: list[Asked] = []

    @rule(strategy=strategies, wait=st.integers(0, 500))
    def ask(self, strategy: Strategy | None, wait: int) -> None:
        self.now += wait
        self.count += 1
        turn = Asked(f"t{self.count}", strategy, any(not other.cleared for other in self.open))
        if strategy is not None:
            lost = [o for o in self.open if self.can_lose(o)] if turn.overlapped and strategy in THINNING else []
            decision = self.submits.decide(turn.id, strategy, overlaps=turn.overlapped, now_ms=self.now)
            assert decision.drops is (strategy == "drop" and turn.overlapped)
            assert decision.supersedes == (lost[0].id if lost else None)
            assert len(lost) <= 1, "the others have lost their turn before"
            for other in lost:
                other.superseded = True
            quiet = isinstance(strategy, Debounce) and turn.overlapped
            assert decision.quiet_until == (self.now + 300 if quiet else None)
            if decision.drops:
                self.queue.refuse(turn.id)
                assert self.queue.admit(turn.id) == "duplicate"
                return
        self.queue.admit(turn.id)
        self.open.append(turn)

    def can_lose(self, turn: Asked) -> bool:
        thinned = turn.overlapped and turn.strategy in THINNING
        return thinned and not (turn.begun or turn.cleared or turn.superseded)

    @rule()
    def begin(self) -> None:
        """The turn in the slot asks the model, if it may."""
        if self.open and not self.open[0].begun and not self.open[0].cleared:
            turn = self.open[0]
            assert self.submits.begin(turn.id) is not turn.superseded
            turn.begun = not turn.superseded

    @rule()
    def finish(self) -> None:
        if not self.open:
            return
        turn = self.open.pop(0)
        if turn.begun:
            self.answered.append(turn.id)
        elif turn.superseded:
            self.skipped.append(turn)
        self.submits.end(turn.id)
        following = self.queue.finish(turn.id)
        assert following == (self.open[0].id if self.open else None)

    @rule(index=st.integers(0, 5))
    def stop(self, index: int) -> None:
        waiting = self.open[1:]
        if waiting:
            turn = waiting[index % len(waiting)]
            self.queue.withdraw(turn.id)
            self.submits.end(turn.id)
            self.open.remove(turn)

    @rule()
    def clear(self) -> None:
        self.queue.clear()
        self.submits.clear()
        del self.open[1:]
        for turn in self.open:
            turn.cleared, turn.superseded = True, False

    @invariant()
    def exactly_those_are_superseded(self) -> None:
        for turn in self.open:
            assert self.submits.is_superseded(turn.id) is turn.superseded

    @invariant()
    def only_what_overlapped_is_ever_skipped(self) -> None:
        assert all(turn.overlapped and turn.strategy in THINNING for turn in self.skipped)

    @invariant()
    def one_of_each_burst_is_left(self) -> None:
        assert sum(self.can_lose(turn) for turn in self.open) <= 1


AnyUse.TestCase.settings = settings(max_examples=100, stateful_step_count=40, deadline=None)
TestAnyUse = AnyUse.TestCase
