"""Rows and tests fit together: this is the test that proves the list of what is proven."""

import pytest

from tests.requirements import check
from tests.requirements.external import EXTERNAL, conformance_cases
from tests.requirements.manifest import COUNTS, ROWS
from tests.requirements.owners import DONE
from tests.requirements.proofs import PROJECT, collect

NUMBERED = ("protocol", "engine", "workspace", "codemode")


def test_every_source_has_all_its_statements() -> None:
    assert check.miscounted(ROWS, COUNTS) == []
    assert sum(COUNTS.values()) - COUNTS["product"] == 679


@pytest.mark.parametrize("source", NUMBERED)
def test_numbered_statements_run_from_one_without_a_gap(source: str) -> None:
    numbers = [row.id.removeprefix(f"{source}:") for row in ROWS if row.prefix == source]
    assert numbers == [str(n) for n in range(1, COUNTS[source] + 1)]


def test_no_two_rows_share_an_id() -> None:
    assert check.repeated(ROWS) == []


def test_every_row_has_an_owner_a_sentence_and_a_reason_if_it_is_deferred() -> None:
    assert check.malformed(ROWS) == []


def test_tests_name_only_requirements_that_exist() -> None:
    assert check.unknown(ROWS, collect().claims) == []


def test_every_marker_is_on_a_test_that_runs() -> None:
    assert collect().scan.problems == []


def test_every_row_of_a_finished_issue_has_a_test_or_a_divergence() -> None:
    assert check.not_issues(DONE) == []
    assert check.unproven(ROWS, collect().proven, DONE) == []


def test_proofs_by_the_npm_clients_name_cases_that_their_runner_has() -> None:
    assert check.unknown_cases(EXTERNAL, conformance_cases(PROJECT / "tests")) == []


def test_what_pytest_collected_was_found_in_the_files_too(request: pytest.FixtureRequest) -> None:
    found = {(claim.file, claim.id) for claim in collect().claims}
    collected = {
        (item.path.relative_to(PROJECT).as_posix(), key)
        for item in request.session.items
        for mark in item.iter_markers("requirement")
        for key in mark.args
    }
    assert collected - found == set()
