"""A model for trying things out without any provider: fixed rules, no AI, and it says so.

Imports the model contract, ``protocol`` and ``errors``.
"""

from __future__ import annotations

from perdure.models.demo.model import DemoModel

__all__ = ["DemoModel"]
