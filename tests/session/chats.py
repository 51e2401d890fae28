"""Conversations for tests: a transcript on a real store, and whole stores of messages."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterable
from typing import Any

from perdure.protocol.messages import UIMessage
from perdure.session.archive import Archive
from perdure.session.transcript import Transcript
from perdure.storage.contract import AppendMessage, Commit, LoadAgent, Operation
from perdure.storage.sqlite import SqliteStore

__all__ = ["AGENT", "Chat", "answer_of", "file_of", "ids", "text_of", "write_line"]

AGENT = "chat/one"


def text_of(identifier: str, text: str = "") -> str:
    """A user message as a page posts it."""
    return json.dumps({"id": identifier, "role": "user", "parts": [{"type": "text", "text": text or identifier}]})


def answer_of(identifier: str, *parts: dict[str, Any]) -> UIMessage:
    """An assistant message."""
    said = list(parts) or [{"type": "text", "text": identifier}]
    return {"id": identifier, "role": "assistant", "parts": said}


def file_of(content: bytes, media_type: str = "image/png") -> dict[str, Any]:
    """A file part with its content inside."""
    url = f"data:{media_type};base64,{base64.b64encode(content).decode()}"
    return {"type": "file", "mediaType": media_type, "url": url}


def ids(texts: Iterable[str]) -> list[str]:
    """The ids of messages."""
    return [json.loads(text)["id"] for text in texts]


async def write_line(store: SqliteStore, texts: Iterable[str], agent: str = AGENT) -> None:
    """Store messages, each following the one before."""
    operations: list[Operation] = []
    for pos, text in enumerate(texts):
        message = json.loads(text)
        operations.append(AppendMessage(pos, message["id"], pos - 1 if pos else None, message["role"], text, pos))
    await store.write(agent, store.epoch, operations)


class Chat:
    """A transcript whose operations are written at once."""

    transcript: Transcript

    def __init__(self, store: SqliteStore) -> None:
        self.store = store
        self.commits: list[Commit] = []

    @classmethod
    async def open(cls, store: SqliteStore, **budgets: Any) -> Chat:
        """The conversation as it is stored."""
        chat = cls(store)
        record = await store.read(LoadAgent(AGENT))
        chat.transcript = await Transcript.open(Archive(store, AGENT, chat.settled), record, **budgets)
        return chat

    async def reopened(self, **budgets: Any) -> Chat:
        """The same conversation after a restart."""
        await self.settled()
        return await Chat.open(self.store, **budgets)

    async def settled(self) -> None:
        """Wait until everything is stored."""
        for commit in self.commits:
            await commit
        self.commits.clear()

    def write(self, operations: list[Operation]) -> None:
        """Store a change."""
        self.commits.append(self.store.write(AGENT, self.store.epoch, operations))

    def append(self, identifier: str, parent: str | None = None, *, text: str = "", waiting: bool = False) -> None:
        """A user message."""
        body = text_of(identifier, text)
        self.write(self.transcript.append(identifier, "user", body, parent, 1, waiting=waiting))

    def answer(self, identifier: str, parent: str | None, *parts: dict[str, Any]) -> None:
        """An answer."""
        self.write(self.transcript.answer(answer_of(identifier, *parts), parent, 1))

    def say(self, *identifiers: str) -> None:
        """Messages that follow each other; those that begin with ``a`` are answers."""
        for identifier in identifiers:
            (self.answer if identifier.startswith("a") else self.append)(identifier, self.transcript.leaf)

    @property
    def path(self) -> list[str]:
        """What clients are sent."""
        return ids(self.transcript.texts())

    async def history(self, upto: str | None) -> list[str]:
        """What a model is shown."""
        return [entry.message["id"] for entry in await self.transcript.history(upto)]
