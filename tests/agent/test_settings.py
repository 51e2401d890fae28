"""Settings and hooks that are wrong: the turn says so, and the agent goes on."""

from typing import Any

import pytest

from perdure import StepConfig, Think, TurnConfig, substitute, tool
from perdure.testing import ScriptedModel, call, say
from tests.agent.calls import tool_parts
from tests.support import Serve, agent, user_message

pytestmark = pytest.mark.anyio


@tool
def add(a: int, b: int) -> int:
    """Add."""
    return a + b


def gives(value: Any) -> Any:
    """A method that gives ``value`` in the first turn, and its usual result later."""
    state = {"first": True}

    def method(self: Think, *args: Any) -> Any:
        if state.pop("first", False):
            return value
        return None

    return method


FIELDS = [
    ("max_steps", 0, "max_steps is 0; it must be a whole number of at least 1."),
    ("max_steps", "ten", "max_steps is 'ten'; it must be a whole number of at least 1."),
    ("max_steps", True, "max_steps is True; it must be a whole number of at least 1."),
    ("system_prompt", None, "The system prompt is nothing; it must be text."),
    ("message_metadata", "x", "message_metadata is a str; it must be a dict."),
    ("message_metadata", {"a": object()}, "message_metadata has no JSON form: "),
    ("model", None, "Agent has no model. Set model = "),
    ("model", 5, "5 is not a model. "),
    ("model", "nowhere", "nowhere"),
    ("model", ScriptedModel, "get_model() gave the class ScriptedModel; it must give a model object or a name."),
    ("get_model", lambda self: None, "get_model() gave no model; "),
    ("get_system_prompt", lambda self: 5, "The system prompt is an int; it must be text."),
    ("get_tools", lambda self: None, "get_tools() gave nothing; it must give a list of tools, or a dict"),
    ("get_tools", lambda self: "add", "get_tools() gave a str; it must give a list of tools, or a dict"),
    ("get_tools", lambda self: add, "get_tools() gave a FunctionTool; it must give a list of tools, or a dict"),
    ("get_tools", lambda self: ["add"], "'add' is no tool: "),
    ("get_tools", lambda self: [add, add], "two tools are named add: "),
    ("before_turn", lambda self, ctx: {}, "before_turn() gave a dict; it must give a TurnConfig, or nothing."),
    ("before_turn", lambda self, ctx: TurnConfig(max_steps=-1), "max_steps is -1; "),
    ("before_turn", lambda self, ctx: TurnConfig(model=5), "5 is not a model. "),
    ("before_turn", lambda self, ctx: TurnConfig(system=5), "The system prompt of before_turn() is an int; "),
    ("before_turn", lambda self, ctx: TurnConfig(tools=add), "before_turn() as tools gave a FunctionTool; "),
    ("before_turn", lambda self, ctx: TurnConfig(active_tools="add"), "active_tools of before_turn() is a str; "),
    ("before_turn", lambda self, ctx: TurnConfig(messages=5), "The messages of before_turn() cannot be used: "),
    ("before_turn", lambda self, ctx: TurnConfig(stop_when="never"), "stop_when is a str; "),
    ("before_turn", lambda self, ctx: TurnConfig(stop_sequences=5), "A call setting of before_turn() cannot be used: "),
    ("before_turn", lambda self, ctx: TurnConfig(message_metadata=[]), "message_metadata is a list; "),
    ("before_step", lambda self, ctx: {}, "before_step() gave a dict; it must give a StepConfig, or nothing."),
    ("before_step", lambda self, ctx: StepConfig(model=5), "5 is not a model. "),
    ("before_step", lambda self, ctx: StepConfig(active_tools=5), "active_tools of before_step() is an int; "),
    ("before_step", lambda self, ctx: StepConfig(messages=[{}]), "The messages of before_step() cannot be used: "),
]


@pytest.mark.parametrize(("field", "value", "text"), FIELDS, ids=[f"{field} {text}"[:60] for field, _, text in FIELDS])
async def test_a_setting_that_cannot_be_used_ends_the_turn_and_says_which(
    serve: Serve, field: str, value: Any, text: str
) -> None:
    kind = agent(ScriptedModel([say("Now it works.")]), add)
    usual = kind.__dict__.get(field)
    setattr(kind, field, value)
    server = await serve(kind)
    tab = await server.tab()
    await tab.ask("r1", "Hi")
    assert (await tab.done("r1"))["outcome"] == "error"
    (shown,) = [frame["body"] for frame in tab.of("r1") if frame.get("error")]
    assert text in shown

    delattr(kind, field)
    if usual is not None:
        setattr(kind, field, usual)
    await tab.ask("r2", *(await server.stored()), user_message("Again"))
    assert (await tab.done("r2"))["outcome"] == "completed"


@pytest.mark.parametrize("decision", [False, "no", {"action": "block"}, TurnConfig()])
async def test_a_decision_on_a_call_that_is_none_runs_nothing_and_ends_the_turn(serve: Serve, decision: Any) -> None:
    ran: list[int] = []

    @tool
    def delete() -> None:
        """Delete."""
        ran.append(1)

    model = ScriptedModel([call("delete"), say("Well.")])
    server = await serve(agent(model, delete, before_tool_call=gives(decision)))
    tab = await server.tab()
    await tab.ask("r1", "Hi")
    done = await tab.done("r1")
    assert done["outcome"] == "error"
    assert "before_tool_call() must give allow(input), block(reason), substitute(output) or nothing" in done["body"]
    assert ran == []
    (part,) = tool_parts((await server.stored())[1])
    assert part["state"] == "output-error"
    await tab.ask("r2", *(await server.stored()), user_message("Again"))
    assert (await tab.done("r2"))["outcome"] == "completed"


@pytest.mark.parametrize("answer", ["add", ("add",), ("add", 5), (5, {}), {"add": {}}, ("add", {"a": object()})])
async def test_a_repair_that_is_none_ends_the_turn_and_says_so(serve: Serve, answer: Any) -> None:
    server = await serve(agent(ScriptedModel([call("plus"), say("Well.")]), add, repair_tool_call=gives(answer)))
    tab = await server.tab()
    await tab.ask("r1", "Hi")
    done = await tab.done("r1")
    assert done["outcome"] == "error"
    assert "repair_tool_call() gave" in done["body"]
    await tab.ask("r2", *(await server.stored()), user_message("Again"))
    assert (await tab.done("r2"))["outcome"] == "completed"


async def test_a_result_that_is_substituted_and_has_no_json_form_is_the_calls_error(serve: Serve) -> None:
    model = ScriptedModel([call("add", {"a": 1, "b": 2}), say("Well.")])
    server = await serve(agent(model, add, before_tool_call=gives(substitute(object()))))
    tab = await server.tab()
    await tab.ask("r1", "Hi")
    assert (await tab.done("r1"))["outcome"] == "completed"
    (part,) = tool_parts((await server.stored())[1])
    assert "no JSON form" in part["errorText"]
