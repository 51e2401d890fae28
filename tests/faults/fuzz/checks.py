"""What must hold after any plan."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

from perdure.protocol.messages import is_tool_part
from tests.faults.fuzz.frames import REQUESTS
from tests.faults.fuzz.player import Client, Player
from tests.support import Frame

__all__ = ["check_bodies", "check_client", "check_messages", "check_streams", "ends_of"]

ROLES = {"user", "assistant", "system"}


def check_messages(messages: Any) -> None:
    """A conversation that every client can show."""
    assert isinstance(messages, list)
    ids = [message["id"] for message in messages]
    assert len(ids) == len(set(ids)), f"an id comes twice: {ids}"
    for message in messages:
        assert message["role"] in ROLES, message
        assert isinstance(message["id"], str), message
        assert message["id"], message
        assert isinstance(message["parts"], list), message
        calls: list[str] = []
        for part in message["parts"]:
            assert isinstance(part["type"], str), part
            if message["role"] == "assistant" and is_tool_part(part):
                calls.append(part["toolCallId"])
                assert part["toolCallId"], part
                assert part["state"] in {"output-available", "output-error", "output-denied"}, part
                assert isinstance(part["input"], dict), part
            if message["role"] == "assistant" and part["type"] in {"text", "reasoning"}:
                assert part.get("state") != "streaming", part
        assert len(calls) == len(set(calls)), f"a call id comes twice: {calls}"
    json.dumps(messages, ensure_ascii=False, allow_nan=False).encode()


def ends_of(frames: Iterable[Frame], request: str) -> list[Frame]:
    """The terminal frames of a request that are no replays."""
    return [
        frame
        for frame in frames
        if frame.get("type") == "cf_agent_use_chat_response"
        and frame.get("id") == request
        and frame.get("done")
        and not frame.get("replay")
    ]


def check_client(client: Client, player: Player) -> None:
    """Each request of the tab was ended once, and no other one too often."""
    frames = client.tab.frames
    for request in client.asked:
        ends = ends_of(frames, request)
        if client.is_open and (player.is_unique(request) or request not in REQUESTS):
            assert ends, f"{request} was never ended"
        if player.is_unique(request) and not client.acked[request]:
            assert len(ends) <= 1, f"{request} was ended {len(ends)} times"
    for request, count in player.sent.items():
        if client.is_page and not client.acked[request]:
            assert len(ends_of(frames, request)) <= count, f"{request} was ended more often than it was sent"
    if client.is_page:
        check_streams(frames)


def check_streams(frames: Iterable[Frame]) -> None:
    """Chunks of a request come in order without a gap, or from the beginning in a replay; nothing follows the end."""
    last: dict[str, int] = {}
    ended: set[str] = set()
    replaying: set[str] = set()
    for frame in frames:
        request = frame.get("id")
        if frame["type"] != "cf_agent_use_chat_response" or request is None:
            continue
        if frame.get("replay"):
            before = last.get(request, -1) if request in replaying else -1
            if "seq" in frame:
                assert frame["seq"] in {before + 1, 0}, f"a gap in a replay before {frame}"
                replaying.add(request)
                last[request] = frame["seq"]
            else:
                replaying.discard(request)
            continue
        replaying.discard(request)
        if frame.get("error"):
            continue
        if frame["done"]:
            ended.add(request)  # again for a request that is sent again
        else:
            if frame["seq"] == 0:
                # Sent again after a clear: a request that was answered without a turn of its own runs this time.
                last.pop(request, None)
                ended.discard(request)
            assert request not in ended, f"{frame} follows the end of its request"
            assert frame["seq"] == last.get(request, -1) + 1, f"a gap before {frame}"
            last[request] = frame["seq"]


def check_bodies(clients: Iterable[Client], player: Player) -> None:
    """A chunk is the same for everybody, live and in replays."""
    bodies: dict[tuple[str, int], str] = {}
    for client in clients:
        for frame in client.tab.frames:
            if "seq" in frame and player.is_unique(frame["id"]):
                key = frame["id"], frame["seq"]
                assert bodies.setdefault(key, frame["body"]) == frame["body"], key
