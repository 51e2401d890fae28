"""Plays plans of many seeds until the time is over or one fails: what ``python -m tests.faults.fuzz`` and others do."""

from __future__ import annotations

import argparse
import asyncio
import pprint
import random
import re
import time
import warnings
from collections.abc import Coroutine
from contextlib import AbstractContextManager
from typing import Any, Protocol

from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st

__all__ = ["main"]

PORTION = 50
"""Plans under one seed, at one server."""


class Plays(Protocol):
    """Plays plans."""

    complaints: Any

    def play(self, plan: Any) -> Coroutine[Any, Any, None]: ...


class Sessions(Protocol):
    """Makes what plays them."""

    def runner(self) -> AbstractContextManager[tuple[asyncio.Runner, Plays]]: ...


def main(doc: str | None, plans: st.SearchStrategy[Any], sessions: Sessions) -> int:
    """Read the command line and play. Gives the exit code."""
    parser = argparse.ArgumentParser(description=doc)
    parser.add_argument("--minutes", type=float, default=10)
    parser.add_argument("--seed", type=int, default=None, help="begin with this seed (default: any)")
    parser.add_argument("--shrink", action="store_true", help="look for the smallest plan that fails; takes minutes")
    options = parser.parse_args()
    warnings.simplefilter("error")
    number = random.randrange(2**31) if options.seed is None else options.seed
    until, played = time.monotonic() + options.minutes * 60, 0
    while time.monotonic() < until:
        try:
            played += _attack(plans, sessions, number, shrink=options.shrink, until=until)
        except BaseException:
            print(f"seed {number}, after {played} plans", flush=True)
            raise
        number += 1
    print(f"{played} plans, the last seed was {number - 1}: all is well")
    return 0


def _attack(plans: st.SearchStrategy[Any], sessions: Sessions, number: int, *, shrink: bool, until: float) -> int:
    """Play plans of one seed. Gives how many; raises what is wrong."""
    played = 0
    failures: list[tuple[Any, BaseException]] = []
    with sessions.runner() as (runner, session):

        @seed(number)
        @settings(
            max_examples=PORTION,
            deadline=None,
            database=None,
            phases=(Phase.generate, Phase.shrink) if shrink else (Phase.generate,),
            suppress_health_check=list(HealthCheck),
            report_multiple_bugs=False,
            print_blob=False,
        )
        @given(plan=plans)
        def play(plan: Any) -> None:
            nonlocal played
            if failures or time.monotonic() > until:
                return
            played += 1
            try:
                runner.run(session.play(plan))
            except Exception as error:
                # When frames arrive is up to the machine: another try need not fail, and hypothesis would insist on it.
                if shrink:
                    raise
                failures.append((plan, error))
            finally:
                session.complaints.found.clear()

        play()
        for plan, error in failures:
            print(_shown(plan))
            raise error
    return played


def _shown(plan: Any) -> str:
    """The plan, with what is repeated in it cut short."""
    text = pprint.pformat(plan, width=1_000_000)
    return re.sub(r"(.{1,16}?)\1{20,}", lambda found: f"{found[1]}×{len(found[0]) // len(found[1])}", text)
