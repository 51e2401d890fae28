"""Tool calls that wait for a person or a page: who may answer what, once, and when the conversation goes on.

The calls of one turn that wait are a group: a turn ends with the step that made them (reference: engine §3-4, README 3
to 5, 11, 13). Knows what was asked and answered; what an answer does to the message is ``answers``' business. Pure.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Literal

import msgspec

__all__ = ["Interaction", "Interactions"]


class Interaction(msgspec.Struct, kw_only=True, omit_defaults=True):
    """A tool call that waits, or waited, for somebody. Changed by :class:`Interactions` only."""

    call: str
    """Id of the tool call."""
    turn: str
    """The turn that made it."""
    message: str
    """The message that holds it."""
    tool: str
    runs: Literal["server", "client"]
    """Where the tool runs."""
    input: dict[str, Any]
    """The arguments that the model wrote."""
    asked_ms: int
    """Unix time in milliseconds."""
    state: Literal["waiting", "approved", "running", "settled"] = "waiting"
    """``approved``: it may run, and has not begun to. ``running``: whether it did anything is unknown until it is
    settled."""
    approval: str | None = None
    """Id of the question whether it may run; ``None`` when nobody is asked."""
    expires_ms: int | None = None
    """When the question is answered with no by itself."""
    decision: Literal["approved", "denied", "answered", "dropped"] | None = None
    """``answered``: somebody gave its result. ``dropped``: nobody will any more."""
    reason: str | None = None
    """What was said with the decision."""
    edited: dict[str, Any] | None = None
    """The arguments that were approved instead."""
    decided_by: str | None = None
    """Id of the connection; ``agent`` for the server's own code, ``expiry`` for the clock."""
    decided_ms: int | None = None
    go_on: bool = False
    """Whether somebody who answered wants the conversation to go on."""
    begun: bool = False
    """Whether it began to run on the server."""

    @property
    def arguments(self) -> dict[str, Any]:
        """What it runs with."""
        return self.input if self.edited is None else self.edited

    @property
    def asks(self) -> bool:
        """Whether somebody is asked whether it may run."""
        return self.state == "waiting" and self.approval is not None

    @property
    def waits(self) -> bool:
        """Whether somebody has to answer before the conversation can go on."""
        return self.state == "waiting" or (self.state == "approved" and self.runs == "client")


class _Group:
    """The calls of one turn."""

    def __init__(self, *, closed: bool = False) -> None:
        self.calls: list[Interaction] = []
        self.closed = closed
        """Whether the turn is over: no further call of it can come."""
        self.next: str | None = None
        """Id of the continuation, once somebody wants one."""
        self.continued = False
        """Whether there is, or was, a turn for it."""


class Interactions:
    """The interactions of one agent that still matter."""

    def __init__(self, stored: Iterable[Interaction] = ()) -> None:
        """Those that are stored; their turns are over, or will be closed before anything happens."""
        self._groups: dict[str, _Group] = {}
        self._calls: dict[str, Interaction] = {}
        for interaction in stored:
            self._add(interaction, _Group(closed=True))

    # ── looking ─────────────────────────────────────────────────────

    def find(self, call: str) -> Interaction | None:
        """The interaction of a call."""
        return self._calls.get(call)

    def of(self, turn: str) -> list[Interaction]:
        """The interactions of a turn, in the order in which they were asked."""
        group = self._groups.get(turn)
        return [] if group is None else list(group.calls)

    def calls_in(self, message: str) -> list[str]:
        """Ids of the calls in a message, in the order in which they were asked."""
        return [call for call, interaction in self._calls.items() if interaction.message == message]

    @property
    def waiting(self) -> list[Interaction]:
        """Those that somebody has to answer, in the order in which they were asked."""
        return [interaction for interaction in self._calls.values() if interaction.waits]

    @property
    def unsettled(self) -> set[str]:
        """The calls that must be left alone by whoever puts the conversation right."""
        return {call for call, interaction in self._calls.items() if interaction.state != "settled"}

    def to_run(self, turn: str) -> list[Interaction]:
        """The approved calls of a turn that the server runs, in the order in which they were asked."""
        return [each for each in self.of(turn) if each.state == "approved" and each.runs == "server"]

    def is_ready(self, turn: str) -> bool:
        """Whether the conversation can go on after this turn: it is over, nothing waits, somebody asked for it, and it
        has not happened yet."""
        group = self._groups.get(turn)
        if group is None or not group.closed or group.continued or any(each.waits for each in group.calls):
            return False
        return any(each.go_on for each in group.calls)

    @property
    def ready(self) -> list[str]:
        """The turns after which the conversation can go on."""
        return [turn for turn in self._groups if self.is_ready(turn)]

    def next_id(self, turn: str) -> str | None:
        """Id of the continuation that somebody wants after this turn."""
        group = self._groups.get(turn)
        return None if group is None else group.next

    def group_of(self, message: str) -> str | None:
        """The turn whose calls in this message still matter."""
        return next((turn for turn, group in self._groups.items() if group.calls[0].message == message), None)

    @property
    def groups(self) -> list[str]:
        """The turns whose calls still matter, the oldest first."""
        return list(self._groups)

    # ── asking ──────────────────────────────────────────────────────

    def ask(self, interaction: Interaction) -> None:
        """The running turn made a call that waits."""
        self._add(interaction, _Group())

    def close(self, turn: str) -> None:
        """The turn is over: its group is complete."""
        if (group := self._groups.get(turn)) is not None:
            group.closed = True
            self._forget_if_done(turn)

    # ── answering ───────────────────────────────────────────────────

    def answer(self, call: str, *, tool: str, by: str, at_ms: int, go_on: bool) -> Interaction | None:
        """Somebody gives the result of a call. ``None`` when it waits for none: it was settled, or never asked.

        Args:
            call: Id of the call.
            tool: The tool that it is said to be of; empty when nothing is said.
            by: Who answers.
            at_ms: When.
            go_on: Whether the conversation is to go on.
        """
        interaction = self._calls.get(call)
        if (
            interaction is None
            or interaction.state not in {"waiting", "approved"}
            or tool not in {"", interaction.tool}
        ):
            return None
        interaction.decision = "answered" if interaction.decision is None else interaction.decision
        return self._decided(interaction, "settled", by, at_ms, go_on)

    def decide(
        self,
        call: str,
        *,
        approved: bool,
        by: str,
        at_ms: int,
        go_on: bool,
        reason: str | None = None,
        edited: dict[str, Any] | None = None,
    ) -> Interaction | None:
        """Somebody says whether a call may run. The first one counts. ``None`` when nobody was asked, or it is decided.

        For the arguments see :meth:`answer`; ``edited`` are the arguments to run with instead.
        """
        interaction = self._calls.get(call)
        if interaction is None or not interaction.asks:
            return None
        interaction.decision = "approved" if approved else "denied"
        interaction.reason = reason
        interaction.edited = edited if approved else None
        return self._decided(interaction, "approved" if approved else "settled", by, at_ms, go_on)

    def want(self, turn: str, id: str) -> str:
        """Somebody wants the conversation to go on after this turn. Gives the id of the continuation: ``id``, unless
        it has one."""
        group = self._groups[turn]
        if group.next is None:
            group.next = id
        return group.next

    # ── going on ────────────────────────────────────────────────────

    def continued(self, turn: str) -> str | None:
        """There is a turn that goes on after this one. Gives the id that it was promised to have."""
        group = self._groups.get(turn)
        if group is None:
            return None
        group.continued = True
        return group.next

    def begin(self, calls: Iterable[str]) -> list[Interaction]:
        """These approved calls begin to run. Gives those that changed."""
        begun = [each for call in calls if (each := self._calls.get(call)) is not None and each.state == "approved"]
        for interaction in begun:
            interaction.state, interaction.begun = "running", True
        return begun

    def settle(self, call: str) -> Interaction | None:
        """A call that ran has its result. ``None`` when it is none of these."""
        interaction = self._calls.get(call)
        if interaction is None or interaction.state != "running":
            return None
        interaction.state = "settled"
        return interaction

    def drop(self, turns: Iterable[str], at_ms: int) -> list[Interaction]:
        """Nobody will answer these turns' calls any more. Gives those that were open, and forgets all."""
        dropped: list[Interaction] = []
        for turn in turns:
            for interaction in self._groups.pop(turn, _Group()).calls:
                del self._calls[interaction.call]
                if interaction.state != "settled":
                    interaction.decision = interaction.decision or "dropped"
                    interaction.decided_ms = interaction.decided_ms or at_ms
                    interaction.state = "settled"
                    dropped.append(interaction)
        return dropped

    def clear(self) -> None:
        """The conversation was forgotten."""
        self._groups.clear()
        self._calls.clear()

    # ── inside ──────────────────────────────────────────────────────

    def _add(self, interaction: Interaction, group: _Group) -> None:
        self._groups.setdefault(interaction.turn, group).calls.append(interaction)
        self._calls[interaction.call] = interaction

    def _decided(self, interaction: Interaction, state: Any, by: str, at_ms: int, go_on: bool) -> Interaction:
        interaction.state = state
        interaction.decided_by, interaction.decided_ms = by, at_ms
        interaction.go_on = interaction.go_on or go_on
        self._forget_if_done(interaction.turn)
        return interaction

    def _forget_if_done(self, turn: str) -> None:
        """A group that is settled without anybody wanting to go on is history."""
        group = self._groups[turn]
        if group.closed and all(each.state == "settled" and not each.go_on for each in group.calls):
            self.drop([turn], 0)
