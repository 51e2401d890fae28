"""The shape of one requirement, and the short form in which the source modules write them."""

from dataclasses import dataclass
from typing import NamedTuple

__all__ = ["R", "Requirement", "table"]


@dataclass(frozen=True, slots=True)
class Requirement:
    """One statement that a test can prove.

    Decisions are cited by their number on the references' index page, where the sources are weighed against each other.

    Attributes:
        id: `source:key`, for example `protocol:48` or `fault:RS-01`.
        source: Reference page and section with the statement's number there.
        says: The behaviour in one sentence.
        owner: Title of the issue that owes it, or `later`, or `deferred`.
        divergence: What we do instead where we differ from the statement, and why; None where we do not.
        reason: Why the row is deferred; None for every other row.
        note: What else the writer of the test should know.
    """

    id: str
    source: str
    says: str
    owner: str
    divergence: str | None = None
    reason: str | None = None
    note: str | None = None

    @property
    def prefix(self) -> str:
        """The source's short name, the part of the id before the colon."""
        return self.id.partition(":")[0]


class R(NamedTuple):
    """A row as the source modules write it; `table` adds what all rows of a section share."""

    key: str
    owner: str
    says: str
    divergence: str | None = None
    reason: str | None = None
    note: str | None = None


def table(prefix: str, section: str, *rows: R) -> tuple[Requirement, ...]:
    """Complete the rows of one section: ids get `prefix`, sources get `section`."""
    return tuple(
        Requirement(
            id=f"{prefix}:{row.key}",
            source=f"{section} #{row.key}",
            says=row.says,
            owner=row.owner,
            divergence=row.divergence,
            reason=row.reason,
            note=row.note,
        )
        for row in rows
    )
