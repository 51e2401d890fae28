"""The rules catch what they are there to catch."""

from dataclasses import replace

from tests.requirements import check
from tests.requirements.external import parse_cases
from tests.requirements.owners import BASE, DEFERRED, LATER, SKELETON
from tests.requirements.rows import R, Requirement, table
from tests.requirements.scan import Claim

FIRST, SECOND = table("wire", "wire §1", R("1", SKELETON, "It answers."), R("2", BASE, "It waits."))


def claim(key: str) -> Claim:
    return Claim(key, "tests/test_it.py", 7, "test_it")


def test_a_row_gets_its_id_and_source_from_its_table() -> None:
    (row,) = table("wire", "wire §1", R("1", SKELETON, "It answers."))
    assert row == Requirement("wire:1", "wire §1 #1", "It answers.", SKELETON)
    assert row.prefix == "wire"


def test_a_repeated_id_is_reported() -> None:
    assert check.repeated([FIRST, SECOND]) == []
    assert check.repeated([FIRST, SECOND, FIRST]) == ["wire:1 is the id of 2 rows"]


def test_missing_surplus_and_unknown_sources_are_reported() -> None:
    assert check.miscounted([FIRST, SECOND], {"wire": 2}) == []
    assert check.miscounted([FIRST], {"wire": 2}) == ["wire has 1 rows and must have 2"]
    assert check.miscounted([FIRST, SECOND], {"other": 1}) == [
        "other has 0 rows and must have 1",
        "wire has 2 rows and must have 0",
    ]


def test_a_row_is_deferred_with_a_reason_or_not_at_all() -> None:
    deferred = replace(FIRST, owner=DEFERRED, reason="Not needed.")
    assert check.malformed([FIRST, deferred]) == []
    assert check.malformed([replace(deferred, reason=None)]) == ["wire:1 is deferred without a reason"]
    assert check.malformed([replace(deferred, owner=LATER)]) == ["wire:1 gives a reason but is not deferred"]


def test_unknown_owners_and_sentences_over_several_lines_are_reported() -> None:
    assert check.malformed([replace(FIRST, owner="me")]) == ["wire:1 belongs to nobody known: me"]
    assert check.malformed([replace(FIRST, says=" ")]) == ["wire:1 must say one line"]
    assert check.malformed([replace(FIRST, says="One.\nTwo.")]) == ["wire:1 must say one line"]


def test_a_claim_on_a_row_that_does_not_exist_is_reported_with_its_place() -> None:
    assert check.unknown([FIRST], [claim("wire:1")]) == []
    assert check.unknown([FIRST], [claim("wire:9")]) == [
        "tests/test_it.py:7 test_it names wire:9, which is not a requirement"
    ]


def test_a_finished_issue_owes_a_test_or_a_divergence_for_each_row() -> None:
    missing = ["wire:1 has no test, and its issue is done: It answers."]
    assert check.unproven([FIRST, SECOND], proven=[], done=[SKELETON]) == missing
    assert check.unproven([FIRST, SECOND], proven=["wire:2"], done=[SKELETON]) == missing
    assert check.unproven([FIRST, SECOND], proven=["wire:1"], done=[SKELETON]) == []
    assert check.unproven([replace(FIRST, divergence="We do not.")], proven=[], done=[SKELETON]) == []
    assert check.unproven([FIRST, SECOND], proven=[], done=[]) == []


def test_only_issues_can_be_finished() -> None:
    assert check.not_issues([SKELETON]) == []
    assert check.not_issues([LATER]) == ["later is listed as done and is not an issue"]


def test_an_external_proof_names_a_case_that_its_runner_has() -> None:
    cases = parse_cases(
        'export const some = {\n  "stop: the answer ends": async (t) => {\n    "no case": async () => {}'
    )
    assert cases == {"stop: the answer ends"}
    assert check.unknown_cases({"wire:1": "conformance: stop: the answer ends"}, cases) == []
    assert check.unknown_cases({"wire:1": "conformance: gone"}, cases) == ["wire:1: the runner has no case gone"]
    assert check.unknown_cases({"wire:1": "gone"}, None) == ["wire:1: gone does not begin with the name of a runner"]


def test_without_the_runner_its_cases_are_not_checked() -> None:
    assert check.unknown_cases({"wire:1": "conformance: gone"}, None) == []
