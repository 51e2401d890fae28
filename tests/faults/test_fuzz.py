"""A short part of the fuzz test, the same every time. ``python -m tests.faults.fuzz`` goes on from there."""

import pytest
from hypothesis import HealthCheck, Phase, given, settings

from tests.faults.fuzz.plans import Plan, plans
from tests.faults.fuzz.session import Session
from tests.requirements import requirement
from tests.support import ErrorLog


@requirement("fault:SC-02", "fault:SC-03", "fault:SC-09")
@pytest.mark.timeout(180)
def test_whatever_clients_send_every_request_ends_once_and_the_agents_answer(log: ErrorLog) -> None:
    with Session.runner() as (runner, session):

        @settings(
            derandomize=True,
            max_examples=15,
            deadline=None,
            database=None,
            # When frames arrive is up to the machine: the plan that failed says more than a smaller one that may not.
            phases=(Phase.generate,),
            suppress_health_check=list(HealthCheck),
        )
        @given(plan=plans)
        def play(plan: Plan) -> None:
            runner.run(session.play(plan))

        play()
    log.errors.clear()  # the session has looked at them: what is left was made on purpose
