"""What a server tells of its work: events, log records that say whose they are, and OpenTelemetry spans.

Lies below everything, so that every part can report; imports nothing of perdure but the version.
"""

from __future__ import annotations

from perdure.observability.events import Event, Events, Subscriber
from perdure.observability.scope import Scope, current_scope, emit, in_turn, within

__all__ = ["Event", "Events", "Scope", "Subscriber", "current_scope", "emit", "in_turn", "within"]
