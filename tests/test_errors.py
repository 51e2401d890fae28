"""The exception tree, as it is drawn and as it is."""

import inspect
import re
import types

import pytest

from perdure import errors

_LINE = re.compile(r"^(?P<branch>(?:│   |    |├── |└── )*)(?P<name>[A-Z]\w+)(?:\s{2,}(?P<text>\S.*))?$")


def drawn() -> dict[str, tuple[str | None, str]]:
    """Each name in the drawing, with its parent and what stands beside it."""
    tree: dict[str, tuple[str | None, str]] = {}
    above: list[str] = []
    for line in inspect.cleandoc(errors.__doc__ or "").splitlines():
        match = _LINE.match(line.removeprefix("    "))
        if match is None or not line.startswith("    "):
            continue
        depth = len(match["branch"]) // 4
        assert depth <= len(above), line
        del above[depth:]
        assert match["name"] not in tree, f"{match['name']} is drawn twice"
        tree[match["name"]] = (above[-1] if above else None, match["text"] or "")
        above.append(match["name"])
    return tree


def defined() -> dict[str, type[BaseException]]:
    return {
        name: value
        for name, value in vars(errors).items()
        if isinstance(value, type) and issubclass(value, BaseException) and value.__module__ == errors.__name__
    }


def test_every_exception_is_drawn_under_its_parent() -> None:
    tree = drawn()
    assert len(tree) > 10, "the drawing was read"
    assert tree.keys() == defined().keys()
    for name, (parent, _) in tree.items():
        bases = defined()[name].__bases__
        assert bases == ((Exception,) if parent is None else (defined()[parent],)), name


def test_only_the_root_is_drawn_without_words() -> None:
    assert [name for name, (_, text) in drawn().items() if not text] == ["PerdureError"]


def test_all_exceptions_are_public() -> None:
    assert sorted(errors.__all__) == sorted(defined())


def test_every_exception_has_a_code_of_its_own() -> None:
    codes = {name: kind.code for name, kind in defined().items() if issubclass(kind, errors.PerdureError)}
    assert len(set(codes.values())) == len(codes) == len(defined())
    assert all(re.fullmatch("[a-z]+(_[a-z]+)*", code) for code in codes.values())
    for name, kind in defined().items():
        assert "code" in vars(kind), f"{name} inherits its code"


@pytest.mark.parametrize(
    ("error", "text"),
    [
        (
            errors.MissingExtra('the model "anthropic:claude-sonnet-5"', 'pip install "perdure[anthropic]"'),
            'the model "anthropic:claude-sonnet-5" needs a part that is not installed. '
            'Install it with: pip install "perdure[anthropic]"',
        ),
        (
            errors.StorageInUse("/data"),
            "The data folder /data is in use by another perdure process. "
            "Stop that process, or give this one another folder with --data.",
        ),
        (
            errors.NewerSchema("/data/perdure.db", 7, 3),
            "/data/perdure.db has schema version 7; this perdure knows versions up to 3. "
            "Upgrade perdure, or use the data folder of the older version.",
        ),
        (
            errors.UnknownTool("zzz", ["add", "sub"]),
            "Model tried to call unavailable tool 'zzz'. Available tools: add, sub.",
        ),
        (errors.UnknownTool("zzz", []), "Model tried to call unavailable tool 'zzz'. Available tools: none."),
        (errors.ModelRejected("quota exceeded", status=429), "quota exceeded"),
    ],
)
def test_an_error_says_what_is_wrong_and_what_to_do(error: Exception, text: str) -> None:
    assert str(error) == text


def test_a_refusal_says_its_status_where_there_is_one() -> None:
    assert (errors.ModelRejected("no", status=429).status, errors.ModelRejected("no").status) == (429, None)


def test_the_module_defines_nothing_but_exceptions() -> None:
    functions = [name for name, value in vars(errors).items() if isinstance(value, types.FunctionType)]
    assert functions == []
