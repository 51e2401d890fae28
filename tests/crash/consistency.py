"""What must hold of a conversation after its server was killed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from perdure.protocol.messages import SETTLED, is_tool_part
from perdure.testing import RecordedRequest, strict_provider_errors
from tests.crash.process import Process
from tests.support.tabs import Frame, Tab, chunks_of, text_of, user_message

__all__ = ["INTERRUPTED", "check_consistent", "check_goes_on", "offered", "text_so_far"]

INTERRUPTED = "The assistant was interrupted and could not recover. Please try again."


def text_so_far(tab: Tab, request: str) -> str:
    """The text that a tab was streamed."""
    return text_of(chunks_of(tab.frames, request))


def check_consistent(messages: list[dict[str, Any]], questions: list[Frame], streamed: str = "") -> None:
    """The questions are there, once and in order; answers are settled, and the last is a prefix of the stream."""
    ids = [message["id"] for message in messages]
    assert len(ids) == len(set(ids)), f"doubled messages: {ids}"
    assert [message for message in messages if message["role"] == "user"] == questions
    roles = [message["role"] for message in messages]
    assert "assistant assistant" not in " ".join(roles), roles
    for message in messages:
        calls = [part for part in message["parts"] if is_tool_part(part)]
        assert all(part["state"] in SETTLED for part in calls), f"an open call: {calls}"
        assert len({part["toolCallId"] for part in calls}) == len(calls)
        assert not any(part.get("state") == "streaming" for part in message["parts"])
    if streamed and messages[-1]["role"] == "assistant":
        kept = "".join(part["text"] for part in messages[-1]["parts"] if part["type"] == "text")
        assert streamed.startswith(kept), "the answer is no prefix of what was streamed"


async def offered(tab: Tab) -> Frame:
    """The failure that a probe is offered: its terminal frame."""
    offer = await tab.probe("after-the-crash")
    assert offer["type"] == "cf_agent_stream_resuming", offer
    await tab.ack(offer["id"])
    return await tab.done(offer["id"])


async def check_goes_on(server: Process, tab: Tab, asked: Callable[[], list[RecordedRequest]]) -> None:
    """The next turn works, and its request would pass the strictest provider."""
    before = await server.stored()
    await tab.ask("r-next", *before, user_message("say 2", "u-next"))
    assert (await tab.done("r-next"))["outcome"] == "completed"
    assert strict_provider_errors(asked()[-1]) == []
    after = await server.stored()
    assert after[: len(before)] == before
    assert [message["role"] for message in after[len(before) :]] == ["user", "assistant"]
    assert (await tab.probe("at-the-end"))["reason"] == "idle"
