"""The rules that rows and tests must keep, each as a function that returns what breaks it, as sentences."""

from collections import Counter
from collections.abc import Collection, Iterable, Mapping

from tests.requirements.external import CONFORMANCE
from tests.requirements.owners import DEFERRED, ISSUES, OWNERS
from tests.requirements.rows import Requirement
from tests.requirements.scan import Claim

__all__ = ["malformed", "miscounted", "not_issues", "repeated", "unknown", "unknown_cases", "unproven"]


def repeated(rows: Iterable[Requirement]) -> list[str]:
    """Ids that more than one row has."""
    return [f"{key} is the id of {n} rows" for key, n in Counter(row.id for row in rows).items() if n > 1]


def miscounted(rows: Iterable[Requirement], counts: Mapping[str, int]) -> list[str]:
    """Sources that have more or fewer rows than they must, or that nobody knows."""
    found = Counter(row.prefix for row in rows)
    return [
        f"{source} has {found[source]} rows and must have {counts.get(source, 0)}"
        for source in sorted({*found, *counts})
        if found[source] != counts.get(source, 0)
    ]


def malformed(rows: Iterable[Requirement]) -> list[str]:
    """Rows of an unknown owner, without a sentence, deferred without a reason, or with a reason but not deferred."""
    wrong: list[str] = []
    for row in rows:
        if row.owner not in OWNERS:
            wrong.append(f"{row.id} belongs to nobody known: {row.owner}")
        if not row.says.strip() or "\n" in row.says:
            wrong.append(f"{row.id} must say one line")
        if row.owner == DEFERRED and not row.reason:
            wrong.append(f"{row.id} is deferred without a reason")
        if row.owner != DEFERRED and row.reason:
            wrong.append(f"{row.id} gives a reason but is not deferred")
    return wrong


def unknown(rows: Iterable[Requirement], claims: Iterable[Claim]) -> list[str]:
    """Claims that name an id which no row has."""
    ids = {row.id for row in rows}
    return [f"{claim} names {claim.id}, which is not a requirement" for claim in claims if claim.id not in ids]


def unproven(rows: Iterable[Requirement], proven: Collection[str], done: Collection[str]) -> list[str]:
    """Rows of finished issues that have neither a test nor a recorded divergence."""
    return [
        f"{row.id} has no test, and its issue is done: {row.says}"
        for row in rows
        if row.owner in done and row.id not in proven and not row.divergence
    ]


def not_issues(done: Iterable[str]) -> list[str]:
    """Entries of the list of finished issues that are no issue's title."""
    return [f"{title} is listed as done and is not an issue" for title in done if title not in ISSUES]


def unknown_cases(external: Mapping[str, str], cases: Collection[str] | None) -> list[str]:
    """External proofs that name no known runner, or a case that its runner lacks; `cases` is None if it is absent."""
    wrong: list[str] = []
    for row, case in external.items():
        if not case.startswith(CONFORMANCE):
            wrong.append(f"{row}: {case} does not begin with the name of a runner")
        elif cases is not None and case.removeprefix(CONFORMANCE) not in cases:
            wrong.append(f"{row}: the runner has no case {case.removeprefix(CONFORMANCE)}")
    return wrong
