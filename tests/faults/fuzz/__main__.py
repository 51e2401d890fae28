"""``python -m tests.faults.fuzz [--minutes 10] [--seed N] [--shrink]``: plans of many seeds until the time is over."""

from __future__ import annotations

import argparse
import pprint
import random
import re
import sys
import time
import warnings

from hypothesis import HealthCheck, Phase, given, seed, settings

from tests.faults.fuzz.plans import Plan, plans
from tests.faults.fuzz.session import Session

PORTION = 50
"""Plans under one seed, at one server."""


def attack(number: int, *, shrink: bool, until: float) -> int:
    """Play plans of one seed. Gives how many; raises what is wrong."""
    played = 0
    failures: list[tuple[Plan, BaseException]] = []
    with Session.runner() as (runner, session):

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
        def play(plan: Plan) -> None:
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


def _shown(plan: Plan) -> str:
    """The plan, with what is repeated in it cut short."""
    text = pprint.pformat(plan, width=1_000_000)
    return re.sub(r"(.{1,16}?)\1{20,}", lambda found: f"{found[1]}×{len(found[0]) // len(found[1])}", text)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--minutes", type=float, default=10)
    parser.add_argument("--seed", type=int, default=None, help="begin with this seed (default: any)")
    parser.add_argument("--shrink", action="store_true", help="look for the smallest plan that fails; takes minutes")
    options = parser.parse_args()
    warnings.simplefilter("error")
    number = random.randrange(2**31) if options.seed is None else options.seed
    until, played = time.monotonic() + options.minutes * 60, 0
    while time.monotonic() < until:
        try:
            played += attack(number, shrink=options.shrink, until=until)
        except BaseException:
            print(f"seed {number}, after {played} plans", flush=True)
            raise
        number += 1
    print(f"{played} plans, the last seed was {number - 1}: all is well")
    return 0


if __name__ == "__main__":
    sys.exit(main())
