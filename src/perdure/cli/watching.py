"""Which Python files below a folder have changed since the last look."""

from __future__ import annotations

import os
from pathlib import Path

__all__ = ["Watch"]

_SKIPPED = {"__pycache__", "node_modules", "site-packages"}


class Watch:
    """Remembers what the files looked like."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._seen = self._look()

    def changes(self) -> list[str]:
        """The files that were changed, added or removed since the last call, as paths below the folder."""
        now = self._look()
        before, self._seen = self._seen, now
        changed = {path for path, state in now.items() if before.get(path) != state} | (before.keys() - now.keys())
        return sorted(os.path.relpath(path, self._folder) for path in changed)

    def _look(self) -> dict[str, tuple[int, int]]:
        found: dict[str, tuple[int, int]] = {}
        for folder, folders, files in os.walk(self._folder):
            folders[:] = [name for name in folders if not name.startswith(".") and name not in _SKIPPED]
            for name in files:
                if name.endswith(".py"):
                    path = os.path.join(folder, name)
                    try:
                        status = os.stat(path)
                    except FileNotFoundError:
                        continue  # gone since it was listed
                    found[path] = (status.st_mtime_ns, status.st_size)
        return found
