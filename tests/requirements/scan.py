"""Finds which tests carry which requirements by reading the test files; imports and runs none of them."""

import ast
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

__all__ = ["Claim", "Scan", "scan_source", "scan_tests"]

_NEVER_PROVES = frozenset({"skip", "xfail"})


@dataclass(frozen=True, slots=True)
class Claim:
    """A test says that it proves a row.

    Attributes:
        id: The row's id.
        file: Path relative to the project.
        line: Line of the marker, counted from 1; 0 for a case that another runner has.
        test: The test as in pytest's node ids; empty for a marker on the whole file.
    """

    id: str
    file: str
    line: int
    test: str

    def __str__(self) -> str:
        place = f"{self.file}:{self.line}" if self.line else self.file
        return f"{place} {self.test}".rstrip()


@dataclass(slots=True)
class Scan:
    """What was found: claims that count, and markers that cannot count, as sentences."""

    claims: list[Claim] = field(default_factory=list[Claim])
    problems: list[str] = field(default_factory=list[str])


def scan_tests(project: Path) -> Scan:
    """Read every `tests/**/test_*.py` below the project folder."""
    scan = Scan()
    for path in sorted((project / "tests").rglob("test_*.py")):
        text = path.read_text(encoding="utf-8")
        if "requirement" in text:
            _Reader(path.relative_to(project).as_posix(), scan).read(text)
    return scan


def scan_source(text: str, file: str = "tests/test_it.py") -> Scan:
    """Read one test file given as text."""
    scan = Scan()
    _Reader(file, scan).read(text)
    return scan


class _Reader:
    """Walks the definitions of one file and notes the markers on them."""

    def __init__(self, file: str, scan: Scan) -> None:
        self._file = file
        self._scan = scan
        self._placed: set[ast.Call] = set()

    def read(self, text: str) -> None:
        tree = ast.parse(text, self._file)
        self._body(tree.body, owner="", skipped=False)
        for call in _markers([tree]):
            if call not in self._placed:
                self._problem(call, "the marker is not on a test")

    def _body(self, body: Sequence[ast.stmt], owner: str, skipped: bool) -> None:
        for value in _pytestmarks(body):
            skipped = skipped or _never_proves([value])
            self._note([value], owner, skipped)
        for node in body:
            if isinstance(node, ast.ClassDef) and node.name.startswith("Test"):
                name = f"{owner}{node.name}"
                never = skipped or _never_proves(node.decorator_list)
                self._note(node.decorator_list, name, never)
                self._body(node.body, f"{name}::", never)
            elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name.startswith("test"):
                never = skipped or _never_proves(node.decorator_list)
                self._note(node.decorator_list, f"{owner}{node.name}", never)

    def _note(self, marks: Sequence[ast.expr], test: str, skipped: bool) -> None:
        for call in _markers(marks):
            self._placed.add(call)
            ids = [arg.value for arg in call.args if isinstance(arg, ast.Constant) and isinstance(arg.value, str)]
            if skipped:
                self._problem(call, "a test that is skipped or expected to fail proves nothing")
            elif not ids or len(ids) != len(call.args) or call.keywords:
                self._problem(call, "the marker takes ids as string literals")
            else:
                self._scan.claims += [Claim(row, self._file, call.lineno, test.removesuffix("::")) for row in ids]

    def _problem(self, call: ast.Call, text: str) -> None:
        self._scan.problems.append(f"{self._file}:{call.lineno}: {text}")


def _pytestmarks(body: Sequence[ast.stmt]) -> Iterator[ast.expr]:
    for node in body:
        if isinstance(node, ast.Assign) and any(isinstance(t, ast.Name) and t.id == "pytestmark" for t in node.targets):
            yield node.value


def _markers(nodes: Sequence[ast.AST]) -> Iterator[ast.Call]:
    for root in nodes:
        for node in ast.walk(root):
            if isinstance(node, ast.Call) and _name(node.func) == "requirement":
                yield node


def _never_proves(marks: Sequence[ast.expr]) -> bool:
    flat = [item for mark in marks for item in (mark.elts if isinstance(mark, ast.List | ast.Tuple) else [mark])]
    return any(_name(mark.func if isinstance(mark, ast.Call) else mark) in _NEVER_PROVES for mark in flat)


def _name(node: ast.expr) -> str:
    if isinstance(node, ast.Attribute):
        return node.attr
    return node.id if isinstance(node, ast.Name) else ""
