"""Turns rows and proofs into the tables that `python -m tests.requirements` prints."""

from collections.abc import Collection, Iterable, Sequence

from tests.requirements.owners import DEFERRED, LATER, OWNERS
from tests.requirements.rows import Requirement
from tests.requirements.scan import Claim

__all__ = ["describe", "listing", "report", "state"]

_COLUMNS = ("total", "tested", "diverging", "later", "deferred", "open")


def state(row: Requirement, proven: Collection[str]) -> str:
    """The row's state in one word: `tested`, `deferred`, `later`, `diverging` (and untested) or `open`."""
    if row.id in proven:
        return "tested"
    if row.owner in (DEFERRED, LATER):
        return row.owner
    return "diverging" if row.divergence else "open"


def report(rows: Sequence[Requirement], proven: Collection[str]) -> str:
    """The whole report; its last line counts tested and deferred rows."""
    prefixes = list(dict.fromkeys(row.prefix for row in rows))
    sources = [(prefix, _counts([row for row in rows if row.prefix == prefix], proven)) for prefix in prefixes]
    sources.append(("all", _counts(rows, proven)))
    owners = [
        (owner, _counts([row for row in rows if row.owner == owner], proven))
        for owner in OWNERS
        if any(row.owner == owner for row in rows)
    ]
    tested, deferred = (sources[-1][1][_COLUMNS.index(column)] for column in ("tested", "deferred"))
    return "\n\n".join(
        (
            _table("source", _COLUMNS, sources),
            _table("owner", _COLUMNS[:2], [(owner, counts[:2]) for owner, counts in owners]),
            f"{tested} of {len(rows)} requirements tested, {deferred} deferred",
        )
    )


def listing(rows: Iterable[Requirement], proven: Collection[str]) -> str:
    """One line for each row: id, state, sentence."""
    return "\n".join(f"{row.id:<14} {state(row, proven):<9} {row.says}" for row in rows)


def describe(row: Requirement, claims: Iterable[Claim]) -> str:
    """Everything that is known of one row, and of the claims the ones that name it."""
    lines = [f"{row.id}  ({row.source})", f"  says        {row.says}", f"  owner       {row.owner}"]
    lines += [
        f"  {name:<11} {text}"
        for name, text in (("divergence", row.divergence), ("reason", row.reason), ("note", row.note))
        if text
    ]
    lines += [f"  test        {claim}" for claim in claims if claim.id == row.id]
    return "\n".join(lines)


def _counts(rows: Sequence[Requirement], proven: Collection[str]) -> tuple[int, ...]:
    return (
        len(rows),
        sum(row.id in proven for row in rows),
        sum(row.divergence is not None for row in rows),
        sum(row.owner == LATER for row in rows),
        sum(row.owner == DEFERRED for row in rows),
        sum(state(row, proven) == "open" for row in rows),
    )


def _table(title: str, columns: Sequence[str], lines: Iterable[tuple[str, Sequence[int]]]) -> str:
    lines = list(lines)
    width = max(len(title), *(len(name) for name, _ in lines))
    head = f"{title:<{width}}" + "".join(f"  {column:>9}" for column in columns)
    return "\n".join([head, *(f"{name:<{width}}" + "".join(f"  {n:>9}" for n in counts) for name, counts in lines)])
