"""Takes what people and pages answer to tool calls that wait for them, and lets the conversation go on.

Who may answer what is decided in ``chat.interactions``; what an answer does to a message, in ``chat.answers``. The row,
the message and the turn that goes on change in one write.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Coroutine, Sequence
from functools import partial
from typing import Any

from perdure.agent.hooks import sources
from perdure.agent.room import Room, kept
from perdure.agent.services import PeerId
from perdure.agent.turn_config import PendingApproval
from perdure.agent.turns import Turns
from perdure.chat.answers import DENIED, decided, failed, finished
from perdure.chat.interactions import Interaction
from perdure.errors import BadRequest, ToolError
from perdure.models.contract import Chunk
from perdure.protocol import client_frames, codec
from perdure.protocol import server_frames as frames
from perdure.protocol.messages import Part
from perdure.storage.contract import Operation
from perdure.tools import merge

__all__ = ["Answering"]

logger = logging.getLogger(__name__)


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
        return self._when_loaded(interaction, partial(self._take_result, peer, by, frame))

    def decision(self, peer: PeerId, by: str, frame: client_frames.ToolApproval) -> Coroutine[Any, Any, None] | None:
        """A person says whether a call may run."""
        interaction = self._interactions.find(frame.toolCallId)
        if interaction is None:
            logger.debug("Ignored a decision on the tool call %s, on which nobody was asked", frame.toolCallId)
            return None
        decide = partial(self._decide, peer, frame.toolCallId, by, frame.approved, frame.autoContinue, frame.reason)
        if frame.input is None or not frame.approved:
            return self._when_loaded(interaction, decide)
        return self._decide_edited(peer, interaction, frame.input, decide)

    async def _decide_edited(
        self, peer: PeerId, interaction: Interaction, edited: dict[str, Any], decide: Callable[..., bool]
    ) -> None:
        try:
            await self._check(interaction, edited)
        except (ToolError, BadRequest) as error:
            logger.warning("Refused the edited input of the tool call %s: %s", interaction.call, error)
            await self._load_and(interaction, partial(self._show, peer, interaction))
        else:
            await self._load_and(interaction, partial(decide, edited=edited))

    def _show(self, peer: PeerId, interaction: Interaction) -> None:
        """Show a page the message as it is: it has shown its decision already."""
        node = self._room.transcript.known.get(interaction.message)
        if node is not None and node.text is not None:
            self._services.send((peer,), frames.message_updated(node.text))

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
            if each.approval is not None and each.state == "waiting"
        ]

    async def decide(
        self,
        call: str,
        *,
        approved: bool,
        by: str,
        go_on: bool,
        reason: str | None = None,
        edited: dict[str, Any] | None = None,
    ) -> bool:
        """Decide without a browser; returns when it is stored. False when the call does not wait for a decision.

        Raises:
            InvalidToolInput: the edited arguments do not fit.
            BadRequest: arguments are edited of a tool that there is not any more.
        """
        interaction = self._interactions.find(call)
        if interaction is None:
            return False
        if edited is not None:
            await self._check(interaction, edited)
        await self._load(interaction)
        changed = self._decide(None, call, by, approved, go_on, reason, edited=edited)
        self._turns.rest()
        await self._services.settled()
        return changed

    # ── one answer ──────────────────────────────────────────────────

    def _take_result(self, peer: PeerId, by: str, frame: client_frames.ToolResult) -> None:
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
        text, show = self._turns.amend(interaction, change, chunk, operations)
        if go_on and not self._turns.is_overtaken(interaction.turn):
            continuation = self._interactions.want(interaction.turn, self._services.new_id())
            self._room.handshake.wanted(continuation, peer)
        self._turns.store(operations)
        show()
        if text is not None:
            self._services.send(self._room.handshake.everyone, frames.message_updated(text))

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

    async def _check(self, interaction: Interaction, edited: dict[str, Any]) -> None:
        tools = merge(*await sources(self._room.think, self._room.page.tools))
        if interaction.tool not in tools:
            raise BadRequest(f"The tool {interaction.tool!r:.60} is not available any more.")
        tools[interaction.tool].check(edited)
