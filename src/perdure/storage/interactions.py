"""The contract of a store for interactions: tool calls that wait, or waited, for a person or a page.

Rows, operations and queries, as in ``contract``. A row stays when its call is settled: it says who decided what, and
when. Rows go with the conversation.
"""

from __future__ import annotations

import msgspec

from perdure.storage.contract import Operation, Query

__all__ = ["SETTLED", "InteractionRow", "LoadInteractions", "PutInteraction"]

SETTLED = "settled"
"""The state of an interaction that nothing follows."""


class InteractionRow(msgspec.Struct, frozen=True):
    """One interaction as stored."""

    call: str
    """Id of the tool call, unique within the agent."""
    turn: str
    """The turn that made the call."""
    state: str
    """``waiting``, ``approved``, ``running`` or :data:`SETTLED`."""
    body: str
    """JSON text: all that is known of it, these fields included."""


class PutInteraction(Operation, frozen=True):
    """An interaction, new or in place of the one of that call."""

    row: InteractionRow


class LoadInteractions(Query[list[InteractionRow]], frozen=True):
    """The interactions of the turns that are open or have an interaction that is not settled, in the order in which
    they were asked."""

    agent: str
