"""Whether a turn that was interrupted goes on, and when recovery is given up (reference: engine §6.2, §6.3).

An incident is all that happened to one turn since it was first interrupted, whatever interrupted it, and whether it was
begun anew or went on. It travels with the turns that recover it. Pure: time and counts come in.
"""

from __future__ import annotations

import math
from typing import Literal

import msgspec

__all__ = ["Budget", "Cause", "GivenUp", "Incident", "backoff", "given_up", "interrupted"]

Cause = Literal["ended", "stalled", "transient"]
"""``ended``: the process went away under it; ``stalled``: the model fell silent; ``transient``: it failed in a way
that passes."""

GivenUp = Literal[
    "interrupted_attempts_exceeded",
    "work_budget_exceeded",
    "no_progress_timeout",
    "recovery_aborted",
    "max_attempts_exceeded",
    "recovery_error",
]
"""Why recovery ended without an answer."""


class Budget(msgspec.Struct, frozen=True, kw_only=True):
    """How much is tried before a turn is given up. ``math.inf`` sets no limit."""

    max_attempts: float = 10
    """Interruptions without any progress between them."""
    max_interrupted_attempts: float = 5
    """Runs that the end of the process cut off."""
    max_work: float = 10_000
    """Pieces of stream that all runs together may store."""
    no_progress_timeout: float = 300
    """Seconds without a new piece."""
    debounce: float = 30
    """Seconds in which further interruptions without progress count as the same: a deployment may restart often."""


class Incident(msgspec.Struct, frozen=True, kw_only=True):
    """A turn that was interrupted, and what was done about it."""

    root: str
    """Id of the turn that was interrupted first."""
    first_ms: int
    last_ms: int
    """When it was interrupted last: Unix time in milliseconds."""
    progress_ms: int
    """When its stream grew last."""
    attempt: int = 1
    """Interruptions since it last made progress, this one included."""
    interrupted: int = 0
    """Runs that the end of the process cut off."""
    work: int = 0
    """Pieces of stream that its runs have stored."""
    retries: int = 0
    """Failures of the model in a row that were expected to pass."""


def interrupted(
    before: Incident | None, cause: Cause, *, turn: str, work: int, now_ms: int, budget: Budget
) -> Incident:
    """A run of the turn was interrupted: what is known of it now.

    Args:
        before: What was known when the run began; ``None`` when it was the first one.
        cause: What interrupted it.
        turn: Id of the run.
        work: Pieces of stream that it stored.
        now_ms: When.
        budget: For the time in which interruptions count as one.
    """
    cut_off = 1 if cause == "ended" else 0
    retries = 1 if cause == "transient" else 0
    if before is None:
        return Incident(
            root=turn,
            first_ms=now_ms,
            last_ms=now_ms,
            progress_ms=now_ms,
            interrupted=cut_off,
            work=work,
            retries=retries,
        )
    again = now_ms - before.last_ms < budget.debounce * 1000 and cause == "ended"
    return Incident(
        root=before.root,
        first_ms=before.first_ms,
        last_ms=now_ms,
        progress_ms=now_ms if work else before.progress_ms,
        attempt=1 if work else before.attempt if again else before.attempt + 1,
        interrupted=before.interrupted + cut_off,
        work=before.work + work,
        retries=before.retries + 1 if retries and not work else retries,
    )


def given_up(incident: Incident, budget: Budget, *, refused: bool = False) -> GivenUp | None:
    """Why the turn is not to be tried again; ``None`` when it is. ``refused``: the application says no.

    What is reached first in the documented order names the reason.
    """
    if incident.interrupted >= budget.max_interrupted_attempts:
        return "interrupted_attempts_exceeded"
    if incident.work > budget.max_work:
        return "work_budget_exceeded"
    if (incident.last_ms - incident.progress_ms) / 1000 > budget.no_progress_timeout:
        return "no_progress_timeout"
    if refused:
        return "recovery_aborted"
    if incident.attempt > budget.max_attempts:
        return "max_attempts_exceeded"
    return None


def backoff(incident: Incident, retry_after: float | None = None) -> float:
    """Seconds to wait before the model is asked again after a failure that passes: doubled each time, 30 at most; what
    the provider asks for counts instead, up to 60."""
    if retry_after is not None and math.isfinite(retry_after):
        return min(max(retry_after, 0.0), 60.0)
    return min(2.0 ** max(incident.retries - 1, 0), 30.0)
