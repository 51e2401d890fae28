"""Takes what people and pages answer to tool calls that wait for them, and lets the conversation go on.

Who may answer what is decided in ``chat.interactions``; what an answer does to a message, in ``chat.answers``. The row,
the message and the turn that goes on change in one write.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Coroutine, Mapping, Sequence
from functools import partial
from typing import Any

from perdure.agent.amending import amend, audience, holder
from perdure.agent.editing import edited_input
from perdure.agent.room import Room, kept
from perdure.agent.services import PeerId
from perdure.agent.turn_config import PendingApproval
from perdure.agent.turns import Turns
from perdure.chat.answers import DENIED, decided, failed, finished, refused, with_part
from perdure.chat.interactions import Interaction
from perdure.errors import BadRequest, PerdureError
from perdure.models.contract import Chunk
from perdure.protocol import client_frames, codec
from perdure.protocol import server_frames as frames
from perdure.protocol.messages import Part
from perdure.storage.contract import Operation

__all__ = ["Answering"]

logger = logging.getLogger(__name__)

UNCHECKED = "The input could not be checked. The details are in the server's log."


class Answering:
    """The answers to one agent's calls, one after the other."""

    def __init__(self, room: Room, turns: Turns) -> None:
        self._room = room
        self._services = room.services
        self._interactions = room.interactions
        self._turns = turns

    # ── from connections ────────────────────────────────────────────

    def result(self, peer: PeerId, by: str, frame: client_frames.ToolResult) -> Coroutine[Any, Any, None] | None:
        """A page gives a result (reference: protocol §8.2). One that nobody waits for changes nothing."""
        interaction = self._interactions.find(frame.toolCallId)
        if interaction is None:
            logger.debug("Ignored a result for the tool call %s, which nobody waits for", frame.toolCallId)
            return None
        return self._when_loaded(interaction, partial(self._take_result, peer, by, frame, interaction))

    def decision(self, peer: PeerId, by: str, frame: client_frames.ToolApproval) -> Coroutine[Any, Any, None] | None:
        """A person says whether a call may run."""
        interaction = self._interactions.find(frame.toolCallId)
        if interaction is None:
            logger.debug("Ignored a decision on the tool call %s, on which nobody was asked", frame.toolCallId)
            return None
        decide = partial(self._decide, peer, frame.toolCallId, by, frame.approved, frame.autoContinue, frame.reason)
        if frame.input is None or not frame.approved or not interaction.asks:
            return self._when_loaded(interaction, decide)
        return self._decide_edited(peer, interaction, frame.input, decide)

    async def _decide_edited(
        self, peer: PeerId, interaction: Interaction, given: dict[str, Any], decide: Callable[..., bool]
    ) -> None:
        await self._load(interaction)
        try:
            edited = await edited_input(self._room, interaction, given)
        except PerdureError as error:
            self._refuse(peer, interaction, str(error))
        except Exception:
            # The application's own code: it says which tools there are.
            logger.exception("The edited input of the tool call %s could not be checked", interaction.call)
            self._refuse(peer, interaction, UNCHECKED)
        else:
            decide(edited=edited)
        self._turns.rest()

    def _refuse(self, peer: PeerId, interaction: Interaction, why: str) -> None:
        """Who decided has shown it already: show the question again, and why."""
        logger.info("Refused the edited input of the tool call %s: %s", interaction.call, why)
        message = holder(self._room, self._turns, interaction)
        if message is None or not interaction.asks:
            return
        shown = with_part(message, interaction.call, partial(refused, why=why))
        if shown is not None:
            self._services.send((peer,), frames.message_updated(codec.encode_text(shown)))

    # ── from the server's own code ──────────────────────────────────

    def pending(self) -> list[PendingApproval]:
        """The questions that wait for an answer, in the order in which they were asked."""
        return [
            PendingApproval(
                tool_call_id=each.call,
                approval_id=each.approval,
                tool_name=each.tool,
                input=codec.decode(codec.encode_text(each.input)),
                message_id=each.message,
                asked_ms=each.asked_ms,
                expires_ms=each.expires_ms,
            )
            for each in self._interactions.waiting
            if each.asks and each.approval is not None
        ]

    @property
    def awaited(self) -> bool:
        """Whether a call waits for somebody."""
        return bool(self._interactions.waiting)

    async def decide(
        self,
        call: str,
        *,
        approved: bool,
        by: str,
        go_on: bool,
        reason: str | None = None,
        edited: Mapping[str, Any] | None = None,
    ) -> bool:
        """Decide without a browser; returns when it is stored. False when the call does not wait for a decision.

        Raises:
            InvalidToolInput: the edited arguments do not fit.
        """
        interaction = self._interactions.find(call)
        if interaction is None or not interaction.asks:
            return False
        if edited is not None:
            edited = await edited_input(self._room, interaction, edited)
        await self._load(interaction)
        changed = self._decide(None, call, by, approved, go_on, reason, edited=edited)
        self._turns.rest()
        await self._services.settled()
        return changed

    # ── one answer ──────────────────────────────────────────────────

    def _take_result(self, peer: PeerId, by: str, frame: client_frames.ToolResult, asked: Interaction) -> None:
        try:
            tools = client_frames.read_client_tools(frame.clientTools)
            self._room.page.check(tools)
        except BadRequest as error:
            logger.warning("Left aside the tools that came with a result: %s", error)
            tools = None
        interaction = self._interactions.answer(
            frame.toolCallId, tool=frame.toolName, by=by, at_ms=self._services.now_ms(), go_on=frame.autoContinue
        )
        if interaction is None:
            self._turns.differing.outrun(peer, asked.message)
            return
        also = self._room.page.offers(tools)
        call = frame.toolCallId
        if frame.state == "output-error":
            text = frame.errorText or DENIED
            chunk: Chunk = {"type": "tool-output-error", "toolCallId": call, "errorText": text}
            self._apply(peer, interaction, partial(failed, text=text), chunk, frame.autoContinue, also)
        else:
            chunk = {"type": "tool-output-available", "toolCallId": call, "output": frame.output, "preliminary": False}
            self._apply(peer, interaction, partial(finished, output=frame.output), chunk, frame.autoContinue, also)

    def _decide(
        self,
        peer: PeerId | None,
        call: str,
        by: str,
        approved: bool,
        go_on: bool,
        reason: str | None,
        edited: dict[str, Any] | None = None,
    ) -> bool:
        interaction = self._interactions.decide(
            call, approved=approved, by=by, at_ms=self._services.now_ms(), go_on=go_on, reason=reason, edited=edited
        )
        if interaction is None:
            return False
        self._apply(peer, interaction, partial(decided, interaction=interaction), None, go_on)
        return True

    def _apply(
        self,
        peer: PeerId | None,
        interaction: Interaction,
        change: Callable[[Part], Part],
        chunk: Chunk | None,
        go_on: bool,
        also: Sequence[Operation] = (),
    ) -> None:
        """Store an answer, show it, and go on if it was the last one that was missing."""
        operations = [*also, kept(interaction)]
        text, show = amend(self._room, self._turns, interaction, change, chunk, operations)
        if go_on and not self._turns.is_overtaken(interaction.turn):
            continuation = self._interactions.want(interaction.turn, self._services.new_id())
            self._room.handshake.wanted(continuation, peer)
        self._turns.store(operations)
        show()
        if text is not None:
            shown_to = audience(self._room, self._turns, interaction.message)
            self._services.send(shown_to, frames.message_updated(text))

    # ── what must be in memory ──────────────────────────────────────

    def _when_loaded(self, interaction: Interaction, act: Callable[[], Any]) -> Coroutine[Any, Any, None] | None:
        if interaction.message in self._turns.answers or not self._room.transcript.lacks(interaction.message):
            act()
            return None
        return self._load_and(interaction, act)

    async def _load_and(self, interaction: Interaction, act: Callable[[], Any]) -> None:
        await self._load(interaction)
        act()
        self._turns.rest()

    async def _load(self, interaction: Interaction) -> None:
        if interaction.message not in self._turns.answers:
            await self._room.transcript.extend([interaction.message])
            await self._room.transcript.reach([], interaction.message)
