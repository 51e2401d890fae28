"""Which function applies which operation and answers which query. Holds no SQL."""

from __future__ import annotations

from collections.abc import Callable
from sqlite3 import Cursor
from typing import Any

from perdure.storage import contract
from perdure.storage import families as family_contract
from perdure.storage import interactions as interaction_contract
from perdure.storage import queue as queue_contract
from perdure.storage import timers as timer_contract
from perdure.storage.sqlite import (
    agents,
    attachments,
    branches,
    chunks,
    families,
    interactions,
    messages,
    queue,
    timers,
    turns,
    values,
)

__all__ = ["ANSWERS", "APPLIES", "UNBOUNDED", "Answer", "Apply"]

Apply = Callable[[Cursor, int, Any], None]
"""``apply(cursor, agent number, operation)``, inside the writer's transaction."""

Answer = Callable[[Cursor, Any], Any]
"""``answer(cursor, query)``, inside a read transaction: all of its selects see the same state."""


def _clear_conversation(cursor: Cursor, agent: int, operation: contract.ClearConversation) -> None:
    chunks.clear_chunks(cursor, agent)
    turns.clear_turns(cursor, agent)
    messages.clear_messages(cursor, agent)
    attachments.clear_attachments(cursor, agent)
    interactions.clear_interactions(cursor, agent)


APPLIES: dict[type[contract.Operation], Apply] = {
    contract.PutAttachment: attachments.put_attachment,
    contract.AppendMessage: messages.append_message,
    contract.UpdateMessage: messages.update_message,
    contract.MoveMessage: messages.move_message,
    contract.LeaveOutMessage: messages.leave_out_message,
    contract.OpenTurn: turns.open_turn,
    contract.UpdateTurn: turns.update_turn,
    contract.CloseTurn: turns.close_turn,
    contract.AppendChunks: chunks.append_chunks,
    contract.DropChunks: chunks.drop_chunks,
    contract.ClearConversation: _clear_conversation,
    contract.PutValue: values.put_value,
    contract.DeleteValue: values.delete_value,
    family_contract.ForgetFamily: families.forget_family,
    interaction_contract.PutInteraction: interactions.put_interaction,
    timer_contract.PutTimer: timers.put_timer,
    timer_contract.DeleteTimer: timers.delete_timer,
    queue_contract.PutQueued: queue.put_queued,
    queue_contract.DeleteQueued: queue.delete_queued,
}

ANSWERS: dict[type[contract.Query[Any]], Answer] = {
    contract.LoadAgent: agents.load_agent,
    contract.OpenAgents: agents.open_agents,
    contract.LoadBranch: branches.load_branch,
    contract.LoadPath: branches.load_path,
    contract.LoadOffPath: branches.load_off_path,
    contract.FindMessages: messages.find_messages,
    contract.FindFollowing: messages.find_following,
    contract.LoadAttachments: attachments.load_attachments,
    contract.LoadChunks: chunks.load_chunks,
    contract.LoadValue: values.load_value,
    family_contract.LoadChildren: families.load_children,
    interaction_contract.LoadInteractions: interactions.load_interactions,
    timer_contract.LoadTimers: timers.load_timers,
    timer_contract.AgentsWithTimers: timers.agents_with_timers,
    queue_contract.LoadQueue: queue.load_queue,
}

UNBOUNDED: frozenset[type[contract.Query[Any]]] = frozenset(
    {
        contract.LoadBranch,
        contract.LoadPath,
        contract.LoadOffPath,
        contract.FindMessages,
        contract.FindFollowing,
        contract.LoadAttachments,
        contract.OpenAgents,
        family_contract.LoadChildren,
        timer_contract.AgentsWithTimers,
    }
)
"""Queries whose answer grows with the data: they run in a thread, not in the event loop."""
