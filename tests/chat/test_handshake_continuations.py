"""Continuations: whose they are, who waits for them, and who is told what (reference: protocol §9.3)."""

from __future__ import annotations

import pytest

from perdure.chat.handshake import Handshake, Idle, Pending, Resuming, Taken
from tests.requirements import requirement


def wanted(*peers: str, id: str = "K") -> Handshake[str]:
    """All of ``peers`` are there; the first has answered a call and wants the conversation to go on."""
    handshake: Handshake[str] = Handshake()
    for peer in peers:
        handshake.connected(peer)
    handshake.wanted(id, peers[0])
    return handshake


def streaming(*peers: str, id: str = "K") -> Handshake[str]:
    """The continuation of the first of ``peers`` streams."""
    handshake = wanted(*peers, id=id)
    handshake.admitted(id)
    handshake.streaming(id)
    return handshake


# ── before it streams: rule 2 ───────────────────────────────────────


@requirement("protocol:78", "fault:CC-01")
@pytest.mark.parametrize("admitted", [False, True])
def test_who_has_answered_and_asks_is_told_to_wait_for_the_continuation(admitted: bool) -> None:
    handshake = wanted("a")
    if admitted:
        handshake.admitted("K")
    assert handshake.probed("a") == Pending("K")
    assert handshake.probed("a") == Pending("K"), "each time it asks"


@pytest.mark.parametrize("admitted", [False, True])
def test_others_are_told_what_they_would_be_without_it(admitted: bool) -> None:
    handshake = wanted("a", "b")
    if admitted:
        handshake.admitted("K")
    assert handshake.probed("b") == Idle()
    handshake.accepted("R1")
    assert handshake.probed("b") == Pending("R1")


def test_others_are_offered_a_failure_that_there_is_beside_it() -> None:
    handshake: Handshake[str] = Handshake("R1")
    handshake.connected("a")
    handshake.wanted("K", "a")
    assert handshake.probed("b") == Resuming("R1")
    assert handshake.probed("a") == Pending("K")
    handshake.admitted("K")
    assert handshake.failed is None, "a turn was accepted since"


def test_it_belongs_to_whoever_answered_last_and_keeps_who_waits() -> None:
    handshake = wanted("a", "b")
    handshake.wanted("K", "b")
    assert handshake.probed("a") == Idle()
    assert handshake.probed("b") == Pending("K")
    handshake.admitted("K")
    assert handshake.streaming("K") == ["a", "b"], "both have answered"


def test_one_without_an_owner_is_waited_for_only_once_its_turn_is_there() -> None:
    """Until then other calls may have to be answered: that can take days."""
    handshake = wanted("a", "b")
    handshake.closed("a")
    assert handshake.probed("b") == Idle()
    handshake.admitted("K")
    assert handshake.probed("b") == Pending("K")
    assert handshake.streaming("K") == ["b"]


def test_one_that_the_server_itself_set_off_has_no_owner() -> None:
    handshake: Handshake[str] = Handshake()
    handshake.connected("a")
    handshake.wanted("K", None)
    assert handshake.probed("a") == Idle()
    handshake.admitted("K")
    assert handshake.probed("a") == Pending("K")
    assert handshake.streaming("K") == ["a"]
    assert handshake.probed("a") == Resuming("K")


def test_one_of_which_nobody_was_told_before_it_was_admitted_streams_to_all() -> None:
    handshake: Handshake[str] = Handshake()
    handshake.connected("a")
    handshake.admitted("K")
    assert handshake.streaming("K") == []
    assert handshake.listeners == ("a",)


def test_a_connection_that_comes_meanwhile_gets_the_conversation() -> None:
    handshake = wanted("a")
    assert handshake.connected("b") == Idle()
    handshake.admitted("K")
    assert handshake.connected("c") == Idle()
    assert handshake.streaming("K") == ["a"]
    assert handshake.listeners == ("b", "c")


# ── while it streams: rule 1a ───────────────────────────────────────


@requirement("protocol:79")
def test_who_has_answered_is_offered_it_and_gets_no_chunk_before_the_ack_the_others_do() -> None:
    handshake = streaming("a", "b")
    assert handshake.listeners == ("b",)
    assert handshake.acked("a", "K") == "live"
    assert handshake.listeners == ("a", "b")


@requirement("protocol:80", "fault:CC-03")
def test_a_probe_of_another_connection_hears_that_it_is_not_its_own_and_goes_on_listening() -> None:
    handshake = streaming("a", "b")
    assert handshake.probed("b") == Taken()
    assert handshake.listeners == ("b",)
    assert handshake.probed("a") == Resuming("K")
    handshake.closed("a")
    assert handshake.probed("b") == Resuming("K"), "it is nobody's now"
    assert handshake.listeners == ()


def test_a_connection_that_comes_while_it_streams_is_offered_it() -> None:
    handshake = streaming("a")
    assert handshake.connected("b") == Resuming("K")


def test_an_answer_while_it_streams_is_for_the_next_one() -> None:
    handshake = streaming("a", "b")
    handshake.acked("a", "K")
    handshake.wanted("L", "b")
    assert handshake.probed("b") == Taken(), "what runs goes first"
    handshake.stream_ended()
    handshake.admitted("L")
    assert handshake.settled("K") == [], "nobody is released: the next one comes"
    assert handshake.probed("a") == Idle()
    assert handshake.streaming("L") == ["b"]
    assert handshake.probed("a") == Taken()


# ── when it does not come ───────────────────────────────────────────


@requirement("protocol:81", "fault:CC-05")
def test_who_waits_is_released_when_it_is_over_without_having_streamed() -> None:
    handshake = wanted("a", "b")
    handshake.admitted("K")
    handshake.probed("a")
    assert handshake.settled("K") == ["a"]
    assert handshake.settled("K") == []
    assert handshake.probed("a") == Idle()


def test_one_that_fails_before_it_streams_is_a_failure_like_any_other() -> None:
    handshake = wanted("a", "b")
    handshake.admitted("K")
    assert handshake.settled("K", failed=True) == ["a"]
    assert handshake.probed("b") == Resuming("K")


def test_who_waits_is_released_when_there_will_be_none() -> None:
    handshake = wanted("a", "b")
    handshake.wanted("K", "b")
    assert handshake.not_continued() == ["a", "b"]
    assert handshake.not_continued() == []
    assert handshake.probed("b") == Idle()


def test_the_end_of_another_turn_releases_nobody_who_waits_for_it() -> None:
    handshake = wanted("a")
    handshake.accepted("R1")
    handshake.connected("b")
    assert handshake.settled("R1") == ["b"]
    assert handshake.probed("a") == Pending("K")


def test_a_new_one_takes_the_place_of_one_that_never_came() -> None:
    handshake = wanted("a")
    handshake.wanted("L", "b")
    handshake.admitted("L")
    assert handshake.streaming("L") == ["b"]


@requirement("fault:CC-07")
def test_a_clear_releases_who_waits_once_and_forgets_whose_it_was() -> None:
    handshake = wanted("a")
    handshake.accepted("R1")
    handshake.connected("b")
    handshake.connected("c")
    handshake.admitted("K")
    handshake.probed("a")
    assert sorted(handshake.cleared()) == ["a", "b", "c"]
    assert handshake.probed("a") == Idle()
    handshake = streaming("a", "b")
    handshake.cleared()
    handshake.accepted("R2")
    handshake.streaming("R2")
    assert handshake.probed("b") == Resuming("R2"), "this one is nobody's"


# ── who is gone ─────────────────────────────────────────────────────


@requirement("protocol:82")
def test_who_has_gone_waits_no_longer_and_the_continuation_comes_all_the_same() -> None:
    handshake = wanted("a", "b")
    handshake.wanted("K", "b")
    handshake.closed("b")
    handshake.admitted("K")
    assert handshake.streaming("K") == ["a"]
    handshake.closed("a")
    assert handshake.listeners == ()
    handshake.stream_ended()
    assert handshake.settled("K") == []
