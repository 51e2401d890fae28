"""The ``perdure`` command. Imports everything below; nothing imports it."""

from __future__ import annotations

from perdure.cli.main import main

__all__ = ["main"]
