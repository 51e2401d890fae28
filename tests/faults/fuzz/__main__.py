"""``python -m tests.faults.fuzz [--minutes 10] [--seed N] [--shrink]``: plans of many seeds until the time is over."""

from __future__ import annotations

import sys

from tests.faults.attacks import main
from tests.faults.fuzz.plans import plans
from tests.faults.fuzz.session import Session

if __name__ == "__main__":
    sys.exit(main(__doc__, plans, Session))
