"""The report counts each row once per column and ends with the line that others read."""

import pytest

from tests.requirements.__main__ import main
from tests.requirements.manifest import ROWS
from tests.requirements.owners import BASE, DEFERRED, LATER, SKELETON
from tests.requirements.report import describe, listing, report
from tests.requirements.rows import R, table
from tests.requirements.scan import Claim

WIRE = table(
    "wire",
    "wire §1",
    R("1", SKELETON, "It answers."),
    R("2", SKELETON, "It waits.", divergence="We do not wait."),
    R("3", BASE, "It stops."),
)
REST = table("rest", "rest §1", R("1", LATER, "It grows."), R("2", DEFERRED, "It sings.", reason="No voice."))
PROVEN = {"wire:1"}


def test_the_report_counts_rows_per_source_and_owner() -> None:
    lines = [line.split() for line in report([*WIRE, *REST], PROVEN).splitlines() if line]
    assert lines[:4] == [
        ["source", "total", "tested", "diverging", "later", "deferred", "open"],
        ["wire", "3", "1", "1", "0", "0", "1"],
        ["rest", "2", "0", "0", "1", "1", "0"],
        ["all", "5", "1", "1", "1", "1", "1"],
    ]
    assert [(" ".join(line[:-2]), *line[-2:]) for line in lines[4:-1]] == [
        ("owner", "total", "tested"),
        (SKELETON, "2", "1"),
        (BASE, "1", "0"),
        (LATER, "1", "0"),
        (DEFERRED, "1", "0"),
    ]


def test_the_last_line_sums_up() -> None:
    assert report([*WIRE, *REST], PROVEN).splitlines()[-1] == "1 of 5 requirements tested, 1 deferred"


def test_a_listing_gives_each_row_its_state() -> None:
    states = [line.split()[:2] for line in listing([*WIRE, *REST], PROVEN).splitlines()]
    assert states == [
        ["wire:1", "tested"],
        ["wire:2", "diverging"],
        ["wire:3", "open"],
        ["rest:1", "later"],
        ["rest:2", "deferred"],
    ]


def test_a_row_is_described_with_its_tests_and_its_divergence() -> None:
    claims = [Claim("wire:2", "tests/test_it.py", 7, "test_it"), Claim("wire:1", "tests/test_it.py", 9, "test_other")]
    text = describe(WIRE[1], claims)
    assert "We do not wait." in text
    assert "tests/test_it.py:7 test_it" in text
    assert "test_other" not in text


def test_the_command_closes_with_the_count_of_all_rows(capsys: pytest.CaptureFixture[str]) -> None:
    main([])
    last = capsys.readouterr().out.splitlines()[-1]
    assert last.endswith(f" of {len(ROWS)} requirements tested, {sum(row.owner == DEFERRED for row in ROWS)} deferred")


def test_the_command_shows_rows_by_id_and_by_owner(capsys: pytest.CaptureFixture[str]) -> None:
    main(["protocol:48", "fault:RS-01"])
    shown = capsys.readouterr().out
    assert "protocol §16.3 #48" in shown
    assert "fault:RS-01" in shown
    main(["--owner", "mcp"])
    assert "fault:MC-01" in capsys.readouterr().out


def test_the_command_refuses_an_id_that_does_not_exist(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as refused:
        main(["protocol:0"])
    assert refused.value.code == 2
    assert "protocol:0 is not a requirement" in capsys.readouterr().err
