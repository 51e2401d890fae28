"""The scanner finds markers wherever pytest would, and says which cannot count."""

from pathlib import Path

import pytest

from tests.requirements import requirement as tie
from tests.requirements.scan import Claim, scan_source, scan_tests


def test_the_decorator_is_a_pytest_marker_that_carries_the_ids() -> None:
    mark = tie("wire:1", "fault:XX-01").mark
    assert (mark.name, mark.args) == ("requirement", ("wire:1", "fault:XX-01"))


def test_markers_are_found_on_functions_classes_methods_parameters_and_files() -> None:
    scan = scan_source(
        """
pytestmark = [pytest.mark.anyio, requirement("wire:1")]

@requirement("wire:2", "wire:3")
def test_plain(): ...

@pytest.mark.requirement("wire:4")
async def test_async(): ...

@pytest.mark.parametrize("n", [1, pytest.param(2, marks=requirement("wire:5"))])
def test_each(n): ...

@requirement("wire:6")
class TestGroup:
    @requirement("wire:7")
    def test_method(self): ...
"""
    )
    assert scan.problems == []
    assert [(claim.id, claim.line, claim.test) for claim in scan.claims] == [
        ("wire:1", 2, ""),
        ("wire:2", 4, "test_plain"),
        ("wire:3", 4, "test_plain"),
        ("wire:4", 7, "test_async"),
        ("wire:5", 10, "test_each"),
        ("wire:6", 13, "TestGroup"),
        ("wire:7", 15, "TestGroup::test_method"),
    ]


@pytest.mark.parametrize(
    "mark",
    ["@pytest.mark.skip", '@pytest.mark.skip(reason="slow")', "@pytest.mark.xfail(strict=True)"],
)
def test_a_test_that_never_runs_or_must_fail_proves_nothing(mark: str) -> None:
    scan = scan_source(f'{mark}\n@requirement("wire:1")\ndef test_it(): ...\n')
    assert scan.claims == []
    assert scan.problems == ["tests/test_it.py:2: a test that is skipped or expected to fail proves nothing"]


def test_a_skipped_file_or_class_proves_nothing_either() -> None:
    file = scan_source('pytestmark = [pytest.mark.skip]\n@requirement("wire:1")\ndef test_it(): ...\n')
    group = scan_source('@pytest.mark.skip\nclass TestGroup:\n    @requirement("wire:1")\n    def test_it(self): ...\n')
    assert (file.claims, group.claims) == ([], [])
    assert len(file.problems) == len(group.problems) == 1


def test_a_test_skipped_only_under_a_condition_counts() -> None:
    scan = scan_source('@pytest.mark.skipif(NO_NODE, reason="")\n@requirement("wire:1")\ndef test_it(): ...\n')
    assert [claim.id for claim in scan.claims] == ["wire:1"]


@pytest.mark.parametrize("call", ["requirement(*IDS)", "requirement()", 'requirement("wire:1", IDS[0])'])
def test_ids_that_cannot_be_read_are_reported(call: str) -> None:
    scan = scan_source(f"@{call}\ndef test_it(): ...\n")
    assert scan.claims == []
    assert scan.problems == ["tests/test_it.py:1: the marker takes ids as string literals"]


def test_a_marker_on_something_that_is_no_test_is_reported() -> None:
    scan = scan_source('@requirement("wire:1")\ndef helper(): ...\n\nMARK = requirement("wire:2")\n')
    assert scan.claims == []
    assert scan.problems == [
        "tests/test_it.py:1: the marker is not on a test",
        "tests/test_it.py:4: the marker is not on a test",
    ]


def test_all_test_files_below_tests_are_read_and_no_others(tmp_path: Path) -> None:
    deep = tmp_path / "tests" / "wire"
    deep.mkdir(parents=True)
    source = '@requirement("wire:1")\ndef test_it(): ...\n'
    for file in (deep / "test_it.py", deep / "helpers.py", tmp_path / "test_it.py"):
        file.write_text(source, encoding="utf-8")
    assert scan_tests(tmp_path).claims == [Claim("wire:1", "tests/wire/test_it.py", 1, "test_it")]
