"""Who may answer what, once, and when the conversation goes on."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from perdure.chat.interactions import Interaction, Interactions
from perdure.protocol import codec
from tests.requirements import requirement

PAGE: dict[str, Any] = {"runs": "client"}
"""A call that a page runs."""
GATED: dict[str, Any] = {"runs": "server", "approval": "ap"}
"""A call of a server tool that needs approval."""
GATED_PAGE: dict[str, Any] = {"runs": "client", "approval": "ap"}
"""A call that a page runs after approval."""


def call(id: str = "c1", turn: str = "t1", **fields: Any) -> Interaction:
    given: dict[str, Any] = {**PAGE, **fields}
    return Interaction(call=id, turn=turn, message=f"m-{turn}", tool="tool", input={"a": 1}, asked_ms=1, **given)


def asked(*calls: Interaction, over: bool = True) -> Interactions:
    """The turns of these calls have asked, and are over."""
    interactions = Interactions()
    for each in calls:
        interactions.ask(each)
    if over:
        for turn in interactions.groups:
            interactions.close(turn)
    return interactions


def result(interactions: Interactions, id: str = "c1", *, go_on: bool = True, tool: str = "") -> Interaction | None:
    return interactions.answer(id, tool=tool, by="tab", at_ms=5, go_on=go_on)


def decision(
    interactions: Interactions, id: str = "c1", *, approved: bool = True, go_on: bool = True, **more: Any
) -> Interaction | None:
    return interactions.decide(id, approved=approved, by="tab", at_ms=5, go_on=go_on, **more)


# ── results ─────────────────────────────────────────────────────────


@pytest.mark.parametrize("kind", [PAGE, GATED, GATED_PAGE])
def test_a_call_that_waits_takes_a_result(kind: dict[str, Any]) -> None:
    interactions = asked(call(**kind))
    answered = result(interactions)
    assert answered is not None
    assert (answered.state, answered.decision, answered.decided_by, answered.decided_ms) == (
        "settled",
        "answered",
        "tab",
        5,
    )
    assert not answered.waits


@requirement("protocol:67", "engine:74")
@pytest.mark.parametrize("kind", [GATED, GATED_PAGE])
def test_a_call_that_was_approved_and_has_not_begun_takes_a_result_and_stays_approved(kind: dict[str, Any]) -> None:
    interactions = asked(call(**kind))
    decision(interactions)
    answered = result(interactions)
    assert answered is not None
    assert (answered.state, answered.decision) == ("settled", "approved")
    assert interactions.to_run("t1") == []


@requirement("protocol:66", "engine:76")
@pytest.mark.parametrize("before", ["never asked", "answered", "denied", "running", "ran", "dropped", "cleared"])
def test_nothing_else_takes_a_result_nor_a_decision(before: str) -> None:
    interactions = asked(call(**GATED), call("c2"))
    match before:
        case "never asked":
            interactions = asked(call("c2"))
        case "answered":
            result(interactions)
        case "denied":
            decision(interactions, approved=False)
        case "running" | "ran":
            decision(interactions)
            interactions.begin(["c1"])
            if before == "ran":
                interactions.settle("c1")
        case "dropped":
            interactions.drop(["t1"], 9)
        case _:
            interactions.clear()
    assert result(interactions) is None
    assert decision(interactions) is None
    assert decision(interactions, approved=False) is None


def test_a_result_that_names_another_tool_is_none() -> None:
    interactions = asked(call())
    assert result(interactions, tool="other") is None
    assert interactions.waiting[0].decision is None
    assert result(interactions, tool="tool") is not None


# ── decisions ───────────────────────────────────────────────────────


def test_an_approved_call_of_the_server_waits_for_nobody_and_is_to_be_run() -> None:
    interactions = asked(call(**GATED))
    approved = decision(interactions, reason="Fine.", edited={"a": 2})
    assert approved is not None
    assert (approved.state, approved.decision, approved.reason) == ("approved", "approved", "Fine.")
    assert (approved.arguments, approved.input) == ({"a": 2}, {"a": 1})
    assert not approved.waits
    assert interactions.to_run("t1") == [approved]


def test_an_approved_call_of_a_page_waits_for_its_result() -> None:
    interactions = asked(call(**GATED_PAGE))
    approved = decision(interactions)
    assert approved is not None
    assert approved.waits
    assert not approved.asks
    assert interactions.to_run("t1") == []
    assert not interactions.is_ready("t1")
    result(interactions, go_on=False)
    assert interactions.is_ready("t1"), "who approved it wanted that"


def test_a_denied_call_is_settled_with_the_reason_and_its_own_arguments() -> None:
    interactions = asked(call(**GATED))
    denied = decision(interactions, approved=False, reason="No.", edited={"a": 2})
    assert denied is not None
    assert (denied.state, denied.decision, denied.reason, denied.edited) == ("settled", "denied", "No.", None)


def test_the_first_decision_counts() -> None:
    interactions = asked(call(**GATED))
    assert decision(interactions) is not None
    assert decision(interactions, approved=False) is None
    assert [each.call for each in interactions.to_run("t1")] == ["c1"]


@requirement("fault:AP-16")
def test_a_call_on_which_nobody_was_asked_takes_no_decision() -> None:
    interactions = asked(call())
    assert decision(interactions) is None
    assert decision(interactions, approved=False) is None
    assert [each.state for each in interactions.waiting] == ["waiting"]


# ── when the conversation goes on ───────────────────────────────────


@requirement("engine:78", "protocol:70")
@pytest.mark.parametrize("order", [["c1", "c2", "c3"], ["c3", "c1", "c2"], ["c2", "c3", "c1"]])
def test_it_goes_on_after_the_last_answer_of_a_turn_whichever_that_is(order: list[str]) -> None:
    interactions = asked(call("c1"), call("c2", **GATED), call("c3"))
    for id in order:
        assert not interactions.is_ready("t1")
        assert interactions.ready == []
        (decision if id == "c2" else result)(interactions, id)
    assert interactions.ready == ["t1"]


@requirement("engine:81", "engine:82", "protocol:73")
def test_it_goes_on_only_after_the_turn_is_over_as_another_call_may_come() -> None:
    interactions = asked(call("c1"), over=False)
    result(interactions, "c1")
    assert not interactions.is_ready("t1")
    interactions.ask(call("c2"))
    interactions.close("t1")
    assert not interactions.is_ready("t1")
    result(interactions, "c2", go_on=False)
    assert interactions.is_ready("t1")


@requirement("engine:77", "engine:83", "protocol:72", "fault:CT-07")
def test_it_goes_on_only_if_somebody_who_answered_wants_that() -> None:
    interactions = asked(call("c1"), call("c2"))
    result(interactions, "c1", go_on=False)
    result(interactions, "c2", go_on=False)
    assert not interactions.is_ready("t1")
    assert interactions.groups == [], "it is history"


def test_a_call_that_was_approved_without_going_on_is_remembered() -> None:
    interactions = asked(call(**GATED))
    decision(interactions, go_on=False)
    assert interactions.groups == ["t1"]
    assert not interactions.is_ready("t1")
    assert interactions.unsettled == {"c1"}


def test_it_goes_on_once() -> None:
    interactions = asked(call())
    result(interactions)
    assert interactions.continued("t1") is None
    assert not interactions.is_ready("t1")
    assert interactions.continued("t0") is None, "a turn that nobody knows any more"


@requirement("engine:87", "protocol:78")
def test_the_continuation_keeps_the_id_that_it_was_first_promised() -> None:
    interactions = asked(call("c1"), call("c2"))
    assert interactions.next_id("t1") is None
    result(interactions, "c1")
    assert interactions.want("t1", "K") == "K"
    result(interactions, "c2")
    assert interactions.want("t1", "L") == "K"
    assert interactions.next_id("t1") == "K"
    assert interactions.continued("t1") == "K"


def test_the_calls_of_two_turns_are_two_groups() -> None:
    interactions = asked(call("c1", "t1"), call("c2", "t2"))
    result(interactions, "c2")
    assert interactions.ready == ["t2"]
    assert [each.call for each in interactions.waiting] == ["c1"]
    assert (interactions.group_of("m-t1"), interactions.group_of("m-t2")) == ("t1", "t2")
    assert interactions.group_of("m-t3") is None
    assert interactions.calls_in("m-t2") == ["c2"]


# ── running ─────────────────────────────────────────────────────────


def test_what_is_approved_begins_once_and_is_settled_by_its_result() -> None:
    interactions = asked(call("c1", **GATED), call("c2", **GATED), call("c3", **GATED))
    decision(interactions, "c1")
    decision(interactions, "c2", approved=False)
    begun = interactions.begin(["c1", "c2", "c3", "c4"])
    assert [(each.call, each.state, each.begun) for each in begun] == [("c1", "running", True)]
    assert interactions.begin(["c1"]) == []
    assert interactions.to_run("t1") == []
    assert interactions.settle("c2") is None
    assert interactions.settle("c4") is None
    settled = interactions.settle("c1")
    assert settled is not None
    assert (settled.state, settled.begun, settled.decision) == ("settled", True, "approved")
    assert interactions.settle("c1") is None


def test_what_runs_is_left_alone_by_whoever_puts_the_conversation_right() -> None:
    interactions = asked(call("c1", **GATED), call("c2"), call("c3"))
    decision(interactions, "c1")
    interactions.begin(["c1"])
    result(interactions, "c3")
    assert interactions.unsettled == {"c1", "c2"}


# ── giving up ───────────────────────────────────────────────────────


def test_what_is_given_up_is_settled_and_says_what_had_been_decided() -> None:
    interactions = asked(call("c1"), call("c2", **GATED), call("c3", **GATED), call("c4"), call("c5", "t2"))
    decision(interactions, "c2")
    decision(interactions, "c3")
    interactions.begin(["c3"])
    result(interactions, "c4")
    dropped = interactions.drop(["t1", "t0"], 9)
    assert [(each.call, each.state, each.decision, each.decided_ms) for each in dropped] == [
        ("c1", "settled", "dropped", 9),
        ("c2", "settled", "approved", 5),
        ("c3", "settled", "approved", 5),
    ]
    assert [each.begun for each in dropped] == [False, False, True]
    assert interactions.find("c1") is None
    assert interactions.groups == ["t2"]
    assert interactions.drop(["t1"], 9) == []


def test_a_clear_forgets_all() -> None:
    interactions = asked(call("c1"), call("c2", "t2", **GATED))
    interactions.clear()
    assert (interactions.groups, interactions.waiting, interactions.unsettled) == ([], [], set())
    interactions.close("t1")
    interactions.ask(call("c1", "t3"))
    assert [each.turn for each in interactions.waiting] == ["t3"], "the id may come again"


# ── what is stored ──────────────────────────────────────────────────


@pytest.mark.parametrize("kind", [PAGE, GATED, GATED_PAGE])
@pytest.mark.parametrize("state", ["waiting", "approved", "running", "settled"])
def test_what_is_stored_comes_back_and_its_turn_is_over(kind: dict[str, Any], state: Any) -> None:
    before = call(state=state, go_on=True, decided_ms=5, decision=None if state == "waiting" else "approved", **kind)
    stored = codec.decode_as(Interaction, codec.encode_text(before))
    assert stored == before
    interactions = Interactions([stored])
    waits = state == "waiting" or (state == "approved" and kind["runs"] == "client")
    assert [each.call for each in interactions.waiting] == (["c1"] if waits else [])
    assert interactions.is_ready("t1") == (not waits)
    assert [each.call for each in interactions.of("t1")] == ["c1"]
    assert interactions.of("t2") == []


class AnyOrder(RuleBasedStateMachine):
    """One turn after the other asks, anybody answers anything, beside a plain record of what was asked."""

    def __init__(self) -> None:
        super().__init__()
        self.interactions = Interactions()
        self.turns = 0
        self.calls: dict[str, str] = {}
        """Every call that was asked, and what became of it: ``open``, or who settled it."""
        self.ran: list[str] = []

    @rule(kinds=st.lists(st.sampled_from([PAGE, GATED, GATED_PAGE]), max_size=3), over=st.booleans())
    def ask(self, kinds: list[dict[str, Any]], over: bool) -> None:
        self.turns += 1
        for kind in kinds:
            id = f"c{len(self.calls)}"
            self.calls[id] = "open"
            self.interactions.ask(call(id, f"t{self.turns}", **kind))
        if over:
            self.interactions.close(f"t{self.turns}")

    @precondition(lambda self: self.calls)
    @rule(data=st.data(), kind=st.sampled_from(["result", "yes", "no"]), go_on=st.booleans())
    def answer(self, data: st.DataObject, kind: str, go_on: bool) -> None:
        id = data.draw(st.sampled_from([*self.calls, "nobody"]))
        before = self.interactions.find(id)
        could = before is not None and before.state in {"waiting", "approved"}
        if kind == "result":
            taken = result(self.interactions, id, go_on=go_on)
            assert (taken is not None) == could
        else:
            could = before is not None and before.asks
            taken = decision(self.interactions, id, approved=kind == "yes", go_on=go_on)
            assert (taken is not None) == could
        if taken is not None and taken.state == "settled":
            assert self.calls[id] == "open"
            self.calls[id] = kind

    @precondition(lambda self: self.turns)
    @rule(data=st.data())
    def close(self, data: st.DataObject) -> None:
        self.interactions.close(f"t{data.draw(st.integers(1, self.turns))}")

    @precondition(lambda self: self.interactions.ready)
    @rule(data=st.data(), ends=st.booleans())
    def go_on(self, data: st.DataObject, ends: bool) -> None:
        turn = data.draw(st.sampled_from(self.interactions.ready))
        self.interactions.continued(turn)
        assert turn not in self.interactions.ready
        for each in self.interactions.begin([each.call for each in self.interactions.to_run(turn)]):
            assert self.calls[each.call] == "open"
            self.ran.append(each.call)
            if ends:
                self.interactions.settle(each.call)
                self.calls[each.call] = "run"
        self._drop([turn])

    @rule()
    def overtake(self) -> None:
        self._drop(self.interactions.groups)

    @rule(sure=st.integers(0, 5))
    def clear(self, sure: int) -> None:
        if sure == 0:
            self.interactions.clear()
            self.calls = {id: "cleared" if state == "open" else state for id, state in self.calls.items()}

    def _drop(self, turns: list[str]) -> None:
        for each in self.interactions.drop(turns, 9):
            assert self.calls[each.call] == "open"
            self.calls[each.call] = "dropped"

    @invariant()
    def what_is_open_is_known_and_nothing_else_is(self) -> None:
        assert self.interactions.unsettled == {id for id, state in self.calls.items() if state == "open"}

    @invariant()
    def nothing_ran_twice(self) -> None:
        assert len(self.ran) == len(set(self.ran))

    @invariant()
    def who_goes_on_waits_for_nobody(self) -> None:
        for turn in self.interactions.ready:
            assert not any(each.waits for each in self.interactions.of(turn))
            assert any(each.go_on for each in self.interactions.of(turn))


AnyOrder.TestCase.settings = settings(max_examples=40, stateful_step_count=20, deadline=None)
TestAnyOrder = AnyOrder.TestCase
