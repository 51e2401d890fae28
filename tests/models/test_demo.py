"""The demo model: what people see when they try perdure without a provider."""

from __future__ import annotations

from typing import Any, Literal

import pytest

from perdure.errors import ModelRejected
from perdure.models.contract import Finish, HistoryMessage, ModelRequest
from perdure.models.demo import DemoModel
from perdure.testing import strict_provider_errors
from perdure.tools import merge

pytestmark = pytest.mark.anyio


def get_weather(city: str) -> None:
    """Current weather for a city.

    Second paragraph.
    """


def get_time(city: str) -> None: ...


def get_weather_forecast(city: str, days: int = 1) -> None: ...


def roll_dice(count: int = 1, sides: int = 6) -> None: ...


def add(a: float, b: float) -> None: ...


def translate(text: str, language: str) -> None: ...


def setAlarm(minutes: int, loud: bool, label: str = "") -> None: ...  # noqa: N802


def convert(value: float, system: Literal["metric", "imperial"]) -> None: ...


def read(path: str) -> None: ...


def plot_points(points: list[int]) -> None: ...


TOOLS = merge(
    [get_weather, get_time, get_weather_forecast, roll_dice, add, translate, setAlarm, convert, read, plot_points]
)


def user(text: str) -> Any:
    return {"id": "u", "role": "user", "parts": [{"type": "text", "text": text}]}


def model() -> DemoModel:
    ids = iter(range(1, 100))

    async def sleep(seconds: float) -> None: ...

    return DemoModel(sleep=sleep, new_id=lambda: f"c{next(ids)}")


async def ask(*messages: Any, tools: Any = TOOLS.specs) -> list[Any]:
    history = [HistoryMessage.of(message) for message in messages]
    return [event async for event in model().stream(ModelRequest(system="", history=history, tools=tools))]


def said(events: list[Any], kind: str = "text-delta") -> str:
    return "".join(event["delta"] for event in events[:-1] if event["type"] == kind)


def called(events: list[Any]) -> list[Any]:
    found = [event for event in events[:-1] if event["type"] == "tool-input-available"]
    return [(event["toolName"], event["input"]) for event in found]


async def test_a_greeting_is_streamed_word_by_word_and_says_that_it_is_no_ai() -> None:
    events = await ask(user("Hello there"))

    deltas = [event["delta"] for event in events if isinstance(event, dict) and event["type"] == "text-delta"]
    assert (
        "".join(deltas) == "Hello! I am the demo model: no AI, just a few fixed rules. Say `help` to see what I can do."
    )
    assert all(len(delta.split()) == 1 for delta in deltas)
    assert events[0] == {"type": "text-start", "id": "t"}
    assert events[-2:] == [{"type": "text-end", "id": "t"}, Finish("stop")]


async def test_it_waits_its_pace_before_each_word() -> None:
    waits: list[float] = []

    async def sleep(seconds: float) -> None:
        waits.append(seconds)

    demo = DemoModel(pace=0.5, sleep=sleep)
    request = ModelRequest(system="", history=[HistoryMessage.of(user("long 7"))])
    async for _ in demo.stream(request):
        pass

    assert waits == [0.5] * 7


async def test_the_same_question_gets_the_same_answer() -> None:
    for text in ("weather in Paris", "think about tea", "what is this?"):
        assert await ask(user(text)) == await ask(user(text))


@pytest.mark.parametrize("text", ["Who are you?", "are you an AI?", "Tell me a joke", "hi", "help", "", "love?"])
async def test_it_never_passes_for_an_ai(text: str) -> None:
    answer = said(await ask(user(text)))

    assert "demo model" in answer
    assert "help" in answer or "no AI" in answer


async def test_an_exact_call_has_exactly_these_arguments() -> None:
    events = await ask(user('call get_weather {"city": "Paris", "extra": [1]}'))

    assert events == [
        {"type": "tool-input-start", "toolCallId": "c1", "toolName": "get_weather"},
        {"type": "tool-input-delta", "toolCallId": "c1", "inputTextDelta": '{"city":"Paris","extra":[1]}'},
        {
            "type": "tool-input-available",
            "toolCallId": "c1",
            "toolName": "get_weather",
            "input": {"city": "Paris", "extra": [1]},
        },
        Finish("tool-calls"),
    ]


@pytest.mark.parametrize(
    ("text", "calls"),
    [
        ("weather in Paris", [("get_weather", {"city": "Paris"})]),
        ("What's the weather in New York today?", [("get_weather", {"city": "New York"})]),
        ("weather in Paris and Rome", [("get_weather", {"city": "Paris"}), ("get_weather", {"city": "Rome"})]),
        (
            "weather in Paris, in St. Gallen and in The Hague.",
            [("get_weather", {"city": city}) for city in ("Paris", "St. Gallen", "The Hague")],
        ),
        ("what time is it in Tokyo", [("get_time", {"city": "Tokyo"})]),
        ("weather in Oslo and the time in Rome", [("get_weather", {"city": "Oslo"}), ("get_time", {"city": "Rome"})]),
        ("time and weather in Oslo", [("get_time", {"city": "Oslo"}), ("get_weather", {"city": "Oslo"})]),
        ("weather Oslo", [("get_weather", {"city": "Oslo"})]),
        ("weather of “Rio de Janeiro”", [("get_weather", {"city": "Rio de Janeiro"})]),
        ("weather forecast for Oslo for 3 days", [("get_weather_forecast", {"city": "Oslo", "days": 3})]),
        ("use get_time for Lima", [("get_time", {"city": "Lima"})]),
        ("roll 2 dice 20", [("roll_dice", {"count": 2, "sides": 20})]),
        ("Rolling dice!", [("roll_dice", {})]),
        ("add 2 and -3.5", [("add", {"a": 2, "b": -3.5})]),
        ('translate "good morning" to French', [("translate", {"text": "good morning", "language": "French"})]),
        ("set an alarm for 5 minutes", [("setAlarm", {"minutes": 5, "loud": True})]),
        ("alarm 5, not loud", [("setAlarm", {"minutes": 5, "loud": False})]),
        ("convert 5 to metric", [("convert", {"value": 5, "system": "metric"})]),
        ("please read /notes.txt", [("read", {"path": "/notes.txt"})]),
        ("I read a book", []),
        ("call get_time", [("get_time", {})]),
        ('CALL add {"a": 1,\n"b": 2}\ncall roll_dice', [("add", {"a": 1, "b": 2}), ("roll_dice", {})]),
        ("think weather in Oslo", [("get_weather", {"city": "Oslo"})]),
    ],
)
async def test_it_calls_the_tools_that_it_is_asked_for(text: str, calls: list[Any]) -> None:
    events = await ask(user(text))

    assert called(events) == calls
    assert events[-1] == Finish("tool-calls" if calls else "stop")


async def test_several_calls_of_a_step_have_different_ids() -> None:
    events = await ask(user("weather in Paris and Rome"))

    ids = [event["toolCallId"] for event in events[:-1] if event["type"] == "tool-input-start"]
    assert ids == ["c1", "c2"]


@pytest.mark.parametrize(
    ("text", "answer"),
    [
        (
            "what is the weather like?",
            "I can call get_weather, but I need a value for city. "
            'Try it like this: `call get_weather {"city": "Paris"}`.',
        ),
        ("add 2", 'I can call add, but I need a value for b. Try it like this: `call add {"a": 2, "b": 2}`.'),
        (
            "plot points",
            "I can call plot_points, but I need a value for points. "
            'Try it like this: `call plot_points {"points": []}`.',
        ),
        (
            "call add [1]",
            'The arguments of add must be a JSON object. Try it like this: `call add {"a": 2, "b": 2}`.',
        ),
        (
            "call add {",
            'The arguments of add must be a JSON object. Try it like this: `call add {"a": 2, "b": 2}`.',
        ),
    ],
)
async def test_it_says_what_a_call_lacks(text: str, answer: str) -> None:
    assert said(await ask(user(text))) == answer


async def test_an_unknown_tool_is_answered_with_those_that_exist() -> None:
    events = await ask(user("call nope {}"), tools=TOOLS.specs[:2])

    assert said(events) == "There is no tool named nope. I can call: get_weather, get_time."
    assert said(await ask(user("call nope"), tools=())) == (
        "There is no tool named nope. There are no tools that I could call."
    )
    assert said(await ask(user("call"), tools=TOOLS.specs[:1])) == "Which tool shall I call? I can call: get_weather."


def settled(tool: str, output: Any = None, **fields: Any) -> Any:
    part = {"type": f"tool-{tool}", "toolCallId": f"c-{tool}", "state": "output-available", "input": {}}
    return part | {"output": output} | fields


def assistant(*parts: Any) -> Any:
    return {"id": "a", "role": "assistant", "parts": [{"type": "step-start"}, *parts]}


@pytest.mark.parametrize(
    ("output", "told"),
    [
        ({"city": "Paris", "temperature": 21.0}, "get_weather: city Paris, temperature 21."),
        ({"wind_speed": 3.5, "rain": False, "sun": True, "alert": None},
         "get_weather: wind speed 3.5, rain no, sun yes, alert none."),
        ("Sunny!", "get_weather: Sunny!"),
        (None, "get_weather: none."),
        (21, "get_weather: 21."),
        ([1, 2], "get_weather: 1, 2."),
        ([], "get_weather: nothing."),
        ({"days": [{"high": 3}]}, 'get_weather: `{"days":[{"high":3}]}`'),
        ({}, "get_weather: `{}`"),
    ],
)  # fmt: skip
async def test_a_result_is_told_as_readable_text(output: Any, told: str) -> None:
    events = await ask(user("weather in Paris"), assistant(settled("get_weather", output)))

    assert said(events) == f"Here is the result. {told}"
    assert events[-1] == Finish("stop")


async def test_several_results_are_a_list_and_failures_are_named() -> None:
    parts = [
        settled("get_weather", {"city": "Paris"}),
        settled("add", state="output-error", errorText="boom"),
        settled("read", state="output-denied", approval={"id": "1", "approved": False, "reason": "not that file"}),
        settled("get_time", state="output-denied"),
    ]

    assert said(await ask(user("all"), assistant(*parts))).splitlines() == [
        "Not everything went well:",
        "",
        "- get_weather: city Paris.",
        "- add failed: boom.",
        "- read was not allowed: not that file.",
        "- get_time was not allowed.",
    ]
    assert said(await ask(user("x"), assistant(parts[0], settled("add", 3)))).startswith("Here are the results:")
    assert said(await ask(user("x"), assistant(parts[1]))) == "add failed: boom."


async def test_only_results_of_the_last_step_are_told() -> None:
    message = assistant(settled("add", 1), {"type": "step-start"}, settled("get_time", "noon"))

    assert said(await ask(user("x"), message)) == "Here is the result. get_time: noon."


async def test_results_are_told_although_the_next_step_has_begun() -> None:
    message = assistant(settled("add", 1), {"type": "step-start"}, settled("get_time", "noon"), {"type": "step-start"})

    assert said(await ask(user("x"), message)) == "Here is the result. get_time: noon."


async def test_a_very_long_result_is_cut() -> None:
    assert len(said(await ask(user("x"), assistant(settled("read", "y" * 5000))))) < 900


async def test_a_request_to_continue_an_answer_without_results_is_answered() -> None:
    told = await ask(user("x"), assistant({"type": "text", "text": "done"}))

    assert said(told) == "I have nothing to add to that."


async def test_a_new_question_after_results_is_answered_afresh() -> None:
    history = [user("weather in Paris"), assistant(settled("get_weather", "sun")), user("time in Rome")]

    assert called(await ask(*history)) == [("get_time", {"city": "Rome"})]


async def test_recap_lists_what_the_user_said_as_far_as_the_model_is_shown_it() -> None:
    history = [user("weather in Paris"), assistant(settled("get_weather", "sun")), user("tea " * 40), user("recap")]

    told = said(await ask(*history))
    assert told.splitlines() == [
        "What I am shown of what you said:",
        "",
        "- weather in Paris",
        f"- {('tea ' * 40)[:79]}…",
        "- recap",
    ]


async def test_error_fails_with_that_text() -> None:
    with pytest.raises(ModelRejected, match=r"^no luck today$"):
        await ask(user("error no luck today"))


@pytest.mark.parametrize(("text", "count"), [("long", 200), ("long 25", 25), ("Long 0", 1), ("long 999999", 20_000)])
async def test_long_streams_that_many_words(text: str, count: int) -> None:
    events = await ask(user(text))

    words = said(events).split()
    assert len(words) == count
    assert words[0] == "(1)"
    assert len([event for event in events[:-1] if event["type"] == "text-delta"]) == count


async def test_long_text_shows_where_it_is() -> None:
    assert said(await ask(user("long 12"))) == "(1) The kettle sings while rain taps on the window. (2) The"


async def test_long_with_other_words_is_ordinary_text() -> None:
    assert said(await ask(user("long story short"))).startswith("You said “long story short”.")


async def test_think_gives_reasoning_first() -> None:
    events = await ask(user("think about tea"))

    kinds = list(dict.fromkeys(event["type"] for event in events[:-1]))
    assert kinds == ["reasoning-start", "reasoning-delta", "reasoning-end", "text-start", "text-delta", "text-end"]
    assert "The question is: tea." in said(events, "reasoning-delta")


async def test_help_lists_tools_and_commands() -> None:
    text = said(await ask(user("Help!")))

    assert '- **get_weather**: Current weather for a city. For example `call get_weather {"city": "Paris"}`' in text
    assert "Second paragraph" not in text
    assert all(f"**{name}**" in text for name in TOOLS)
    assert all(f"`{command}" in text for command in ("call", "long", "think", "error", "help"))
    assert "There are no tools" in said(await ask(user("help"), tools=()))


async def test_without_any_message_it_introduces_itself() -> None:
    assert "demo model" in said(await ask())


async def test_what_it_streams_makes_a_conversation_that_a_strict_provider_accepts() -> None:
    events = await ask(user("weather in Paris and Rome"))
    parts = [
        settled(event["toolName"], "sun", toolCallId=event["toolCallId"], input=event["input"])
        for event in events[:-1]
        if event["type"] == "tool-input-available"
    ]
    history = [HistoryMessage.of(user("weather in Paris and Rome")), HistoryMessage.of(assistant(*parts))]

    assert strict_provider_errors(ModelRequest(system="", history=history, tools=TOOLS.specs)) == []


def test_the_default_ids_do_not_repeat() -> None:
    make = DemoModel()._new_id

    assert len({make() for _ in range(100)}) == 100
