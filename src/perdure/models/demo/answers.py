"""What the demo model says, thinks and calls. Imports the contract, ``protocol`` and the modules beside it."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import NamedTuple

from perdure.models.contract import ModelRequest, ToolSpec
from perdure.models.demo.calls import PlannedCall, exact_calls, example, find_calls
from perdure.models.demo.results import tell_results
from perdure.protocol.messages import SETTLED, Part, UIMessage, is_tool_part, text_of

__all__ = ["Answer", "answer"]

MAX_WORDS = 20_000
DEFAULT_WORDS = 200

_SENTENCE = ("The", "kettle", "sings", "while", "rain", "taps", "on", "the", "window.")


class Answer(NamedTuple):
    """One step of the demo model."""

    text: str = ""
    reasoning: str = ""
    calls: tuple[PlannedCall, ...] = ()
    error: str | None = None


def answer(request: ModelRequest) -> Answer:
    """What the demo model does next. Looks at the last message, and at its settled calls when it is the assistant's."""
    if not request.history:
        return Answer(_small_talk(""))
    last = request.history[-1].message
    if last.get("role") == "assistant":
        results = _results_of_last_step(last)
        return Answer(tell_results(results) if results else "I have nothing to add to that.")
    text = text_of(last).strip()
    word, _, rest = text.partition(" ")
    command = _COMMANDS.get(word.lower().rstrip(":!?.,"))
    decided = command(rest.strip(), request) if command else None
    return decided or _called(text, request.tools) or Answer(_small_talk(text))


def _results_of_last_step(message: UIMessage) -> list[Part]:
    """The settled calls of the last step that has anything in it: the step that is being asked for may have begun."""
    step: list[Part] = []
    for part in reversed(message.get("parts", [])):
        if part.get("type") != "step-start":
            step.append(part)
        elif step:
            break
    return [part for part in reversed(step) if is_tool_part(part) and part.get("state") in SETTLED]


def _called(text: str, tools: Sequence[ToolSpec]) -> Answer | None:
    calls, missing = find_calls(text, tools)
    if calls:
        return Answer(calls=calls)
    if missing:
        spec, parameters = missing[0]
        needed = " and ".join(parameters)
        return Answer(f"I can call {spec.name}, but I need a value for {needed}. Try it like this: `{example(spec)}`.")
    return None


# Commands: each gets what follows its word, and what the model is shown; it returns nothing when it does not apply


def _call(rest: str, request: ModelRequest) -> Answer | None:
    if not rest:
        return Answer(f"Which tool shall I call? {_tool_names(request.tools)}")
    planned = exact_calls(rest)
    known = {spec.name: spec for spec in request.tools}
    for call in planned:
        if call.tool not in known:
            return Answer(f"There is no tool named {call.tool}. {_tool_names(request.tools)}")
        if call.problem:
            return Answer(f"{call.problem} Try it like this: `{example(known[call.tool])}`.")
    return Answer(calls=planned)


def _error(rest: str, request: ModelRequest) -> Answer:
    return Answer(error=rest or "This is the error that you asked for.")


def _long(rest: str, request: ModelRequest) -> Answer | None:
    if rest and not rest.isdecimal():
        return None
    count = min(max(int(rest or DEFAULT_WORDS), 1), MAX_WORDS)
    size = len(_SENTENCE) + 1
    words = [
        f"({number // size + 1})" if number % size == 0 else _SENTENCE[number % size - 1] for number in range(count)
    ]
    return Answer(" ".join(words))


def _think(rest: str, request: ModelRequest) -> Answer:
    topic = rest.removeprefix("about ").rstrip(".!?") or "nothing in particular"
    called = _called(rest, request.tools)
    if called is not None and called.calls:
        names = " and ".join(dict.fromkeys(call.tool for call in called.calls))
        return called._replace(reasoning=f"The question is: {topic}. I do not know that myself. I will ask {names}.")
    return Answer(
        reasoning=f"The question is: {topic}. I look for a tool that fits and find none, so I answer from my rules.",
        text="I have thought it over, as far as a demo model can. What you see above this text is my reasoning.",
    )


def _recap(rest: str, request: ModelRequest) -> Answer | None:
    if rest:
        return None
    said = [text_of(entry.message).strip() for entry in request.history if entry.message.get("role") == "user"]
    return Answer("\n".join(["What I am shown of what you said:", "", *(f"- {_short(text)}" for text in said)]))


def _help(rest: str, request: ModelRequest) -> Answer | None:
    if rest:
        return None
    lines = ["I am the demo model, not an AI. I follow a few fixed rules, so that you can try everything out.", ""]
    if request.tools:
        lines += ["Tools that I can call, also when you ask in your own words:", ""]
        lines += [f"- **{spec.name}**{_summary(spec)} For example `{example(spec)}`" for spec in request.tools]
    else:
        lines.append("There are no tools that I could call.")
    return Answer("\n".join([*lines, "", "What else I understand:", "", *_HELP]))


_HELP = (
    '- `call NAME {"key": "value"}` calls a tool with exactly these arguments',
    "- `long 200` writes that many words: try to stop me, or reload the page",
    "- `think about tea` shows reasoning before the answer",
    "- `error no luck today` fails with that text",
    "- `recap` lists what you said, as far as I am shown it",
    "- `help` shows this list",
)

_COMMANDS: dict[str, Callable[[str, ModelRequest], Answer | None]] = {
    "call": _call,
    "error": _error,
    "long": _long,
    "think": _think,
    "recap": _recap,
    "help": _help,
}


def _summary(spec: ToolSpec) -> str:
    first = spec.description.strip().partition("\n")[0]
    return f": {first.rstrip('.')}." if first else ":"


def _tool_names(tools: Sequence[ToolSpec]) -> str:
    if not tools:
        return "There are no tools that I could call."
    return f"I can call: {', '.join(spec.name for spec in tools)}."


_TALK: tuple[tuple[str, str], ...] = (
    (
        r"(hi|hello|hey|howdy|good (morning|afternoon|evening|day))\b",
        "Hello! I am the demo model: no AI, just a few fixed rules. Say `help` to see what I can do.",
    ),
    (r"(thanks|thank you|thx|cheers)\b", "You are welcome! Is there anything else that you would like to try?"),
    (r"(bye|goodbye|see you|good night)\b", "Goodbye! This conversation will still be here when you come back."),
    (
        r"(who|what) are you\b|are you (an? )?(ai|bot|human|real|robot|llm)\b",
        "I am the demo model. I am no AI: I follow a few fixed rules, so that you can try things without an API key.",
    ),
    (
        r"what can you do\b|what do you do\b|can you help\b",
        "I can call tools, stream long texts, show reasoning and fail on purpose. Say `help` to see how.",
    ),
    (r"how are you\b|how's it going\b", "All my rules are in order, thank you! Say `help` to see what I can do."),
)


def _small_talk(text: str) -> str:
    if not text:
        return "I got no text from you. I am the demo model: say `help` to see what I can do."
    for pattern, reply in _TALK:
        if re.match(pattern, text, re.IGNORECASE):
            return reply
    said = _short(text)
    return f"You said “{said}”. I am the demo model, no AI, so I have no answer to that. Say `help` to see my rules."


def _short(text: str) -> str:
    return text if len(text) <= 80 else text[:79] + "…"
