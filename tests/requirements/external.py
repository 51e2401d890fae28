"""Requirements that a runner outside pytest proves, and the cases that this runner has.

The runner is the conformance run of the npm clients; a case is named by its title.
"""

import re
from pathlib import Path
from typing import Final

__all__ = ["CONFORMANCE", "EXTERNAL", "conformance_cases", "parse_cases"]

CONFORMANCE: Final = "conformance: "
"""What a value of `EXTERNAL` begins with; the case's title follows."""

EXTERNAL: Final[dict[str, str]] = {}
"""Row id to case, for example `{"protocol:97": "conformance: resume: the page is reloaded mid-stream"}`."""

_CASE = re.compile(r"""^test\(\s*(["'`])(?P<title>(?:\\.|(?!\1).)+)\1""", re.MULTILINE)


def parse_cases(script: str) -> frozenset[str]:
    """Titles of the cases that a conformance script declares with `test("title", …)` at the start of a line."""
    return frozenset(match["title"].replace("\\", "") for match in _CASE.finditer(script))


def conformance_cases(tests: Path) -> frozenset[str] | None:
    """Titles of the cases of `wire/conformance.mjs` below the `tests` folder, or None if it is not there."""
    script = tests / "wire" / "conformance.mjs"
    return parse_cases(script.read_text(encoding="utf-8")) if script.is_file() else None
