"""Operations with the fields that do not matter filled in."""

from perdure.storage.contract import AppendMessage, CloseTurn, OpenTurn, Operation
from perdure.storage.sqlite import SqliteStore

AWKWARD = [
    "",
    "plain",
    '{"text":"Grüße, 世界 \u2013 👩‍👩‍👧‍👦 🏳️‍🌈"}',
    "a NUL \x00 in the middle, and one at the end \x00",
    "\ufeff byte order mark, \u2028 line separator, \r\n\t and \x1b",
    "'; drop table message; --",
    "\U0010ffff\ud7ff\ue000",
]
"""Texts that stores are known to mangle."""


def message(pos: int, parent: int | None = None, *, id: str | None = None, body: str = "{}") -> AppendMessage:
    return AppendMessage(pos=pos, id=id or f"m{pos}", parent=parent, role="user", body=body, at_ms=1_000 + pos)


def turn(id: str, status: str = "queued", *, at_ms: int = 1) -> OpenTurn:
    return OpenTurn(id=id, status=status, trigger="ws-chat", request="{}", message_id=f"{id}-message", at_ms=at_ms)


def closing(id: str, *, at_ms: int = 2) -> CloseTurn:
    return CloseTurn(id=id, status="completed", error=None, at_ms=at_ms)


async def write(store: SqliteStore, agent: str, *operations: Operation) -> None:
    await store.write(agent, store.epoch, operations)
