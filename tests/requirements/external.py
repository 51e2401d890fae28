"""Requirements that a runner outside pytest proves, and the cases that this runner has.

The runner is the conformance run of the npm clients; a case is named by its title.
"""

import re
from pathlib import Path
from typing import Final

__all__ = ["CONFORMANCE", "EXTERNAL", "conformance_cases", "parse_cases"]

CONFORMANCE: Final = "conformance: "
"""What a value of `EXTERNAL` begins with; the case's title follows."""

EXTERNAL: Final[dict[str, str]] = {
    "protocol:8": "conformance: client: a URL of the app's own leads to an agent that says its name",
    "protocol:16": "conformance: client: a refused connection says why and is not tried again",
    "protocol:38": "conformance: client: a call made while the line is down goes out when it is back",
}
"""Row id to case, for example `{"protocol:97": "conformance: resume: the page is reloaded mid-stream"}`."""

_CASE = re.compile(r"""^  "(?P<title>[^"]+)": async \(""", re.MULTILINE)


def parse_cases(script: str) -> frozenset[str]:
    """Titles of the cases that a module of the runner has: the members of its object, one level in."""
    return frozenset(match["title"] for match in _CASE.finditer(script))


def conformance_cases(tests: Path) -> frozenset[str] | None:
    """Titles of the cases in `wire/cases` below the `tests` folder, or None if it is not there."""
    folder = tests / "wire" / "cases"
    if not folder.is_dir():
        return None
    return frozenset[str]().union(*(parse_cases(file.read_text(encoding="utf-8")) for file in folder.glob("*.mjs")))
