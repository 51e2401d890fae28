"""Finds the app that a command line names."""

from __future__ import annotations

import importlib
import os
import sys
from pathlib import Path

from perdure.errors import ConfigurationError
from perdure.server.app import App

__all__ = ["load"]


def load(target: str) -> App:
    """The app that ``app.py``, ``folder/app.py:name``, ``module`` or ``module:name`` names.

    Raises:
        ConfigurationError: there is none.
        Exception: what the module raises.
    """
    place, _, name = target.partition(":")
    name = name or "app"
    if place.endswith(".py"):
        path = Path(place).resolve()
        if not path.is_file():
            raise ConfigurationError(f"There is no file {place!r} here.")
        folder, module_name = str(path.parent), path.stem
    else:
        folder, module_name = os.getcwd(), place
    if not module_name or not all(part.isidentifier() for part in module_name.split(".")):
        raise ConfigurationError(
            f"{target!r} does not name an app. Write the file, like app.py, or module:name, like package.module:app."
        )
    app = getattr(_module(module_name, folder), name, None)
    if not isinstance(app, App):
        raise ConfigurationError(f"{place} has no perdure.App called {name!r}. Add: {name} = App(YourAgent)")
    return app


def _module(name: str, folder: str) -> object:
    if folder not in sys.path:
        sys.path.insert(0, folder)
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        if error.name is None or not f"{name}.".startswith(f"{error.name}."):
            raise
        raise ConfigurationError(
            f"There is no module {name!r} here. Run perdure in the folder that holds it."
        ) from error
