"""Pages that are loaded again around the answers to tool calls: each ends with exactly what is stored."""

from collections.abc import Sequence
from typing import Any

import pytest

from perdure import tool
from perdure.testing import Gate, ScriptedModel, call, pause, say
from tests.agent.calls import said, tool_parts
from tests.requirements import requirement
from tests.support import Frame, Page, Serve, Serving, Tab, agent, approval, offer, tool_result

pytestmark = pytest.mark.anyio


def shown(messages: Sequence[Frame]) -> list[Any]:
    """What a person sees of a conversation: no marks of steps."""
    return [
        [message["role"], *(part for part in message["parts"] if part["type"] != "step-start")] for message in messages
    ]


async def continued(tab: Tab, count: int = 1) -> None:
    """Returns when so many continuations are over."""
    ended: list[Frame] = []

    def is_last(frame: Frame) -> bool:
        if frame.get("continuation") and frame.get("done"):
            ended.append(frame)
        return len(ended) == count

    await tab.seen(is_last)


class Journey:
    """A conversation of two hops that stops wherever a page may be loaded again.

    Step 1 makes two calls with text between, step 2 says something and makes a third, step 3 ends it.
    """

    STOPS = (
        "before it is asked",
        "in mid-stream",
        "in mid-stream, behind an answer",
        "before the answers",
        "between the answers",
        "in the window",
        "during the first hop",
        "during the first hop, behind its call",
        "after the first hop",
        "during the last hop",
        "right after it",
    )

    def __init__(self, server: Serving, gates: list[Gate], asking: Tab, watching: Tab) -> None:
        self.server = server
        self._gates = gates
        self._asking = asking
        self._watching = watching

    @classmethod
    async def begin(cls, serve: Serve) -> "Journey":
        gates = [Gate() for _ in range(6)]

        async def before_turn(self: Any, ctx: Any) -> None:
            if ctx.continuation:
                await gates[2].passed()

        model = ScriptedModel(
            [
                [
                    say("Let ", "me "),
                    call("a", id="c1"),
                    say("see. "),
                    pause(gates[0]),
                    call("b", id="c2"),
                    pause(gates[1]),
                ],
                [say("First "), pause(gates[3]), call("c", id="c3"), say("hop. "), pause(gates[4])],
                [say("The "), pause(gates[5]), say("end.")],
            ]
        )
        server = await serve(agent(model, before_turn=before_turn))
        return cls(server, gates, await server.tab(), await server.tab())

    async def go(self, start: str | None, stop: str | None) -> None:
        """From one stop to another; from the beginning, to the end."""
        names = list(self.STOPS)
        first = 0 if start is None else names.index(start) + 1
        last = len(names) if stop is None else names.index(stop) + 1
        for name in names[first:last]:
            await self._step(name)

    async def _step(self, stop: str) -> None:
        gates, tab, watching = self._gates, self._asking, self._watching
        match stop:
            case "in mid-stream":
                await tab.ask("r1", "Go", clientTools=offer("a", "b", "c"))
                await gates[0].reached()
            case "in mid-stream, behind an answer":
                await tab.send(tool_result("c1", "first"))
                gates[0].open()
                await gates[1].reached()
            case "before the answers":
                gates[1].open()
                await tab.done("r1")
            case "between the answers":
                await tab.settle()
            case "in the window":
                await tab.send(tool_result("c2", "second"))
                await gates[2].reached()
            case "during the first hop":
                gates[2].open()
                await gates[3].reached()
            case "during the first hop, behind its call":
                gates[3].open()
                await gates[4].reached()
                await tab.send(tool_result("c3", "third"))
                await watching.seen(lambda frame: "'third'" in str(frame.get("message")))
            case "after the first hop":
                gates[4].open()
                await continued(watching)
            case "during the last hop":
                await gates[5].reached()
            case "right after it":
                gates[5].open()
                await continued(watching, 2)
            case _:
                pass

    async def check(self, *pages: Page) -> None:
        """Every page shows what is stored."""
        stored = await self.server.stored()
        assert said(stored) == ["Go", "Let me see. First hop. The end."]
        assert [part["output"] for part in tool_parts(stored[1])] == ["first", "second", "third"]
        for page in pages:
            messages = await page.look()
            assert [message["id"] for message in messages] == [message["id"] for message in stored]
            assert shown(messages) == shown(stored)


@requirement("fault:RS-14")
@pytest.mark.parametrize("slow", [False, True], ids=["at once", "takes the offer up late"])
@pytest.mark.parametrize("stop", Journey.STOPS)
async def test_a_page_that_is_loaded_at_any_time_ends_with_what_is_stored(serve: Serve, stop: str, slow: bool) -> None:
    journey = await Journey.begin(serve)
    await journey.go(None, stop)
    page = await Page.load(journey.server, slow=slow)
    names = list(Journey.STOPS)
    following = names[min(names.index(stop) + 1, len(names) - 1)]
    await journey.go(stop, following)
    await page.look()
    await page.take_up()
    await journey.go(following, None)
    await journey.check(page)


@requirement("fault:RS-14")
async def test_a_page_that_stays_and_pages_that_are_loaded_at_every_stop_all_end_with_the_same(serve: Serve) -> None:
    journey = await Journey.begin(serve)
    pages = [await Page.load(journey.server)]
    previous: str | None = None
    for stop in Journey.STOPS:
        await journey.go(previous, stop)
        pages.append(await Page.load(journey.server))
        for page in pages:
            await page.look()
        previous = stop
    await journey.check(*pages)


@requirement("fault:RS-14")
async def test_a_page_that_answers_and_is_loaded_again_each_time_ends_with_what_is_stored(serve: Serve) -> None:
    calls = [[call("a", id="c1"), call("b", id="c2")], [say("One. "), call("a", id="c3")], say("Two.")]
    server = await serve(agent(ScriptedModel(calls)))
    page = await Page.load(server)
    await page.tab.ask("r1", "Go", clientTools=offer("a", "b"))
    await page.tab.done("r1")
    watching = await server.tab()
    for answer in ("c2", "c1", "c3"):
        await page.tab.send(tool_result(answer, answer))
        await page.close()
        page = await Page.load(server)
        if answer != "c2":
            await continued(watching, 1 if answer == "c1" else 2)
    assert shown(await page.look()) == shown(await server.stored())
    assert said(await server.stored()) == ["Go", "One. Two."]


async def test_a_page_loaded_while_an_approved_tool_runs_ends_with_what_is_stored(serve: Serve) -> None:
    gate = Gate()

    @tool(needs_approval=True)
    async def pay() -> str:
        """Pay."""
        await gate.passed()
        return "paid"

    server = await serve(agent(ScriptedModel([[say("Shall I? "), call("pay", id="c1")], say("Done.")]), pay))
    staying = await Page.load(server)
    await staying.tab.ask("r1", "Pay")
    await staying.tab.done("r1")
    await staying.tab.send(approval("c1"))
    await gate.reached()
    loaded = await Page.load(server)
    gate.open()
    await continued(loaded.tab)
    stored = await server.stored()
    assert said(stored) == ["Pay", "Shall I? Done."]
    for page in (staying, loaded):
        assert shown(await page.look()) == shown(stored)
