"""How an app is named on the command line, and what is said of names that name none."""

import sys
from pathlib import Path

import pytest

from perdure.cli.target import load
from perdure.errors import ConfigurationError

APP = "from perdure import App, Agent\n\nclass Some(Agent): pass\n\napp = App(Some)\nother = App(Some)\nnothing = 5\n"


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    known = set(sys.modules)
    yield tmp_path
    for name in set(sys.modules) - known:
        del sys.modules[name]


@pytest.mark.parametrize(
    ("path", "target", "name"),
    [
        ("chat_one.py", "chat_one.py", "app"),
        ("chat_two.py", "chat_two.py:other", "other"),
        ("chat_three.py", "chat_three", "app"),
        ("chat_four.py", "chat_four:other", "other"),
        ("chat_pkg/inner.py", "chat_pkg.inner:app", "app"),
        ("chat_folder/main_file.py", "chat_folder/main_file.py", "app"),
    ],
)
def test_an_app_is_found_by_file_and_by_module(folder: Path, path: str, target: str, name: str) -> None:
    (folder / path).parent.mkdir(exist_ok=True)
    (folder / path).write_text(APP)
    app = load(target)
    assert app is getattr(sys.modules[type_module(app)], name)


def type_module(app: object) -> str:
    return next(iter(app.agents.values())).__module__  # type: ignore[attr-defined]


def test_a_file_elsewhere_is_found_with_what_lies_beside_it(folder: Path) -> None:
    (folder / "deep").mkdir()
    (folder / "deep" / "beside_it.py").write_text("VALUE = 1\n")
    (folder / "deep" / "using_it.py").write_text("from beside_it import VALUE\n" + APP)
    assert load(str(folder / "deep" / "using_it.py")).agents


@pytest.mark.parametrize(
    ("target", "complaint"),
    [
        ("", "does not name an app"),
        (":app", "does not name an app"),
        ("a-b", "does not name an app"),
        ("a..b:app", "does not name an app"),
        ("absent.py", "There is no file 'absent.py' here"),
        ("absent_module:app", "There is no module 'absent_module' here"),
        ("os.absent:app", "There is no module 'os.absent' here"),
        ("chat_five:nothing", "has no perdure.App called 'nothing'"),
        ("chat_five:absent", "has no perdure.App called 'absent'"),
    ],
)
def test_what_names_no_app_is_explained(folder: Path, target: str, complaint: str) -> None:
    (folder / "chat_five.py").write_text(APP)
    with pytest.raises(ConfigurationError, match=complaint):
        load(target)


def test_an_import_that_fails_inside_the_app_is_shown_as_it_is(folder: Path) -> None:
    (folder / "chat_six.py").write_text("import a_library_that_is_missing\n")
    with pytest.raises(ModuleNotFoundError, match="a_library_that_is_missing"):
        load("chat_six:app")
