"""The agents of docs/how-to/message-concurrency.md do what the page says."""

import pytest

from docs_src import message_concurrency as page
from perdure import Think
from perdure.host.engine import Engine
from perdure.testing import FakeClock, Gate, ScriptedModel, pause, say
from tests.agent.calls import said
from tests.support import Serve, Tab, user_message
from tests.support.fixtures import log, serve

__all__ = ["log", "serve"]

pytestmark = pytest.mark.anyio


def scripted(kind: type[Think], gate: Gate) -> tuple[type[Think], ScriptedModel]:
    """The class with a model whose first answer waits for the gate."""
    model = ScriptedModel([[pause(gate), say("one.")], say("two.")])
    return type("Agent", (kind,), {"model": model}), model


async def type_three(tab: Tab) -> None:
    questions = [user_message(letter) for letter in "ABC"]
    for count, letter in enumerate("ABC", start=1):
        await tab.ask(letter, *questions[:count])
    await tab.settle()


@pytest.mark.parametrize(
    ("kind", "stored", "shown"),
    [
        (page.Search, ["A", "one.", "B", "C", "two."], ["A", "one.", "C"]),
        (page.Editor, ["A", "one.", "B", "C", "two."], ["A", "one.", "B", "C"]),
    ],
)
async def test_the_last_one_is_answered(serve: Serve, kind: type[Think], stored: list[str], shown: list[str]) -> None:
    gate = Gate()
    agent, model = scripted(kind, gate)
    server = await serve(agent)
    tab = await server.tab()
    await type_three(tab)
    gate.open()
    assert (await tab.done("C"))["outcome"] == "completed"
    assert (await tab.done("B"))["outcome"] == "skipped"
    assert said(await server.stored()) == stored
    assert said(model.requests[1].messages) == shown


async def test_the_form_waits_for_a_second_of_quiet(serve: Serve) -> None:
    gate, clock = Gate(), FakeClock()
    agent, model = scripted(page.Form, gate)
    server = await serve(agent, engine=Engine(clock=clock), idle_seconds=None)
    tab = await server.tab()
    await type_three(tab)
    gate.open()
    await tab.done("B")
    await clock.sleeping(2)
    clock.advance(0.99)
    await tab.settle()
    assert len(model.requests) == 1
    clock.advance(0.02)
    assert (await tab.done("C"))["outcome"] == "completed"


@pytest.mark.parametrize(
    ("kind", "room", "answered"),
    [(page.Checkout, "room", "A"), (page.Helpdesk, "public-1", "A"), (page.Helpdesk, "staff", "ABC")],
)
async def test_one_question_at_a_time(serve: Serve, kind: type[Think], room: str, answered: str) -> None:
    gate = Gate()
    model = ScriptedModel([[pause(gate), say("1")], *(say("…") for _ in answered[1:])])
    server = await serve(type("Agent", (kind,), {"model": model}))
    tab = await server.tab(room)
    await type_three(tab)
    gate.open()
    outcomes = {letter: (await tab.done(letter))["outcome"] for letter in "ABC"}
    assert outcomes == {letter: "completed" if letter in answered else "skipped" for letter in "ABC"}
