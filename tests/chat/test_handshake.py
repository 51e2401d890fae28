"""Offers, replays, and who must wait."""

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from perdure.chat.handshake import REMEMBERED, Handshake, Idle, Pending, Resuming
from tests.requirements import requirement


def streaming(stream: str = "R1", *peers: str) -> Handshake[str]:
    """A handshake whose ``peers`` listen to a stream that runs."""
    handshake: Handshake[str] = Handshake()
    for peer in peers:
        handshake.connected(peer)
    handshake.accepted(stream)
    handshake.streaming(stream)
    return handshake


# ── the decision table of a probe, and of a new connection ──────────


def test_an_idle_agent_has_nothing_to_offer() -> None:
    handshake: Handshake[str] = Handshake()
    assert handshake.connected("a") == Idle()
    assert handshake.probed("a") == Idle()
    assert handshake.listeners == ("a",)


def test_a_running_stream_is_offered_to_who_comes_and_to_who_asks() -> None:
    handshake = streaming("R1", "a")
    assert handshake.connected("b") == Resuming("R1")
    assert handshake.probed("a") == Resuming("R1")
    assert handshake.listeners == ()


def test_a_probe_is_answered_though_the_stream_was_offered_before() -> None:
    handshake = streaming("R1")
    handshake.connected("a")
    assert [handshake.probed("a") for _ in range(3)] == [Resuming("R1")] * 3


def test_an_accepted_turn_that_does_not_stream_yet_is_pending() -> None:
    handshake: Handshake[str] = Handshake()
    handshake.accepted("R1")
    assert handshake.connected("a") == Pending("R1")
    handshake.accepted("R2")
    assert handshake.probed("a") == Pending("R2"), "the one that was accepted last"
    assert handshake.listeners == ("a",), "waiting keeps nobody from what is live"


def test_a_failed_turn_is_offered_to_who_asks_and_not_to_who_comes() -> None:
    handshake: Handshake[str] = Handshake("R1")
    assert handshake.connected("a") == Idle()
    assert handshake.probed("a") == Resuming("R1")
    assert handshake.listeners == ("a",), "an offer of what is over keeps nobody from what is live"
    assert handshake.acked("a", "R1") == "failed"
    assert handshake.probed("b") == Resuming("R1"), "each tab may want it"


def test_a_running_stream_goes_before_an_older_failure_and_that_before_an_accepted_turn() -> None:
    handshake: Handshake[str] = Handshake()
    handshake.accepted("R1")
    handshake.accepted("R2")
    handshake.streaming("R1")
    handshake.stream_ended()
    handshake.settled("R1", failed=True)
    assert handshake.probed("a") == Resuming("R1")
    handshake.streaming("R2")
    assert handshake.probed("a") == Resuming("R2")


def test_a_failure_is_history_once_a_request_is_accepted_or_all_is_cleared() -> None:
    handshake: Handshake[str] = Handshake("R1")
    handshake.accepted("R2")
    assert handshake.failed is None
    assert handshake.probed("a") == Pending("R2")
    handshake.settled("R2", failed=True)
    assert handshake.failed == "R2"
    handshake.cleared()
    assert handshake.failed is None
    assert handshake.probed("a") == Idle()


# ── the start of a stream ───────────────────────────────────────────


def test_who_waited_is_offered_the_stream_when_it_starts_and_gets_no_chunk_before_the_ack() -> None:
    handshake: Handshake[str] = Handshake()
    handshake.connected("asker")
    handshake.accepted("R1")
    handshake.connected("b")
    handshake.probed("b")
    handshake.connected("c")
    assert sorted(handshake.streaming("R1")) == ["b", "c"], "each once"
    assert handshake.listeners == ("asker",)
    assert handshake.acked("b", "R1") == "live"
    assert handshake.listeners == ("asker", "b")


def test_who_waited_for_one_turn_is_offered_whichever_streams_first() -> None:
    handshake: Handshake[str] = Handshake()
    handshake.accepted("R1")
    handshake.accepted("R2")
    handshake.connected("a")
    handshake.streaming("R1")
    handshake.stream_ended()
    assert handshake.settled("R1") == []
    assert handshake.listeners == ("a",)
    assert handshake.streaming("R2") == [], "it waits no longer: it listens"


# ── acks ────────────────────────────────────────────────────────────


def test_an_ack_of_another_stream_than_the_one_that_runs_gets_nothing_and_brings_back_what_is_live() -> None:
    handshake = streaming("R1")
    handshake.connected("a")
    assert handshake.acked("a", "other") == "nothing"
    assert handshake.listeners == ("a",)


def test_an_ack_that_crosses_a_newer_offer_leaves_that_open() -> None:
    handshake = streaming("R1")
    assert handshake.connected("a") == Resuming("R1")
    handshake.accepted("R2")
    handshake.stream_ended()
    handshake.settled("R1")
    handshake.streaming("R2")
    assert handshake.probed("a") == Resuming("R2")
    assert handshake.acked("a", "R1") == "nothing"
    assert handshake.listeners == (), "no chunks before the replay"
    assert handshake.acked("a", "R2") == "live"
    assert handshake.listeners == ("a",)


def test_an_ack_of_an_old_failure_that_crosses_an_offer_leaves_that_open() -> None:
    handshake: Handshake[str] = Handshake("R1")
    handshake.connected("a")
    assert handshake.probed("a") == Resuming("R1")
    handshake.accepted("R2")
    handshake.probed("a")
    assert handshake.streaming("R2") == ["a"]
    assert handshake.acked("a", "R1") == "nothing"
    assert handshake.listeners == ()
    assert handshake.acked("a", "R1") == "nothing", "an ack answers an offer once"
    assert handshake.listeners == ("a",), "the second one is of a stream that is not on offer"


def test_acks_are_remembered_for_nobody_who_is_gone() -> None:
    handshake = streaming("R1")
    handshake.connected("a")
    handshake.closed("a")
    handshake.stream_ended()
    handshake.streaming("R2")
    handshake.connected("a")
    assert handshake.acked("a", "R1") == "nothing"
    assert handshake.listeners == ("a",)


@pytest.mark.parametrize("stream", ["R1", "never heard of", ""])
def test_an_ack_while_nothing_runs_learns_that_it_is_over(stream: str) -> None:
    handshake = streaming("R1", "a")
    handshake.stream_ended()
    handshake.settled("R1")
    assert handshake.acked("a", stream) == "over"


def test_an_ack_of_another_stream_than_the_failed_one_learns_that_it_is_over() -> None:
    handshake: Handshake[str] = Handshake("R1")
    handshake.connected("a")
    assert handshake.acked("a", "R0") == "over"
    assert handshake.failed == "R1"


def test_who_has_not_taken_the_offer_up_gets_the_end_live() -> None:
    handshake = streaming("R1", "a")
    handshake.probed("a")
    assert handshake.listeners == ()
    handshake.stream_ended()
    assert handshake.listeners == ("a",)


# ── release ─────────────────────────────────────────────────────────


@requirement("protocol:93")
def test_who_waits_is_released_when_the_last_accepted_turn_settles_without_streaming() -> None:
    handshake: Handshake[str] = Handshake()
    handshake.accepted("R1")
    handshake.accepted("R2")
    handshake.connected("a")
    assert handshake.settled("R1") == []
    assert handshake.settled("R2") == ["a"]
    assert handshake.settled("R2") == [], "once"


def test_nobody_is_released_while_a_stream_runs() -> None:
    handshake: Handshake[str] = Handshake()
    handshake.accepted("R1")
    handshake.accepted("R2")
    handshake.streaming("R1")
    assert handshake.settled("R2") == []
    handshake.stream_ended()
    assert handshake.settled("R1") == []


def test_a_clear_releases_who_waits_and_brings_back_what_is_live_to_all() -> None:
    handshake: Handshake[str] = Handshake()
    handshake.connected("a")
    handshake.accepted("R1")
    handshake.streaming("R1")
    handshake.probed("a")
    handshake.accepted("R2")
    assert handshake.cleared() == []
    assert handshake.listeners == ("a",)
    handshake.accepted("R3")
    handshake.connected("b")
    assert handshake.cleared() == ["b"]
    assert handshake.probed("b") == Idle()
    assert handshake.settled("R1") == [], "the cleared turn unwinds"


def test_who_is_gone_is_told_nothing_more() -> None:
    handshake = streaming("R1", "a", "b")
    handshake.probed("a")
    handshake.closed("a")
    handshake.closed("never there")
    assert handshake.everyone == ("b",)
    handshake.stream_ended()
    assert handshake.listeners == ("b",)
    handshake.accepted("R2")
    handshake.connected("c")
    handshake.closed("c")
    assert handshake.streaming("R2") == []


# ── any course of events ────────────────────────────────────────────


class AnyCourse(RuleBasedStateMachine):
    """Connections come, ask, ack and go while turns are accepted, stream, end and are cleared, in any order."""

    peers = st.integers(1, 4)

    def __init__(self) -> None:
        super().__init__()
        self.handshake: Handshake[int] = Handshake()
        self.count = 0
        self.accepted: list[str] = []
        self.running: str | None = None
        self.failed: str | None = None
        self.connected: list[int] = []
        self.offered: set[int] = set()
        self.parked: set[int] = set()
        self.unanswered: dict[int, list[str]] = {}

    def expected(self, peer: int, *, asks: bool) -> Resuming | Pending | Idle:
        if self.running:
            self.offer(peer, self.running)
            return Resuming(self.running)
        if asks and self.failed:
            self.note(peer, self.failed)
            return Resuming(self.failed)
        if self.accepted:
            self.parked.add(peer)
            return Pending(self.accepted[-1])
        return Idle()

    def offer(self, peer: int, stream: str) -> None:
        self.offered.add(peer)
        self.note(peer, stream)

    def note(self, peer: int, stream: str) -> None:
        offers = self.unanswered.setdefault(peer, [])
        self.unanswered[peer] = [*(offers if offers[-1:] != [stream] else offers[:-1]), stream][-REMEMBERED:]

    @rule(peer=peers)
    def connect(self, peer: int) -> None:
        if peer not in self.connected:
            self.connected.append(peer)
            assert self.handshake.connected(peer) == self.expected(peer, asks=False)

    @rule(peer=peers)
    def probe(self, peer: int) -> None:
        if peer in self.connected:
            assert self.handshake.probed(peer) == self.expected(peer, asks=True)

    @rule(peer=peers, right=st.booleans())
    def ack(self, peer: int, right: bool) -> None:
        if peer in self.connected:
            stream = (self.running or self.failed or "R0") if right else "wrong"
            replay = self.handshake.acked(peer, stream)
            self.answer(peer, stream)
            self.offered.discard(peer)
            if self.running:
                assert replay == ("live" if right else "nothing")
            else:
                assert replay == ("failed" if right and self.failed else "over")
            assert peer in self.handshake.listeners

    def answer(self, peer: int, stream: str) -> None:
        offers = self.unanswered.get(peer, [])
        if stream in offers:
            self.unanswered[peer] = offers[offers.index(stream) + 1 :]

    @precondition(lambda self: any(self.unanswered.values()))
    @rule(data=st.data())
    def ack_what_was_offered_before(self, data: st.DataObject) -> None:
        peer = data.draw(st.sampled_from([peer for peer, offers in self.unanswered.items() if offers]))
        stream = data.draw(st.sampled_from(self.unanswered[peer]))
        replay = self.handshake.acked(peer, stream)
        self.answer(peer, stream)
        if stream != self.running and peer in self.offered:
            assert replay == "nothing"
            assert peer not in self.handshake.listeners, "the newer offer stands"
            return
        self.offered.discard(peer)
        if self.running:
            assert replay == ("live" if stream == self.running else "nothing")
        else:
            assert replay == ("failed" if stream == self.failed else "over")

    @rule(peer=peers)
    def close(self, peer: int) -> None:
        self.handshake.closed(peer)
        self.unanswered.pop(peer, None)
        if peer in self.connected:
            self.connected.remove(peer)
        self.offered.discard(peer)
        self.parked.discard(peer)

    @rule()
    def accept(self) -> None:
        self.count += 1
        self.accepted.append(f"R{self.count}")
        self.handshake.accepted(f"R{self.count}")
        self.failed = None

    @precondition(lambda self: self.accepted and not self.running)
    @rule()
    def stream(self) -> None:
        self.running = self.accepted[0]
        assert set(self.handshake.streaming(self.running)) == self.parked
        for peer in self.parked:
            self.offer(peer, self.running)
        self.parked.clear()

    @precondition(lambda self: self.running)
    @rule(failed=st.booleans())
    def end(self, failed: bool) -> None:
        turn, self.running = self.running, None
        assert turn is not None
        self.handshake.stream_ended()
        self.offered.clear()
        self.settle(turn, failed)

    @precondition(lambda self: self.accepted)
    @rule(failed=st.booleans(), data=st.data())
    def settle_one_that_does_not_stream(self, failed: bool, data: st.DataObject) -> None:
        others = [turn for turn in self.accepted if turn != self.running]
        if others:
            self.settle(data.draw(st.sampled_from(others)), failed)

    def settle(self, turn: str, failed: bool) -> None:
        if turn in self.accepted:
            self.accepted.remove(turn)
        self.failed = turn if failed else self.failed
        released = set(self.handshake.settled(turn, failed=failed))
        if self.accepted or self.running:
            assert released == set()
        else:
            assert released == self.parked
            self.parked.clear()

    @rule()
    def clear(self) -> None:
        assert set(self.handshake.cleared()) == self.parked
        self.running = self.failed = None
        self.accepted.clear()
        self.offered.clear()
        self.parked.clear()

    @invariant()
    def who_has_an_open_offer_gets_no_chunks_and_everyone_else_does(self) -> None:
        assert list(self.handshake.everyone) == self.connected
        assert list(self.handshake.listeners) == [peer for peer in self.connected if peer not in self.offered]

    @invariant()
    def offers_are_open_only_while_a_stream_runs(self) -> None:
        assert self.running or self.handshake.listeners == self.handshake.everyone

    @invariant()
    def nobody_waits_when_nothing_will_come(self) -> None:
        assert self.accepted or self.running or not self.parked


AnyCourse.TestCase.settings = settings(max_examples=100, stateful_step_count=40, deadline=None)
TestAnyCourse = AnyCourse.TestCase
