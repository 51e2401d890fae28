"""Makes turns out of what asks for them: a client's request, the server's own code, answers to tool calls."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

from perdure.agent.room import Room
from perdure.agent.services import PeerId
from perdure.agent.turn import Turn
from perdure.chat.concurrency import Decision
from perdure.chat.reconcile import Changes
from perdure.tools import ToolSet

__all__ = ["COALESCE_MS", "asked_by_client", "asked_by_server", "going_on"]

COALESCE_MS = 50
"""Milliseconds between the last answer and the turn that goes on: the page asks for its stream meanwhile (reference:
protocol §8.4)."""


def asked_by_client(
    room: Room, generation: int, peer: PeerId, request: str, changes: Changes, decision: Decision
) -> Turn:
    """The turn of a chat request. It runs with what the page sends with it."""
    own = [message.id for message in changes.append]
    group = None if changes.extends is None else room.interactions.group_of(changes.extends)
    if group is not None:
        room.interactions.continued(group)
    return Turn(
        id=request,
        trigger="ws-chat",
        message_id=changes.extends or room.services.new_id(),
        continuation=changes.extends is not None,
        group=group,
        generation=generation,
        parent=own[-1] if own else changes.parent,
        branches=not own and changes.parent != room.transcript.leaf,
        own_messages=own,
        origin_ids=changes.origin_ids,
        body=room.page.body,
        client_tools=room.page.tools,
        senders=[peer],
        not_before_ms=decision.quiet_until or 0,
    )


def asked_by_server(
    room: Room,
    generation: int,
    trigger: str,
    *,
    inputs: Any,
    continuation: bool,
    body: Mapping[str, Any] | None,
    client_tools: ToolSet | None,
    unanswered: frozenset[str],
) -> Turn:
    """A turn with a result to wait for. Without a body and client tools of its own it runs with the page's."""
    return Turn(
        id=room.services.new_id(),
        trigger=trigger,
        message_id=room.services.new_id(),
        generation=generation,
        continuation=continuation,
        body=room.page.body if body is None else body,
        client_tools=room.page.tools if client_tools is None else client_tools,
        unanswered=unanswered,
        inputs=inputs,
        result=asyncio.get_running_loop().create_future(),
    )


def going_on(room: Room, generation: int, group: str, message: str | None = None, attempts: int = 0) -> Turn:
    """The turn that goes on with ``message`` after the calls of the turn ``group`` were answered: by default, with the
    message that holds those calls."""
    return Turn(
        id=room.interactions.continued(group) or room.services.new_id(),
        trigger="auto-continuation",
        message_id=message or room.interactions.of(group)[0].message,
        generation=generation,
        continuation=True,
        group=group,
        not_before_ms=room.services.now_ms() + COALESCE_MS,
        attempts=attempts,
        body=room.page.body,
        client_tools=room.page.tools,
    )
