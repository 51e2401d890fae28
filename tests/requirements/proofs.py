"""Puts together what proves the rows: the tests of this project and the cases of other runners."""

from dataclasses import dataclass
from pathlib import Path

from tests.requirements.external import EXTERNAL
from tests.requirements.scan import Claim, Scan, scan_tests

__all__ = ["PROJECT", "Proofs", "collect"]

PROJECT = Path(__file__).resolve().parents[2]


@dataclass(frozen=True, slots=True)
class Proofs:
    """The scan of the test files, and the claims of each row with those of other runners among them."""

    scan: Scan
    claims: list[Claim]
    proven: frozenset[str]


def collect(project: Path = PROJECT) -> Proofs:
    """Read the test files of the project and the table of other runners; takes well under a second."""
    scan = scan_tests(project)
    outside = [Claim(row, "tests/requirements/external.py", 0, case) for row, case in EXTERNAL.items()]
    claims = [*scan.claims, *outside]
    return Proofs(scan, claims, frozenset(claim.id for claim in claims))
