"""What is public: the package's names, and those of each module."""

import ast
import importlib
import pkgutil
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

import perdure
from perdure import errors

SOURCES = Path(perdure.__file__).parent
MODULES = sorted(
    module.name for module in pkgutil.walk_packages([str(SOURCES)], "perdure.") if not module.name.endswith("__main__")
)


def test_the_package_exports_what_it_imports_and_nothing_else() -> None:
    tree = ast.parse((SOURCES / "__init__.py").read_text(encoding="utf-8"))
    imported = {
        alias.asname or alias.name for node in tree.body if isinstance(node, ast.ImportFrom) for alias in node.names
    }
    assert set(perdure.__all__) == imported
    assert all(hasattr(perdure, name) for name in perdure.__all__)


def test_the_exports_are_in_order_and_each_is_there_once() -> None:
    assert len(set(perdure.__all__)) == len(perdure.__all__)
    listed = [name for name in perdure.__all__ if not name.startswith("__")]
    assert listed == sorted(listed, key=lambda name: (name.islower(), name))


def test_every_exception_can_be_caught_by_a_name_of_the_package() -> None:
    assert set(errors.__all__) <= set(perdure.__all__)


def test_every_export_says_what_it_is() -> None:
    undocumented = [
        name for name in perdure.__all__ if callable(getattr(perdure, name)) and not getattr(perdure, name).__doc__
    ]
    assert undocumented == []


@pytest.mark.parametrize("name", MODULES)
def test_the_names_that_a_module_lists_are_there(name: str) -> None:
    module = importlib.import_module(name)
    assert module.__doc__, "it says what it owns"
    if not _is_bare_package(module):
        assert isinstance(getattr(module, "__all__", None), list), f"{name} has no __all__"
    for exported in getattr(module, "__all__", []):
        assert hasattr(module, exported), f"{name}.__all__ lists {exported}, which is not there"


@pytest.mark.parametrize("name", MODULES)
def test_a_module_takes_from_others_only_what_they_list(name: str) -> None:
    for origin, taken in _taken(name):
        source = importlib.import_module(origin)
        listed = [*getattr(source, "__all__", []), *_submodules(source)]
        assert taken in listed, f"{name} imports {taken} from {origin}, which does not list it"


def test_importing_the_package_takes_no_provider_and_no_test_kit_along() -> None:
    heavy = ("openai", "anthropic", "google.genai", "pytest", "hypothesis", "perdure.testing", "perdure.cli")
    code = f"import perdure, sys; print([name for name in {heavy!r} if name in sys.modules])"
    result = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert result.stdout.strip() == "[]"


def _taken(name: str) -> list[tuple[str, str]]:
    """What a module imports from others of the package: their names and the names in them."""
    origin = importlib.import_module(name).__file__
    assert origin is not None
    tree = ast.parse(Path(origin).read_text(encoding="utf-8"))
    return [
        (node.module, alias.name)
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom) and node.module is not None and node.module.split(".")[0] == "perdure"
        for alias in node.names
    ]


def _is_bare_package(module: ModuleType) -> bool:
    """Whether a package holds nothing but its docstring."""
    tree = ast.parse(Path(module.__file__ or "").read_text(encoding="utf-8"))
    return hasattr(module, "__path__") and len(tree.body) == 1


def _submodules(module: ModuleType) -> list[str]:
    return [found.name for found in pkgutil.iter_modules(getattr(module, "__path__", []))]
