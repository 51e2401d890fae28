"""What tests of agents need, for perdure's own tests and for those of its users: a scripted model, gates, a clock.

Nothing that ships imports this package.
"""

from __future__ import annotations

from perdure.testing.clock import FakeClock
from perdure.testing.scripted import (
    Gate,
    RecordedRequest,
    ScriptedModel,
    call,
    chunk,
    fail,
    finish,
    pause,
    say,
    think,
)
from perdure.testing.strict import strict_provider_errors

__all__ = [
    "FakeClock",
    "Gate",
    "RecordedRequest",
    "ScriptedModel",
    "call",
    "chunk",
    "fail",
    "finish",
    "pause",
    "say",
    "strict_provider_errors",
    "think",
]
