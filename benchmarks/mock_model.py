"""The fixture's in-process model: deterministic answers at next to no cost (grammar: FIXTURE.md of the bench).

Looks at the last user message and at the tool results after it, and at nothing else but for ``COUNT``.
"""

from __future__ import annotations

import asyncio
import re
import secrets
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from functools import lru_cache
from itertools import count
from typing import Any, NamedTuple

from perdure.errors import ModelRejected
from perdure.models.contract import ChatModel, Chunk, Finish, HistoryMessage, ModelEvent, ModelRequest, Usage
from perdure.protocol import codec
from perdure.protocol.messages import SETTLED, Part, UIMessage, is_tool_part, text_of, tool_name

__all__ = ["MockModel"]

DENIED = "Tool call execution denied."

_USAGE = Usage(input_tokens=10, output_tokens=5)
_STOP = Finish("stop", _USAGE)
_TOOL_CALLS = Finish("tool-calls", _USAGE)

_TEXT_START: Chunk = {"type": "text-start", "id": "t"}
_TEXT_END: Chunk = {"type": "text-end", "id": "t"}

_SETTING = re.compile(r"(?:^|\s)([NDHS])=(\d+)")
_LOOP = re.compile(r"LOOP (\d+) (\S+) ?(.*)", re.DOTALL)


class Command(NamedTuple):
    """A user message, parsed. ``kind`` says which other fields count."""

    kind: str
    """``text``, ``calls``, ``loop``, ``echo``, ``reason``, ``count`` or ``error``."""
    text: str = ""
    chunks: tuple[Chunk, ...] = ()
    """The deltas of ``text``. Shared between answers: nobody may change them."""
    steps: int = 0
    delay: float = 0
    """Seconds before each delta."""
    hold: float = 0
    """Seconds before the finish."""
    calls: tuple[tuple[str, str], ...] = ()
    """Tool and arguments as JSON text."""


class MockModel(ChatModel):
    """Answers by the grammar."""

    name = "mock"

    def __init__(self, sleep: Callable[[float], Awaitable[Any]] = asyncio.sleep) -> None:
        self._sleep = sleep
        self._process = secrets.token_hex(4)
        self._numbers = count(1)

    async def stream(self, request: ModelRequest) -> AsyncGenerator[ModelEvent, None]:
        """One step. Raises ModelRejected for ``ERROR``."""
        history = request.history
        last = _last_user(history)
        command = history[last].derive("mock", _parse_message) if last >= 0 else parse("")
        if command.kind == "text":
            yield _TEXT_START
            if command.delay:
                for chunk in command.chunks:
                    await self._sleep(command.delay)
                    yield chunk
            else:
                for chunk in command.chunks:
                    yield chunk
            if command.hold:
                await self._sleep(command.hold)
            yield _TEXT_END
            yield _STOP
            return
        for event in self._answer(command, history, last):
            yield event

    def _answer(self, command: Command, history: Sequence[HistoryMessage], last: int) -> Sequence[ModelEvent]:
        match command.kind:
            case "calls" | "loop":
                return self._tools(command, history[last + 1 :])
            case "reason":
                return [
                    {"type": "reasoning-start", "id": "r"},
                    {"type": "reasoning-delta", "id": "r", "delta": command.text},
                    {"type": "reasoning-end", "id": "r"},
                    *_say("ok"),
                ]
            case "count":
                users = sum(1 for item in history if item.derive("mock-role", _role) == "user")
                return _say(f"users={users}")
            case "error":
                raise ModelRejected(command.text, status=400)
            case _:
                return _say(command.text)

    def _tools(self, command: Command, answers: Sequence[HistoryMessage]) -> Sequence[ModelEvent]:
        steps = _settled_steps(answers)
        if len(steps) < command.steps:
            return [chunk for name, text in command.calls for chunk in self._call(name, text)] + [_TOOL_CALLS]
        if command.kind == "loop":
            return _say(f"DONE {len(steps)}")
        return _say("RESULT " + " | ".join(f"{tool_name(part)} {_output(part)}" for part in steps[-1]))

    def _call(self, name: str, text: str) -> list[ModelEvent]:
        id = f"call_{self._process}_{next(self._numbers):x}"
        return [
            {"type": "tool-input-start", "toolCallId": id, "toolName": name},
            {"type": "tool-input-delta", "toolCallId": id, "inputTextDelta": text},
            {"type": "tool-input-available", "toolCallId": id, "toolName": name, "input": codec.decode(text)},
        ]


def _say(text: str) -> list[ModelEvent]:
    return [_TEXT_START, {"type": "text-delta", "id": "t", "delta": text}, _TEXT_END, _STOP]


def _last_user(history: Sequence[HistoryMessage]) -> int:
    for index in range(len(history) - 1, -1, -1):
        if history[index].derive("mock-role", _role) == "user":
            return index
    return -1


def _role(message: UIMessage) -> str:
    return message.get("role", "")


def _parse_message(message: UIMessage) -> Command:
    return parse(text_of(message))


@lru_cache(maxsize=4096)
def parse(text: str) -> Command:
    """The command in a user message. Whatever is no command, or a broken one, is echoed."""
    text = text.strip()
    if text.startswith("N="):
        return _text_command(dict(_SETTING.findall(text)))
    word, _, rest = text.partition(" ")
    try:
        command = _command(word, rest, text)
    except (ValueError, TypeError, codec.DecodeError):
        command = None
    return command or Command("echo", f"You said: {text}")


def _command(word: str, rest: str, text: str) -> Command | None:
    match word:
        case "CALL" if rest:
            name, _, arguments = rest.partition(" ")
            return Command("calls", calls=((name, _compact(arguments)),), steps=1)
        case "CALLS" if rest:
            calls = tuple((str(name), codec.encode_text(given)) for name, given in codec.decode(rest))
            return Command("calls", calls=calls, steps=1)
        case "LOOP" if found := _LOOP.fullmatch(text):
            return Command("loop", calls=((found[2], _compact(found[3])),), steps=int(found[1]))
        case "ECHO" | "REASON" | "ERROR" if rest:
            return Command(word.lower(), rest)
        case "COUNT" if not rest:
            return Command("count")
        case _:
            return None


def _text_command(given: dict[str, str]) -> Command:
    size = int(given.get("S", 0))
    chunks: list[Chunk] = [
        {"type": "text-delta", "id": "t", "delta": f"t{number} ".ljust(size, ".")}
        for number in range(int(given.get("N", 1)))
    ]
    delay, hold = int(given.get("D", 0)) / 1000, int(given.get("H", 0)) / 1000
    return Command("text", chunks=tuple(chunks), delay=delay, hold=hold)


def _compact(arguments: str) -> str:
    return codec.encode_text(codec.decode(arguments)) if arguments.strip() else "{}"


def _settled_steps(answers: Sequence[HistoryMessage]) -> list[list[Part]]:
    """The settled calls of each step that has some, oldest first."""
    steps: list[list[Part]] = []
    for item in answers:
        steps.append([])
        for part in item.message.get("parts", ()):
            if part["type"] == "step-start":
                steps.append([])
            elif is_tool_part(part) and part["state"] in SETTLED:
                steps[-1].append(part)
    return [step for step in steps if step]


def _output(part: Part) -> str:
    """The result as the model is shown it."""
    if part["state"] == "output-error":
        return part["errorText"]
    if part["state"] == "output-denied":
        approval: dict[str, Any] = part.get("approval") or {}
        return approval.get("reason") or DENIED
    output: Any = part["output"]
    return output if isinstance(output, str) else codec.encode_text(output)
