"""Whether a model request would pass the strictest provider. Imports the model contract and ``protocol``."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator

from perdure.models.contract import ModelRequest
from perdure.protocol.messages import SETTLED, Part, UIMessage, is_tool_part, tool_name
from perdure.testing.scripted import RecordedRequest

__all__ = ["strict_provider_errors"]

_NAME = re.compile(r"[A-Za-z0-9_-]{1,64}")


def strict_provider_errors(request: ModelRequest | RecordedRequest) -> list[str]:
    """What a strict provider would refuse in ``request``; empty when it would be accepted.

    Refused are calls without a result and results without a call, call inputs that are no objects, call ids that
    repeat, a request that ends in an assistant's words, no message at all, and tool names that repeat or are not 1 to
    64 of ``A-Z a-z 0-9 _ -``.
    """
    record = request if isinstance(request, RecordedRequest) else RecordedRequest.of(request)
    errors = [f"tool name {name!r} is not allowed" for name in record.tools if not _NAME.fullmatch(name)]
    errors += [f"tool {name} is offered {count} times" for name, count in Counter(record.tools).items() if count > 1]
    for number, message in enumerate(record.messages):
        errors += [f"message {number}: {error}" for error in _message_errors(message)]
    return [*errors, *_repeated(record.messages), *_end_errors(record.messages)]


def _message_errors(message: UIMessage) -> Iterator[str]:
    for part in _calls(message):
        yield from _call_errors(part)


def _calls(message: UIMessage) -> list[Part]:
    """The tool calls; a user's message has none, whatever its parts are called."""
    parts = message.get("parts", []) if message.get("role") == "assistant" else []
    return [part for part in parts if is_tool_part(part)]


def _repeated(messages: list[UIMessage]) -> Iterator[str]:
    ids = Counter(part.get("toolCallId") for message in messages for part in _calls(message))
    return (f"call id {id} is used {count} times" for id, count in ids.items() if id and count > 1)


def _call_errors(part: Part) -> Iterator[str]:
    name, id = tool_name(part), part.get("toolCallId")
    if not id:
        yield f"a result of {name} belongs to no call: it has no id"
    if not _NAME.fullmatch(name):
        yield f"tool name {name!r} of call {id} is not allowed"
    if part.get("state") not in SETTLED or not _has_result(part):
        yield f"call {id} of {name} has no result"
    if not isinstance(part.get("input"), dict):
        yield f"the input of call {id} of {name} is not an object"


def _has_result(part: Part) -> bool:
    needed = {"output-available": "output", "output-error": "errorText"}.get(part["state"])
    return needed is None or needed in part


def _end_errors(messages: list[UIMessage]) -> list[str]:
    if not messages:
        return ["there are no messages"]
    if messages[-1].get("role") != "assistant":
        return []
    # The results of a step follow all that the model said in it, also what it said after its calls.
    called = any(is_tool_part(part) and not part.get("providerExecuted") for part in _last_step(messages[-1]))
    return [] if called else ["the request ends in an assistant item"]


def _last_step(message: UIMessage) -> list[Part]:
    """The parts of the last step that has some."""
    steps: list[list[Part]] = [[]]
    for part in message.get("parts", []):
        if part.get("type") == "step-start":
            steps.append([])
        else:
            steps[-1].append(part)
    return next((step for step in reversed(steps) if step), steps[0])
