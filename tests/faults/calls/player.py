"""Carries out what a plan says: several pages of one conversation at a server that may restart."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Callable, Coroutine
from typing import Any

from websockets.exceptions import ConnectionClosed

from perdure.protocol.messages import is_tool_part, tool_name
from tests.faults.calls import plans
from tests.faults.calls.plans import Move, One, Plan
from tests.faults.calls.world import GATED, WAITING, World
from tests.support import Frame, Serving, Tab, approval, offer, tool_failure, tool_result, user_message

__all__ = ["Player"]

Act = Callable[[], Coroutine[Any, Any, None]]


class Player:
    """Plays one plan."""

    def __init__(self, name: str, kind: str, world: World, server: Callable[[], Serving], acts: dict[str, Act]) -> None:
        """A player.

        Args:
            name: Of the agent.
            kind: Of the agent.
            world: Its model and tools.
            server: The server that runs.
            acts: What only the session can do: ``later``, ``rest``, ``restart``.
        """
        self.approved: set[str] = set()
        """The calls that anybody has approved."""
        self._name = name
        self._kind = kind
        self._world = world
        self._server = server
        self._acts = acts
        self._tabs: list[Tab | None] = [None] * plans.TABS
        self._read: dict[Tab, int] = {}
        self._calls: dict[str, tuple[str, Any]] = {}
        """All calls that were ever shown: the tool and the number."""
        self._answered: set[str] = set()
        self._requests: list[str] = []

    async def play(self, plan: Plan) -> None:
        """All moves, one after the other. Nothing is waited for that the plan does not wait for."""
        for move in plan.moves:
            with contextlib.suppress(ConnectionClosed):
                await self._make(move)

    async def open(self) -> Tab:
        """Another tab."""
        return await self._server().tab(self._name, agent=self._kind)

    async def settle(self) -> None:
        """Wait until all that was sent is handled."""
        for tab in self._tabs:
            if tab is not None and tab.closed is None:
                await tab.settle()

    async def leave(self) -> None:
        """Close all tabs."""
        for tab in self._tabs:
            if tab is not None:
                await tab.close()

    # ── moves ───────────────────────────────────────────────────────

    async def _make(self, move: Move) -> None:
        match move:
            case plans.Open(tab=slot):
                if (before := self._tabs[slot]) is not None:
                    await before.close()
                tab = self._tabs[slot] = await self.open()
                await tab.opened()
                await self._take(tab)
            case plans.LetGo():
                self._world.let_go()
            case plans.Later() | plans.Rest() | plans.Restart():
                await self._acts[type(move).__name__.lower()]()
            case plans.Code(what=what):
                if (
                    tab := next((tab for tab in self._tabs if tab is not None and tab.closed is None), None)
                ) is not None:
                    await self._act(tab, what)
            case _:
                opened = [tab for tab in self._tabs if tab is not None and tab.closed is None]
                if opened:
                    await self._make_at(opened[move.tab % len(opened)], move)

    async def _make_at(self, tab: Tab, move: Move) -> None:
        match move:
            case plans.Close():
                await tab.close()
            case plans.Ask(kind=kind):
                await self._ask(tab, kind)
            case plans.Answer(answers=answers):
                self._look()
                tab.write_frame(*[self._answer(one) for one in answers])
            case plans.Stop(number=number) if self._turns():
                turns = self._turns()
                await tab.cancel(turns[max(len(turns) - 1 - number, 0)])
            case plans.Probe():
                await tab.send({"type": "cf_agent_stream_resume_request", "probeId": "any"})
            case plans.Clear():
                await tab.clear()
            case plans.Wait():
                await tab.settle()
                await self._take(tab)
            case _:
                pass

    async def _ask(self, tab: Tab, kind: str) -> None:
        request = f"q{len(self._requests)}"
        self._requests.append(request)
        before, fields = _shown(tab), {"clientTools": offer("where")}
        questions = [index for index, message in enumerate(before) if message["role"] == "user"]
        if kind == "again" and questions:
            posted = before[: questions[-1] + 1]
            await tab.ask(request, *posted, trigger="regenerate-message", **fields)
        elif kind == "edit" and questions:
            edited = user_message(f"Edited for {request}", before[questions[-1]]["id"])
            await tab.ask(request, *before[: questions[-1]], edited, **fields)
        else:
            await tab.ask(request, *before, user_message(f"Question {request}", f"u-{request}"), **fields)

    def _answer(self, one: One) -> Frame:
        calls = [call for call in self._calls if one.any or call not in self._answered]
        call = calls[-1 - one.call] if one.call < len(calls) else "nobody"
        self._answered.add(call)
        tool, number = self._calls.get(call, ("", 0))
        kind = one.kind
        if kind == "fitting":
            kind = "approval" if tool in GATED else "result"
        match kind:
            case "result":
                return tool_result(call, f"given for {number}", go_on=one.go_on)
            case "failure":
                return tool_failure(call, "It could not be done.", go_on=one.go_on)
            case "denial":
                return approval(call, approved=False, go_on=one.go_on)
            case "edit":
                self.approved.add(call)
                return approval(call, go_on=one.go_on, input={"number": number})
            case _:
                self.approved.add(call)
                return approval(call, go_on=one.go_on)

    async def _act(self, tab: Tab, what: str) -> None:
        """Have the server's own code do something; what it approved counts as approved."""
        self._look()
        if what.startswith("approve"):
            self.approved.update(self._calls)  # any of them: it decides on what waits
        await tab.send({"type": "rpc", "id": f"act-{what}", "method": "act", "args": [what]})

    # ── what was shown ──────────────────────────────────────────────

    def _look(self) -> None:
        """Learn of the calls that the tabs were shown."""
        for tab in self._tabs:
            if tab is None:
                continue
            for frame in tab.frames[self._read.get(tab, 0) :]:
                for call, tool, number in _calls_in(frame):
                    if tool in WAITING:
                        self._calls.setdefault(call, (tool, number))
            self._read[tab] = len(tab.frames)

    def _turns(self) -> list[str]:
        continued = [frame["id"] for tab in self._tabs if tab for frame in tab.frames if frame.get("continuation")]
        return [*self._requests, *dict.fromkeys(continued)]

    async def _take(self, tab: Tab) -> None:
        """Take up what the tab was offered, as a page does."""
        for frame in list(tab.frames):
            if frame["type"] == "cf_agent_stream_resuming" and not frame.get("taken"):
                frame["taken"] = True
                await tab.ack(frame["id"])


def _shown(tab: Tab) -> list[Frame]:
    """The conversation as the tab was last sent it."""
    for frame in reversed(tab.frames):
        if frame["type"] == "cf_agent_chat_messages":
            return frame["messages"]
        if frame["type"] == "cf_agent_chat_clear":
            return []
    return []


def _calls_in(frame: Frame) -> list[tuple[str, str, Any]]:
    """Calls that a frame tells of."""
    messages = frame.get("messages") or ([frame["message"]] if "message" in frame else [])
    found = [
        (part["toolCallId"], tool_name(part), (part.get("input") or {}).get("number"))
        for message in messages
        for part in message["parts"]
        if is_tool_part(part)
    ]
    if frame["type"] == "cf_agent_use_chat_response" and "seq" in frame:
        chunk = json.loads(frame["body"])
        if chunk["type"] == "tool-input-available":
            found.append((chunk["toolCallId"], chunk["toolName"], chunk["input"].get("number")))
    return found
