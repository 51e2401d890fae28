"""``perdure new``: makes a project that runs, with a test that passes."""

from __future__ import annotations

import argparse
import re
from importlib.resources import files
from pathlib import Path

from perdure._version import __version__
from perdure.errors import ConfigurationError

__all__ = ["new"]

_FILES = {
    "app.py": "app.py.template",
    "test_app.py": "test_app.py.template",
    "pyproject.toml": "pyproject.toml.template",
    "README.md": "README.md.template",
    ".gitignore": "gitignore.template",
}


def new(options: argparse.Namespace) -> int:
    """Make the folder ``options.name``.

    Raises:
        ConfigurationError: the name is no project's, or the folder is there and not empty.
    """
    folder = Path(options.name)
    name = folder.resolve().name
    if not re.fullmatch(r"[A-Za-z0-9]([A-Za-z0-9._-]*[A-Za-z0-9])?", name):
        raise ConfigurationError(
            f"{name!r} cannot be a project's name. Use letters, digits, and - or _ between them, like my-agent."
        )
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise ConfigurationError(f"{folder} is there already, and not empty. Choose another name.")
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for path, template in _FILES.items():
            (folder / path).write_text(_filled(template, name), encoding="utf-8")
    except OSError as error:
        raise ConfigurationError(f"The project cannot be written: {error}") from error
    print(f"Made {folder}. Next:\n\n  cd {folder}\n  perdure dev app.py    # then open http://127.0.0.1:8000\n  pytest")
    return 0


def _filled(template: str, name: str) -> str:
    text = files("perdure.cli").joinpath("template", template).read_text(encoding="utf-8")
    return text.replace("{{name}}", name).replace("{{version}}", __version__)
