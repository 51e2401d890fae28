"""What the server must do, statement by statement, and which test proves it.

Tests carry `@requirement("protocol:48", "fault:RS-01")`; `python -m tests.requirements` prints how many rows are
proven; `test_manifest.py` fails when rows and tests do not fit together. The rows are in `manifest`.
"""

from tests.requirements.marker import requirement

__all__ = ["requirement"]
