"""What the guides on tools, hooks, state and calls show, run."""

import logging
from pathlib import Path
from typing import Any

import pytest

from docs_src import hooks, state_and_calls, tools
from perdure import ModelRejected, Think
from perdure.testing import ScriptedModel, call, fail, say
from tests.agent.calls import call_of, error_of, result_of, said, tool_parts
from tests.support import Serve, chunks_of, user_message
from tests.support.fixtures import log, serve

__all__ = ["log", "serve"]

pytestmark = pytest.mark.anyio


async def answer(serve: Serve, kind: type[Think], *steps: Any, **body: Any) -> tuple[Any, ScriptedModel, Any]:
    """Have an agent answer with these steps: the stored answer, the model, and the tab that asked."""
    model = ScriptedModel(steps)
    server = await serve(type("Agent", (kind,), {"model": model}))
    tab = await server.tab()
    await tab.ask("r1", user_message("Hi"), **body)
    await tab.done("r1")
    return (await server.stored())[-1], model, tab


async def test_functions_and_methods_are_tools(serve: Serve) -> None:
    calls = [call("get_weather", {"city": "Rome", "unit": "fahrenheit"}), call("lend", {"title": "Emma"}, id="c2")]
    stored, model, _ = await answer(serve, tools.Librarian, calls, say("Done."))
    assert [part["output"] for part in tool_parts(stored)] == [
        {"city": "Rome", "degrees": 57.2},
        "Emma is yours until Friday.",
    ]
    assert model.requests[0].tools == ["get_weather", "lend"]


async def test_a_tool_with_a_schema_and_an_odd_name(serve: Serve) -> None:
    calls = [call("kitchen_order", {"dish": "soup"}), call("kitchen_order", {"dish": "soup", "portions": 99})]
    stored, model, _ = await answer(serve, tools.Kitchen, calls, say("Done."))
    first, second = tool_parts(stored)
    assert (first["type"], first["output"]) == ("tool-kitchen.order", "1 × soup")
    assert "portions" in second["errorText"]
    assert model.requests[0].tools == ["kitchen_order"]
    assert tools.order.timeout == 10


async def test_a_tool_shows_its_progress(serve: Serve) -> None:
    kind = type("Agent", (Think,), {"get_tools": lambda self: [tools.bake]})
    stored, _, tab = await answer(serve, kind, call("bake", {"minutes": 2}), say("Eat."))
    assert tool_parts(stored)[0]["output"] == {"cake": "ready"}
    shown = [c for c in chunks_of(tab.frames, "r1") if c["type"] == "tool-output-available"]
    assert next(c["output"] for c in shown if c.get("preliminary")) == {"done": "0 of 2 minutes"}


async def test_a_tool_gives_a_picture(serve: Serve, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "sales.png").write_bytes(b"\x89PNG\r\n\x1a\n0")
    monkeypatch.chdir(tmp_path)
    kind = type("Agent", (Think,), {"get_tools": lambda self: [tools.chart]})
    stored, _, _ = await answer(serve, kind, call("chart", {"name": "sales"}), say("See."))
    assert tool_parts(stored)[0]["output"]["picture"].startswith("data:image/png;base64,")


@pytest.mark.parametrize(("plan", "offered"), [("free", ["search"]), ("pro", ["search", "delete_all"])])
async def test_the_body_of_the_request_decides_on_the_tools(serve: Serve, plan: str, offered: list[str]) -> None:
    _, model, _ = await answer(serve, hooks.Assistant, say("Hello."), plan=plan)
    assert model.requests[0].tools == offered
    assert model.requests[0].settings == ({"max_tokens": 500} if plan == "free" else {})


async def test_later_steps_have_no_tools(serve: Serve) -> None:
    stored, model, _ = await answer(serve, hooks.Frugal, call("search", {"query": "x"}))
    assert len(model.requests) == 1
    assert tool_parts(stored)[0]["output"] == ["All about x."]
    assert said([stored]) != [""]


async def test_a_call_is_blocked(serve: Serve) -> None:
    stored, _, _ = await answer(serve, hooks.Careful, call("delete_all"), say("Oh."))
    assert tool_parts(stored)[0]["output"] == "Deleting is not allowed here."


async def test_a_call_is_repaired(serve: Serve) -> None:
    stored, _, _ = await answer(serve, hooks.Forgiving, call("find", {"text": "cats"}), say("Here."))
    assert tool_parts(stored)[-1]["output"] == ["All about cats."]


async def test_an_error_is_put_into_words(serve: Serve) -> None:
    _, _, tab = await answer(serve, hooks.Audited, [fail(ModelRejected("429 Too Many Requests"))])
    assert [frame["body"] for frame in tab.of("r1") if frame.get("error")] == [
        "Too much is going on right now. Please try again in a minute."
    ]


async def test_state_and_callable_methods(serve: Serve) -> None:
    _, _, tab = await answer(serve, state_and_calls.Assistant, say("Hello."))
    await call_of(tab, "renameChat", "Trip")
    assert await error_of(tab, "renameChat", "") == "a chat needs a title"
    states = [frame["state"] for frame in tab.frames if frame["type"] == "cf_agent_state"]
    assert states[0] == {"title": "New chat", "questions": 0}
    assert states[-1] == {"title": "Trip", "questions": 1}
    await call_of(tab, "wordsOf", "one two")
    assert [f["result"] for f in tab.frames if f.get("done") is False and f["type"] == "rpc"] == ["one", "two"]


async def test_a_guarded_agent(serve: Serve) -> None:
    server = await serve(type("Agent", (state_and_calls.Guarded,), {}))
    assert await error_of(await server.tab(), "renameChat", "x") == "Connection is readonly"
    assert (await call_of(await server.tab("room?token=letmein"), "renameChat", "x"))["success"]


async def test_turns_that_the_server_asks_for(serve: Serve, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)

    class Agent(state_and_calls.Reporter):
        model = ScriptedModel([say("It ", "rains."), say("R", "ain."), say("Ok."), [fail(ModelRejected("nope"))]])

        @state_and_calls.callable
        async def talk(self) -> None:
            await self.chat("Once more.", state_and_calls.Progress())

    tab = await (await serve(Agent)).tab()
    assert await result_of(tab, "report", "rain") == "It rains."
    assert await result_of(tab, "summarise") == ["R", "ain."]
    for _ in range(2):
        assert (await call_of(tab, "talk"))["success"]
    assert ": text-delta" in caplog.text
    assert "failed: nope" in caplog.text
