"""A short part of the test of calls that wait, the same every time. ``python -m tests.faults.calls`` plays on."""

import pytest
from hypothesis import HealthCheck, Phase, given, settings

from tests.faults.calls.plans import Plan, plans
from tests.faults.calls.session import CallsSession
from tests.support import ErrorLog


@pytest.mark.timeout(180)
def test_whatever_happens_no_call_that_waits_is_lost_and_none_runs_twice(log: ErrorLog) -> None:
    with CallsSession.runner() as (runner, session):

        @settings(
            derandomize=True,
            max_examples=15,
            deadline=None,
            database=None,
            # What happens first is up to the machine: the plan that failed says more than a smaller one that may not.
            phases=(Phase.generate,),
            suppress_health_check=list(HealthCheck),
        )
        @given(plan=plans)
        def play(plan: Plan) -> None:
            runner.run(session.play(plan))

        play()
    log.errors.clear()  # the session has looked at them: what is left was made on purpose
